"""Three-way merges, reverts, cherry-picks and resets of branches, row by row."""
