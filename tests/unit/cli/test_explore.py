"""`omnigraph explore` on a server. On storage it is tested in tests/server/test_explore_command.py."""

from __future__ import annotations

import json

SERVER = ("--server", "http://127.0.0.1:9")


def test_the_page_of_a_server_is_shown_without_a_token(cli):
    shown = cli("explore", *SERVER, "--graph", "team", "--no-browser")
    assert shown.out == "http://127.0.0.1:9/explore#/overview?graph=team\n"
    shown = cli("explore", *SERVER, "--no-browser", "--json")
    assert json.loads(shown.out) == {"address": "http://127.0.0.1:9/explore"}
