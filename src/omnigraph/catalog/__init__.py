"""Accepted schemas as values: canonical IR, identities, keys, constraints, migration plans.

Built from the language's resolved declarations; knows nothing about storage.
"""
