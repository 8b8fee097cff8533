"""The version of the package; the build reads it from here, and so does ``omnigraph version``."""

__version__ = "0.1.0"
