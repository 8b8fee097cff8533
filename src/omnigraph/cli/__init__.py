"""The `omnigraph` command: parse arguments, make one call, render the answer.

Start-up time is part of the contract: `main` and everything it imports stay small, and a command
module is loaded only when that command runs.
"""
