"""From a typed plan to steps an executor takes: what to scan first, which way to follow each edge.

Pure: statistics come in as numbers, steps go out as data that prints, runs and can be compared.
"""
