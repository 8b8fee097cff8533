"""The HTTP server: one set of handlers for both contracts of the API."""
