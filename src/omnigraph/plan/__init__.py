"""From query text and catalog to a typed plan: checking, lowering, parameters, lint.

Pure, like everything below it: a plan can be made and looked at in a notebook without a graph.
"""
