"""Exports: the rows of a snapshot in the forms that loads read, JSON Lines and Parquet."""
