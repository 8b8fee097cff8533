"""The explorer's page, and the routes that were made for it."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest

from omnigraph.server.explorer import FOLDER, MEDIA_TYPES
from tests.server.serving import LIB, H, serving

ROOT = Path(__file__).parents[2]
FIRST_LOAD = ("", "/app.js", "/app.css", "/icon.svg")


@pytest.fixture(scope="module")
def guarded(graph_root, tmp_path_factory):
    env = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"amy": "t-amy"})}
    with serving(tmp_path_factory.mktemp("guarded"), graph_root, env=env) as running:
        yield running


def test_the_page_needs_no_token_and_contains_no_data(guarded):
    for path in FIRST_LOAD:
        answer = guarded.get(f"/explore{path}")
        assert answer.status_code == 200, path
        assert answer.content == (FOLDER / (path.strip("/") or "index.html")).read_bytes()
    assert guarded.get("/session", headers=H).status_code == 401


@pytest.mark.parametrize("name", MEDIA_TYPES)
def test_every_file_has_strict_headers(server, name):
    answer = server.get("/explore" if name == "index.html" else f"/explore/{name}")
    assert answer.headers["content-type"] == MEDIA_TYPES[name]
    policy = dict(
        part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; ")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-cache"


def test_a_file_is_compressed_for_those_who_accept_it(server):
    plain = server.get("/explore/app.js", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.content == (FOLDER / "app.js").read_bytes()
    packed = server.get("/explore/app.js", headers={"Accept-Encoding": "br, gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "Accept-Encoding"
    assert packed.content == plain.content
    assert packed.headers["etag"] != plain.headers["etag"]


def test_a_file_is_not_sent_again(server):
    tag = server.get("/explore/app.css").headers["etag"]
    again = server.get("/explore/app.css", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    ["/explore/", "/explore/index.html", "/explore/x.js", "/explore/..%2Fapp.py", "/explore/a/b"],
)
def test_nothing_else_is_sent(server, path):
    assert server.get(path).status_code == 404
    assert server.post("/explore").status_code == 405


def test_the_first_load_is_small():
    sizes = {name: len(gzip.compress((FOLDER / name).read_bytes(), 9)) for name in MEDIA_TYPES}
    assert sum(sizes.values()) < 500_000, sizes


def test_the_page_names_no_other_host():
    """No address but those of XML namespaces and of error messages of libraries."""
    for name in MEDIA_TYPES:
        text = (FOLDER / name).read_text(encoding="utf-8")
        hosts = set(re.findall(r"(?:https?:)?//([a-z0-9.-]+\.[a-z]{2,})", text))
        assert hosts <= {"www.w3.org", "github.com"}, name
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert "style=" not in page
    assert not re.search(r"<script(?![^>]* src=)|<style| on\w+=", page)


def test_the_sources_make_no_markup_of_text():
    for file in (ROOT / "explorer" / "src").rglob("*.ts*"):
        text = file.read_text(encoding="utf-8")
        for way in (
            "dangerouslySetInnerHTML",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "eval(",
        ):
            assert way not in text, f"{file.name} uses {way}"


def test_the_page_is_built_from_the_sources_there_are():
    folder = ROOT / "explorer"
    files = [file for file in (folder / "src").rglob("*") if file.is_file()]
    for name in ("build.mjs", "package-lock.json", "package.json", "tsconfig.json"):
        files.append(folder / name)
    digest = hashlib.sha256()
    for name in sorted(str(file.relative_to(folder)) for file in files):
        digest.update(name.encode() + b"\0" + (folder / name).read_bytes() + b"\0")
    recorded = json.loads((FOLDER / "build.json").read_text(encoding="utf-8"))["sources"]
    assert recorded == digest.hexdigest(), "the sources have changed: run `make explorer`"


def test_the_lock_file_names_no_address():
    lock = (ROOT / "explorer" / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    assert not [one for one in re.findall(r"https?://[^\"]+", lock) if "registry" in one]


# -- routes -----------------------------------------------------------------------------------


def test_the_session_tells_who_one_is(server, guarded):
    token = {"Authorization": "Bearer t-amy"}
    found = guarded.get("/session", headers=H | token).json()
    assert (found["actor_id"], found["graphs"]) == ("amy", ["default"])
    assert server.get("/session", headers=H).json()["actor_id"] is None


def test_permissions_tell_what_a_token_may_do(server, guarded):
    everything = server.get13("/permissions").json()
    assert everything == {
        "actor_id": None, "branch": "main", "target": "main",
        "read": True, "change": True, "merge": True,
    }  # fmt: skip
    given = H | {"Authorization": "Bearer t-amy"}
    path = "/graphs/default/permissions"
    reads = guarded.get(path, headers=given, params={"branch": "review"}).json()
    assert (reads["read"], reads["change"], reads["merge"]) == (True, False, False)
    assert guarded.get(path, headers=given, params={"nope": "1"}).status_code == 400


def test_check_finds_the_mistakes_of_a_text_without_running_it(server):
    found = server.post13("/check", {"query": LIB}).json()
    assert found["diagnostics"] == []
    assert [(one["name"], one["mutation"]) for one in found["queries"]][:2] == [
        ("by_slug", False),
        ("all_authors", False),
    ]
    assert found["queries"][2] == {
        "name": "add_author",
        "mutation": True,
        "params": [
            {"name": "slug", "type": "String", "has_default": False},
            {"name": "born", "type": "I32", "has_default": False},
        ],
    }
    text = "query q() {\n    match { $a: Author { slg: 1 } }\n    return { $a }\n}"
    (wrong,) = server.post13("/check", {"query": text}).json()["diagnostics"]
    assert (wrong["line"], wrong["column"], wrong["end_column"]) == (2, 26, 29)
    assert "slug" in wrong["hint"]
    (wrong,) = server.post13("/check", {"query": "query q("}).json()["diagnostics"]
    assert wrong["code"] == "Q001"
    empty = server.post13("/check", {"query": "", "branch": "nope"})
    assert empty.status_code == 404
