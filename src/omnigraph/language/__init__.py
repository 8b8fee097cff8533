"""From source text to syntax trees, for schemas (`.pg`) and queries (`.gq`), and back.

Pure: nothing here opens a file, reads a clock or knows about storage.
"""
