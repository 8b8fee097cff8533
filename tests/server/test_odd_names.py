"""Names that try to be something else: in paths, in bodies, in the query string."""

from __future__ import annotations

import json
from urllib.parse import quote, unquote

import pytest

from tests.server.serving import LIB, H

ODD = [
    "..", ".", "../..", "../../etc/passwd", "/", "//", "/etc/passwd", "\\", "a\\..\\b", "%2F", "%2e%2e",
    "%252F", "\0", "main\0", "\r\nX-Injected: 1", "\n", "\t", "\x7f", "\x1b[31m", "a b", "~",
    "@{0}", "-x", "--help", "é", "e\u0301", "\u212a", "\uff2d\uff21\uff29\uff2e", "\u200bmain",
    "\u3000", "\u202emain", "\U0001f4a9", "{graph_id}", "${x}", "$(id)", "`id`", "'; drop --", '"', "<script>",
    "*", "?", "#", "a" * 300, "a" * 20_000, "__proto__", "refs/heads/main", "file:///etc/passwd",
    "s3://bucket/x", "C:\\x", "con", ".git", "nul",
]  # fmt: skip
"""Names that exist nowhere."""


def sent(server, method, path, body=None, headers=None):
    """An answer that is an error, well-formed and without a trace of the server."""
    given = {"Content-Type": "application/json"} | (headers or {})
    content = None if body is None else json.dumps(body)
    answer = server.client.request(method, path, content=content, headers=given)
    assert 400 <= answer.status_code < 500, f"{method} {path[:80]}: {answer.text[:200]}"
    document = answer.json()
    assert document["error"]
    assert "Traceback" not in answer.text
    assert "x-injected" not in answer.headers
    assert len(answer.content) < 100_000
    return answer


@pytest.mark.parametrize("name", ODD, ids=lambda name: ascii(name[:20]))
def test_odd_names_in_paths_are_errors(server, name):
    encoded = quote(name, safe="")
    for method, path in (
        ("DELETE", f"/branches/{encoded}"),
        ("POST", f"/queries/{encoded}"),
        ("GET", f"/entities/Author/{encoded}"),
        ("GET", f"/entities/{encoded}/ada"),
        ("GET", f"/entities/{encoded}/ada/history"),
        ("GET", f"/runs/{encoded}"),
    ):
        if name in (".", ".."):
            path = path.replace(encoded, encoded.replace(".", "%2e"))
        sent(server, method, path)
    for path in (f"/graphs/{encoded}/snapshot", f"/graphs/default/queries/{encoded}"):
        method = "GET" if path.endswith("/snapshot") else "POST"
        if name in (".", ".."):
            path = path.replace(encoded, encoded.replace(".", "%2e"))
        sent(server, method, path, headers=H)
    if name not in ("main^"):
        sent(server, "GET", f"/commits/{encoded.replace('.', '%2e')}")


@pytest.mark.parametrize("name", ODD, ids=lambda name: ascii(name[:20]))
def test_odd_names_elsewhere_are_errors_and_make_nothing(server, name):
    before = server.get("/branches").text, server.head()
    encoded = quote(name, safe="")
    read = {"query": LIB, "name": "all_authors"}
    row = '{"type":"Author","data":{"slug":"odd"}}\n'
    if name.strip():
        for path in ("/snapshot", "/status", "/changes", "/commits"):
            sent(server, "GET", f"{path}?branch={encoded}")
        sent(server, "POST", "/query", read | {"branch": name})
        sent(server, "POST", "/export", {"branch": name})
        sent(server, "POST", "/branches/merge", {"source": name})
        sent(server, "POST", "/load", {"data": row, "branch": name})
        sent(server, "POST", "/mutate", {"query": LIB, "name": "add_author", "branch": name})
        sent(server, "POST", "/branches", {"name": "made", "from": name + "/nowhere"})
    sent(server, "POST", "/query", read | {"name": name})
    sent(server, "POST", "/export", {"type_names": [name]})
    if name not in ("main^"):
        sent(server, "POST", "/query", read | {"snapshot": name})
        sent(server, "POST", "/diff", {"from": name, "to": "main"})
    sent(server, "GET", f"/graphs/default/changes?cursor={encoded}", headers=H)
    sent(server, "GET", f"/graphs/default/changes?page_token={encoded}", headers=H)
    sent(server, "POST", "/branches/merge", {"source": "main", "strategy": name})
    sent(server, "GET", f"/changes?limit={encoded}")
    assert (server.get("/branches").text, server.head()) == before


def test_names_are_decoded_once(server):
    server.branch("a/b")
    assert server.client.delete("/branches/a%252Fb").status_code in (400, 404)
    assert server.client.delete("/branches/a/b").status_code == 404
    assert server.client.delete("/branches/a%2Fb").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "//healthz", "/healthz/", "/HEALTHZ", "/%68ealthz", "/healthz%20", "/healthz%00", "/healthz;x",
        "/graphs//snapshot", "/graphs/default//snapshot", "/", "/..%2fhealthz", "/branches%2Fmain",
    ],
)  # fmt: skip
def test_other_spellings_of_a_path_are_not_found(server, path):
    for headers in ({}, H):
        assert sent(server, "GET", path, headers=headers).status_code == 404


def test_a_padded_branch_is_the_branch(server):
    """So that no policy for the branch is avoided by spaces around its name."""
    for name in ("%20main", "main%09", "%E3%80%80main%0A"):
        answer = server.get(f"/snapshot?branch={name}")
        assert answer.json()["branch"] == "main", unquote(name)


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("1e999", 422), ("-1e999", 422), ("9" * 5000, 422), ("NaN", 400), ("Infinity", 400), ("01", 400),
        ("0x10", 400), ("1.5", 400), ("1e0", 400), (str(2**31), 400), (str(2**63), 400), (str(2**64), 400),
        ('"' + "9" * 5000 + '"', 400), ("[1]", 400), ("{}", 400), ("true", 400), ("[" * 900 + "]" * 900, 400),
    ],
    ids=lambda value: str(value)[:12],
)  # fmt: skip
def test_numbers_that_do_not_fit(server, value, status):
    head = server.head()
    text = json.dumps({"query": LIB, "name": "set_born"})[:-1]
    body = f'{text}, "params": {{"slug": "ada", "born": {value}}}}}'
    answer = server.client.post(
        "/mutate", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in (status, 400), answer.text
    assert server.head() == head


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"Author","data":{"slug":"n","born":1e999}}',
        '{"type":"Author","id":"n","data":{"born":1e999}}',
        '{"type":"Author","id":"n","data":{"born":-1e999}}',
        '{"type":"Author","id":"n","data":{"born":NaN}}',
        '{"type":"Author","id":"n","data":{"born":' + "9" * 30 + "}}",
        '{"type":"Author","id":"n","data":{"born":' + "9" * 5000 + "}}",
        '{"type":"Author","id":"n","data":{"born":1,"born":2}}',
        '{"type":"Author","id":"n","id":"m","data":{}}',
        '{"type":"Author","id":"\\ud800","data":{}}',
        '{"type":"Author","data":{"slug":"\\ud800"}}',
        '{"type":"Author","id":5,"data":{}}',
        '{"type":"Author","data":{"id":5}}',
        '{"type":"Author","data":null}',
        '\ufeff{"type":"Author","id":"n"}',
    ],
    ids=lambda line: ascii(line[:44]),
)  # fmt: skip
def test_lines_that_do_not_fit_load_nothing(server, line):
    head = server.head()
    given = H | {"Content-Type": "application/x-ndjson"}
    answer = server.client.post("/graphs/default/load/ndjson", content=line.encode(), headers=given)
    assert answer.status_code == 400, answer.text
    assert "line 1" in answer.json()["error"]
    assert "sys." not in answer.text
    assert server.head() == head


def test_utf_16_is_not_utf_8(server):
    given = H | {"Content-Type": "application/x-ndjson"}
    for encoding in ("utf-16", "utf-16-le", "utf-32", "latin-1"):
        content = '{"type":"Author","id":"ñ"}'.encode(encoding)
        answer = server.client.post("/graphs/default/load/ndjson", content=content, headers=given)
        assert answer.status_code == 400, encoding


def test_the_last_of_two_members_is_the_one_that_the_policy_sees(server):
    text = json.dumps({"query": LIB, "name": "all_authors", "branch": "nope"})[:-1]
    answer = server.client.post(
        "/query",
        content=text + ', "branch": "main"}',
        headers={"Content-Type": "application/json"},
    )
    assert answer.json()["target"]["branch"] == "main"
