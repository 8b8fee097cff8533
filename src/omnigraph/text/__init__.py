"""Full text: words of texts, and searching columns of them. Knows nothing of graphs or storage."""
