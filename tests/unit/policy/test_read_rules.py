"""Read rules: what is accepted, what is wrong with them, and what an actor sees under them."""

from __future__ import annotations

import pytest

from omnigraph.catalog.compile import compile_schema
from omnigraph.errors import PolicyInvalid, PolicyUndecided
from omnigraph.language.syntax import Source
from omnigraph.policy.document import PolicyKind, parse_policy
from omnigraph.policy.gate import PolicyGate
from omnigraph.policy.read_rules import Grant, ReadRule
from omnigraph.read.view import ReadView

SCHEMA = """\
node Person { slug: String @key team: String? salary: I64? phone: String? }
node Note { slug: String @key secret: Bool? text: String? owner: String? }
node Plain { slug: String @key }
edge Wrote: Person -> Note
"""
CATALOG = compile_schema(Source("<schema>", SCHEMA))

HEAD = """\
version: 1
groups: {staff: [amy, bob, root], leads: [bob], admins: [root]}
attributes: {amy: {team: north, level: 2}, bob: {team: south, level: 3}}
"""

RULES = """\
read_rules:
  - id: admins-see-all
    allow: {actors: {group: admins}, types: {Person: , Note: }}
  - id: own-team
    allow:
      actors: {group: staff}
      types:
        Person: {where: team = $team, except: [salary]}
        Note: {where: not secret}
  - id: own-notes
    allow: {actors: {group: staff}, types: {Note: {where: owner = $actor}}}
"""


def gate(rules: str = RULES) -> PolicyGate:
    return PolicyGate(parse_policy(HEAD + rules, "p.yaml"))


def problems(rules: str, kind: PolicyKind | None = None) -> tuple[str, ...]:
    with pytest.raises(PolicyInvalid) as caught:
        parse_policy(HEAD + rules, "p.yaml", kind)
    return caught.value.problems


def one_rule(types: str) -> str:
    return f"read_rules:\n  - {{id: r, allow: {{actors: {{group: staff}}, types: {types}}}}}\n"


def misfits(rules: str) -> tuple[str, ...]:
    return gate(rules).visibility(CATALOG).problems


def visible(actor: str | None, type_name: str, rules: str = RULES):
    of = {declared.name: declared for declared in CATALOG}[type_name]
    return gate(rules).visibility(CATALOG).visible(actor, of)


def test_rules_are_read():
    policy = gate().policy
    assert policy.read_rules[1] == ReadRule(
        "own-team",
        "staff",
        (Grant("Person", "team = $team", None, ("salary",)), Grant("Note", "not secret")),
    )
    assert policy.attributes["amy"] == {"team": "north", "level": 2}
    assert policy.unknown_keys == ()


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ("read_rules: [{id: r}]", "allow is missing"),
        (one_rule("{}"), "types must not be empty"),
        (one_rule("{Person: {wher: x}}"), "unknown key 'wher'; use where, properties, except"),
        (one_rule("{Person: {where: 'a ='}}"), "types.Person.where: "),
        (one_rule("{Person: {properties: [a], except: [b]}}"), "use one of them"),
        (one_rule("{'*': {where: a = 1}}"), "limit a type under its own name"),
        (one_rule("{Person: }").replace("staff", "nobody"), "references unknown group 'nobody'"),
        (one_rule("{Person: }").replace("id: r,", "id: r, rows: 1,"), "unknown key 'rows'"),
        (one_rule("{Person: }") + one_rule("{Note: }").split("\n", 1)[1], "duplicate read rule id"),
        ("attributes: {amy: {actor: x}}", "'actor' cannot name an attribute"),
        ("attributes: {amy: {'a-b': x}}", "'a-b' cannot name an attribute"),
        ("attributes: {amy: {a: {b: 1}}}", "must be a text, a number"),
    ],
)
def test_what_is_wrong_with_a_rule_is_an_error(rules, problem):
    head = "version: 1\ngroups: {staff: [amy]}\n"
    with pytest.raises(PolicyInvalid) as caught:
        parse_policy(head + rules, "p.yaml")
    assert problem in str(caught.value)


def test_a_server_has_no_read_rules():
    assert "per-graph" in problems(one_rule("{Person: }"), PolicyKind.SERVER)[0]


@pytest.mark.parametrize(
    ("types", "problem"),
    [
        ("{Persn: }", "no type 'Persn'; did you mean `Person`?"),
        ("{Person: {except: [salry]}}", "no property 'salry'"),
        ("{Person: {properties: [salry]}}", "no property 'salry'"),
        ("{Person: {except: [slug]}}", "the key of Person"),
        ("{Person: {where: tem = 1}}", "tem"),
        ("{Person: {where: team = $tem}}", "no actor has an attribute 'tem'"),
        ("{Person: {where: salary = $team}}", "for actor 'amy'"),
    ],
)
def test_rules_have_to_fit_the_schema(types, problem):
    found = misfits(one_rule(types))
    assert problem in " ".join(found)
    with pytest.raises(PolicyInvalid):
        gate(one_rule(types)).check_reads(CATALOG)
    with pytest.raises(PolicyUndecided) as caught:
        gate(one_rule(types)).view("root", CATALOG)
    assert "Person" not in str(caught.value)


def test_rows_of_one_type_show_the_same_properties():
    two = (
        "read_rules:\n"
        "  - {id: a, allow: {actors: {group: staff}, types: {Person: {where: salary > 3}}}}\n"
        "  - {id: b, allow: {actors: {group: leads}, types: "
        "{Person: {where: salary < 3, properties: [team]}}}}\n"
    )
    (problem,) = misfits(two)
    assert "actor 'bob' would see other properties of Person in some rows" in problem
    whole = two.replace("{where: salary > 3}", "{except: [phone]}")
    assert misfits(whole) == ()
    wider = two.replace("{where: salary > 3}", "{properties: [phone]}")
    assert "other properties" in misfits(wider)[0]


def test_rules_show_together_what_each_of_them_shows():
    assert misfits(RULES) == ()
    person = visible("amy", "Person")
    assert person.properties == {"slug", "team", "phone"}
    assert (person.where, person.rules) == ("team = $team", ("own-team",))
    assert visible("amy", "Note").where == "(not secret\n) or (owner = $actor\n)"
    root = visible("root", "Person")
    assert (root.where, "salary" in root.properties) == (None, True)
    assert visible("eve", "Person").is_hidden
    assert visible(None, "Note").is_hidden
    assert not visible(None, "Plain").is_limited


def test_a_rule_needs_the_attributes_it_names():
    rules = one_rule("{Person: {where: level is null or team = $team}}").replace("level", "salary")
    assert not visible("amy", "Person", rules).is_hidden
    assert visible("root", "Person", rules).is_hidden


def test_views():
    found = gate()
    assert found.view("root", CATALOG) is ReadView.ALL
    amy = found.view("amy", CATALOG)
    assert amy is found.view("amy", CATALOG)
    assert sorted(amy.restrict(CATALOG).nodes) == ["Note", "Person", "Plain"]
    nobody = found.view("eve", CATALOG)
    assert nobody is found.view(None, CATALOG)
    assert list(nobody.restrict(CATALOG).nodes) == ["Plain"]
    assert list(nobody.restrict(CATALOG).edges) == []


def test_a_star_names_every_type():
    rules = (
        "read_rules:\n"
        "  - {id: a, allow: {actors: {group: admins}, types: {'*': }}}\n"
        "  - {id: b, allow: {actors: {group: staff}, types: {Person: {except: [salary]}}}}\n"
    )
    found = gate(rules)
    assert found.view("root", CATALOG) is ReadView.ALL
    assert list(found.view("amy", CATALOG).restrict(CATALOG).nodes) == ["Person"]
