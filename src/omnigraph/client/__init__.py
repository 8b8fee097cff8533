"""The client: a graph behind a server, with the calls, results and errors of an embedded one.

`transport` speaks HTTP and imports nothing heavy, so that the command line can use it alone.
"""
