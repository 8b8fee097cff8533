"""Graph algorithms over one snapshot: array kernels, and the edges they run on."""
