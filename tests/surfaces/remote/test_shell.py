"""The shell and bisect on a graph behind a server: the same answers as on the graph itself."""

from __future__ import annotations

import json

import pytest

INPUT = """\
.schema Author
match { $a: Author { slug: "ada" } }
return { $a.slug, $a.born }
order { $a.slug }

match { $a: Author { slugg: "x" } } return { $a.slug }

.read lib.gq
.run by_slug slug=ada
.checkout nowhere
.branches
"""


def test_the_shell_says_the_same_on_both(cli, here, pair):
    there, local = (cli("shell", uri, stdin=INPUT.encode()) for uri in (pair.url, pair.local))
    assert there.out == local.out
    assert (there.code, local.code) == (1, 1)
    assert "ada" in there.out
    assert "did you mean `slug`?" in there.out


@pytest.fixture
def written(cli, here, pair) -> list[str]:
    """Commits made through the server."""
    made = []
    for number in range(5):
        text = f'query add() {{ insert Author {{ slug: "m{number}" }} }}'
        done = cli("mutate", pair.url, "-e", text, "--json", "--quiet")
        made.append(json.loads(done.out)["graph_commit_id"])
    return made


def test_bisect_finds_the_commit_through_a_server(cli, pair, written):
    query = 'query q() { match { $a: Author { slug: "m2" } } return { $a.slug } }'
    found = cli("bisect", pair.url, "-e", query, "--json")
    assert found.code == 0, found.err
    assert json.loads(found.out)["first_failing"]["graph_commit_id"] == written[2]


def test_read_only_is_for_storage(cli, pair):
    code, _, err = cli("shell", pair.url, "--read-only")
    assert code == 1
    assert "on a server the token decides" in err
