"""Rendering of results: rows as table, kv, csv, jsonl or json, and single JSON documents.

Everything here is a function from values to text on a stream; only `formats.py` knows the result of
a query. Cells are wire values: None, bool, int, finite float, str, and lists and objects of them.
"""
