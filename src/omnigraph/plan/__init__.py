"""From query text and catalog to a typed plan and its steps: checker, planner, parameters, lint.

Pure, like everything below it: a plan can be built and printed in a notebook without a graph.
"""
