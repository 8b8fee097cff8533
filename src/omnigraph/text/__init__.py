"""Full-text search over columns of text. Independent of graphs and storage."""
