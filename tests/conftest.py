"""Set-up shared by all tests."""

from __future__ import annotations

import signal

from hypothesis import settings

pytest_plugins = ["pytester", "tests.acceptance.plugin"]

# A time limit per example only measures how busy the machine is.
settings.register_profile("omnigraph", deadline=None, print_blob=True)
settings.load_profile("omnigraph")

# Whoever runs the tests in the background may have told them to ignore interrupts, which some send.
signal.signal(signal.SIGINT, signal.default_int_handler)
