"""Support for tests: a reference graph, the runner of text cases, traps for fault points, generators."""
