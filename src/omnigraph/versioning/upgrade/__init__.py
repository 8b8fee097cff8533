"""Graphs of older formats: read as they are, and converted in place when opened for writing.

Nothing outside this package knows what they look like.
"""
