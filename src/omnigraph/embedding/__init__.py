"""Computing and storing the vectors of `@embed` properties."""
