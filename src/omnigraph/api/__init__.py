"""The public Python API: handles on graphs and the groups of calls they offer.

Every call is thin: it checks its arguments and hands over to one operation of the engine, which it
imports only then, so that a read does not load what only writers need.
"""
