"""What an actor sees under the read rules of a policy, as a view on a graph.

A rule that does not fit the schema shows nothing to anybody: every view is refused until it does.
Tests: tests/unit/policy/test_read_rules.py, tests/behaviour/test_read_access.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType

from msgspec import Struct

from omnigraph.catalog.model import Catalog, EntityType, NodeType
from omnigraph.diagnostics import shortened, with_hint
from omnigraph.errors import LanguageError, OmnigraphError
from omnigraph.plan.check_mutation import check_condition
from omnigraph.policy.document import Policy
from omnigraph.policy.read_rules import ACTOR, ALL_TYPES, Attribute, Grant
from omnigraph.read.row_predicates import parse_row_condition, row_predicate
from omnigraph.read.view import ReadView


class Visible(Struct, frozen=True):
    """What an actor sees of one type, and the rules that show it."""

    type: str
    rules: tuple[str, ...] = ()
    properties: frozenset[str] = frozenset()
    where: str | None = None
    is_limited: bool = True
    """Whether any rule names the type."""

    @property
    def is_hidden(self) -> bool:
        return self.is_limited and not self.rules


class Visibility:
    """The read rules of a policy on one schema. Thread-safe: what it remembers never changes."""

    def __init__(self, policy: Policy, catalog: Catalog) -> None:
        self._policy = policy
        self._catalog = catalog
        self._limited = {grant.type for rule in policy.read_rules for grant in rule.grants}
        self._views: dict[str | None, ReadView] = {}
        self.problems = tuple(self._problems())

    @property
    def catalog(self) -> Catalog:
        return self._catalog

    def view(self, actor: str | None) -> ReadView:
        """What an actor sees; everything if nothing is limited for it."""
        # All who are in no group see the same.
        known = actor if actor in self._policy.actors else None
        found = self._views.get(known)
        if found is None:
            found = self._views[known] = self._view(known)
        return found

    def _view(self, actor: str | None) -> ReadView:
        shown = [self.visible(actor, declared) for declared in self._catalog]
        declared = {found.name: found for found in self._catalog}
        if all(
            not one.is_hidden
            and one.where is None
            and one.properties == declared[one.type].properties.keys()
            for one in shown
        ):
            return ReadView.ALL
        known = {(one.type, name) for one in shown if not one.is_hidden for name in one.properties}
        known |= {(one.type, "") for one in shown if not one.is_hidden}
        rows = {one.type: one.where for one in shown if one.where is not None and not one.is_hidden}
        return ReadView(
            rows=MappingProxyType(rows),
            params=MappingProxyType(self._parameters(actor)),
            known=frozenset(known),
        )

    def visible(self, actor: str | None, declared: EntityType) -> Visible:
        """What an actor sees of a type: all that its rules show together."""
        name, everything = declared.name, frozenset(declared.properties)
        if not self._limited & {name, ALL_TYPES}:
            return Visible(name, (), everything, None, is_limited=False)
        grants = self._grants(actor, declared)
        if not grants:
            return Visible(name)
        rules = tuple(rule for rule, _ in grants)
        whole = [grant for _, grant in grants if grant.where is None]
        if whole:
            # Rows that a condition shows besides are visible already.
            return Visible(name, rules, _shown(declared, whole), None)
        conditions = list(dict.fromkeys(str(grant.where) for _, grant in grants))
        where = conditions[0] if len(conditions) == 1 else _any(conditions)
        return Visible(name, rules, _shown(declared, [grant for _, grant in grants]), where)

    def _grants(self, actor: str | None, declared: EntityType) -> list[tuple[str, Grant]]:
        """What the rules of an actor's groups show, by rule. One that needs an attribute which the
        actor does not have shows nothing."""
        found = []
        known = self._parameters(actor)
        for rule in self._policy.read_rules:
            grant = rule.of(declared.name)
            if grant is None or actor not in self._policy.groups.get(rule.group, ()):
                continue
            if set(_parameters_of(declared, grant)) <= known.keys():
                found.append((rule.id, grant))
        return found

    def _parameters(self, actor: str | None) -> dict[str, Attribute]:
        if actor is None:
            return {}
        return {**self._policy.attributes.get(actor, {}), ACTOR: actor}

    # -- what is wrong ----------------------------------------------------------------------

    def _problems(self) -> Iterator[str]:
        by_name = {declared.name: declared for declared in self._catalog}
        wrong = False
        for rule in self._policy.read_rules:
            for grant in rule.grants:
                if grant.type == ALL_TYPES:
                    continue
                place = f"read rule '{shortened(rule.id)}'"
                if grant.type not in by_name:
                    wrong = True
                    problem = f"{place}: the schema has no type '{shortened(grant.type)}'"
                    yield with_hint(problem, grant.type, by_name)
                    continue
                for found in self._wrong_grant(place, by_name[grant.type], grant):
                    wrong = True
                    yield found
        if not wrong:
            yield from self._wrong_sums()

    def _wrong_grant(self, place: str, declared: EntityType, grant: Grant) -> Iterator[str]:
        for name in (*(grant.properties or ()), *grant.hidden):
            if name not in declared.properties:
                problem = f"{place}: {declared.name} has no property '{shortened(name)}'"
                yield with_hint(problem, name, declared.properties)
        key = declared.key or () if isinstance(declared, NodeType) else ()
        for name in grant.hidden:
            if name in key:
                yield f"{place}: '{name}' is the key of {declared.name}; hide the type instead"
        try:
            names = _parameters_of(declared, grant)
        except LanguageError as error:
            yield f"{place}: {error}"
            return
        known = {ACTOR, *(name for own in self._policy.attributes.values() for name in own)}
        for name in names:
            if name not in known:
                yield with_hint(f"{place}: no actor has an attribute '{name}'", name, known)

    def _wrong_sums(self) -> Iterator[str]:
        """Rules that fit one by one and not together, or not the attributes of an actor."""
        for actor in sorted(self._policy.actors):
            for declared in self._catalog:
                grants = self._grants(actor, declared)
                yield from _mixed(actor, declared, grants)
                for rule, grant in grants:
                    if grant.where is not None:
                        try:
                            row_predicate(declared, grant.where, self._parameters(actor))
                        except OmnigraphError as error:
                            place = f"read rule '{shortened(rule)}' for actor '{shortened(actor)}'"
                            yield f"{place}: {error}"
                visible = self.visible(actor, declared)
                if visible.where is not None and len(grants) > 1:
                    try:
                        row_predicate(declared, visible.where, self._parameters(actor))
                    except OmnigraphError as error:
                        listed = ", ".join(f"'{rule}'" for rule, _ in grants)
                        yield f"read rules {listed} together: {error}"


def _mixed(actor: str, declared: EntityType, grants: Sequence[tuple[str, Grant]]) -> Iterator[str]:
    """A row shows the same properties whichever rule shows it; anything else cannot be a view."""
    whole = [grant for _, grant in grants if grant.where is None]
    base = _shown(declared, whole) if whole else None
    for rule, grant in grants:
        if grant.where is None:
            continue
        own = _shown(declared, [grant])
        if base is None:
            base = own
        if own != base and not (whole and own <= base):
            listed = " and ".join(sorted({f"'{rule}'", f"'{grants[0][0]}'"}))
            yield (
                f"actor '{shortened(actor)}' would see other properties of {declared.name} in some "
                f"rows (read rules {listed}); let them show the same properties"
            )
            return


def _shown(declared: EntityType, grants: Iterable[Grant]) -> frozenset[str]:
    """The properties that grants show together, with the key."""
    key = declared.key or () if isinstance(declared, NodeType) else ()
    shown: set[str] = set()
    for grant in grants:
        given = (
            declared.properties.keys() if grant.properties is None else {*grant.properties, *key}
        )
        shown |= {name for name in declared.properties if name in given} - {*grant.hidden}
    return frozenset(shown)


def _parameters_of(declared: EntityType, grant: Grant) -> tuple[str, ...]:
    """The parameters of a condition. Raises `LanguageError`."""
    if grant.where is None:
        return ()
    source, written = parse_row_condition(declared.name, grant.where)
    _, specs = check_condition(source, declared, written)
    return tuple(spec.name for spec in specs)


def _any(conditions: Sequence[str]) -> str:
    # A condition may end in a comment.
    return " or ".join(f"({condition}\n)" for condition in conditions)
