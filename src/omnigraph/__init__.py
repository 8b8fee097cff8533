"""OmniGraph: a typed property graph with branches and history."""
