"""Running read queries: numbered nodes, adjacency, and the steps of an arrangement on them."""
