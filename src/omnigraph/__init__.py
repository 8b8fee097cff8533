"""OmniGraph: a typed property graph with branches and history.

This module is the public interface; everything behind it may change.
"""

from omnigraph import errors
from omnigraph._version import __version__
from omnigraph.errors import OmnigraphError

__all__ = ["OmnigraphError", "__version__", "errors"]
