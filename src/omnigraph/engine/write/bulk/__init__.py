"""Loads whose pieces are read, checked and written by Spark tasks, and committed by one process."""
