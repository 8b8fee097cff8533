"""Exports of a snapshot: types by key, rows by id, as JSON lines or as Parquet files."""
