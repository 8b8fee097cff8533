"""Maintenance: compaction, indexes, cleanup, repair, status and verification."""
