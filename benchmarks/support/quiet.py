"""Only errors of the storage libraries are shown. They look at this when they are imported, once."""

from __future__ import annotations

import os

os.environ.setdefault("LANCE_LOG", "error")
os.environ.setdefault("LANCEDB_LOG", "error")
