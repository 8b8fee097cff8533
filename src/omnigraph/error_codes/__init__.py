"""What every error code means, as data: `omnigraph errors`, the page and the tests read it.

Nothing here raises or checks anything. `python -m omnigraph.error_codes` prints the page.
"""

from omnigraph.error_codes.entry import ErrorCode
from omnigraph.error_codes.example_schema import EXAMPLE_SCHEMA
from omnigraph.error_codes.registry import REGISTRY

__all__ = ["EXAMPLE_SCHEMA", "REGISTRY", "ErrorCode"]
