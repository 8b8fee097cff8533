"""`python -m omnigraph.error_codes > docs/user/errors.md` writes the reference page."""

from __future__ import annotations

import sys

from omnigraph.error_codes.page import error_page

if __name__ == "__main__":
    sys.stdout.write(error_page())
