"""Rows as Arrow columns: their schema, ids, values and the checks every write has to pass.

Shared by loads, mutations and merges; knows the catalog and Arrow, and neither storage nor sources.
"""
