"""The graph as tools and resources of the Model Context Protocol, for agents.

Every tool is one request of the HTTP API, so tokens, policies, limits and errors are those of a server.
Start reading at `tools.py`. Tests: tests/server/test_mcp.py, tests/unit/mcp.
"""
