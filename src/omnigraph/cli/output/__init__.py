"""Rendering of results: rows as table, kv, csv, jsonl or json, and single JSON documents.

Everything here is a pure function from values to text on a stream; no writer knows where the rows
come from. Cells are wire values: None, bool, int, finite float, str, and lists and objects of them.
"""
