"""Set-up shared by all tests."""

from __future__ import annotations

from hypothesis import settings

pytest_plugins = ["pytester", "tests.acceptance.plugin"]

# A time limit per example only measures how busy the machine is.
settings.register_profile("omnigraph", deadline=None, print_blob=True)
settings.load_profile("omnigraph")
