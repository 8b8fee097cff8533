"""What the routes do: one call of the engine each, and its result as a document."""
