"""`omnigraph shell`: a prompt for queries on a graph that stays open.

`session` runs what is entered and knows no terminal; `words` and `completion` know what may be written;
`prompt` is the only importer of prompt_toolkit.
"""
