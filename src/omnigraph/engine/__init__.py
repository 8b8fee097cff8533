"""Where pure compilation meets the outside world: files first, snapshots of graphs on top."""
