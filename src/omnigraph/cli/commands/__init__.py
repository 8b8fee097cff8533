"""One module per command, each with a click command called `command`.

`omnigraph.cli.command_table` says which exist; nothing here is imported before its command runs.
"""
