"""Read queries: compile, choose an access path, execute on cached columns and adjacency."""
