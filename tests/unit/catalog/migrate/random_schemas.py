"""Random schemas as a small model that prints itself, and random changes that must be possible.

The model knows where every evolved type and property comes from (`origin`), so the tests can check
the planner's identities against an account that the planner had no part in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, TypeVar

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")

TYPES = (
    "String", "String?", "Bool?", "I32", "I64?", "F64", "Date?", "[String]?", "Blob?",
    "Vector(2)", "Vector(2)?", "enum(a)", "enum(a, b)?", "enum(b, c)",
)  # fmt: skip
BACKFILLS = {"String": '"x"', "I32": "3", "F64": "1.5", "Vector(2)": '"[0, 1]"', "enum(a)": "a"}
CUSTOM = ("@hue", "@hue(warm)", "@hue(cold)")


@dataclass(frozen=True)
class Prop:
    name: str
    type: str
    origin: str | None = None
    notes: tuple[str, ...] = ()
    embed: str | None = None

    def text(self, order: Random) -> str:
        notes = [*self.notes, *hint(self.name, self.origin)]
        if self.embed:
            notes.append(f"@embed({self.embed})")
        return " ".join(
            [f"{self.name}: {shuffled_enum(self.type, order)}", *shuffled(notes, order)]
        )


@dataclass(frozen=True)
class Constraint:
    word: str
    columns: tuple[str, ...]
    argument: str = ""

    def text(self, order: Random) -> str:
        columns = ", ".join(shuffled(self.columns, order))
        return f"@{self.word}({columns}{self.argument})"


@dataclass(frozen=True)
class Decl:
    kind: str
    name: str
    props: tuple[Prop, ...]
    constraints: tuple[Constraint, ...] = ()
    notes: tuple[str, ...] = ()
    origin: str | None = None
    implements: tuple[str, ...] = ()
    ends: tuple[str, str] = ("", "")
    card: str = ""

    def text(self, order: Random) -> str:
        notes = shuffled([*self.notes, *hint(self.name, self.origin)], order)
        header = [f"{self.kind} {self.name}"]
        if self.kind == "edge":
            header = [f"edge {self.name}: {self.ends[0]} -> {self.ends[1]} {self.card}"]
        header += notes
        if self.implements:
            header.append(f"implements {', '.join(shuffled(self.implements, order))}")
        written: list[Prop | Constraint] = [*self.props, *self.constraints]
        members = [m.text(order) for m in shuffled(written, order)]
        return "\n    ".join([f"{' '.join(header)} {{", *members]) + "\n}"


Schema = tuple[Decl, ...]


def schema_text(schema: Schema, order: Random | None = None) -> str:
    """The schema as source; what `order` decides has no meaning."""
    order = order or Random(0)
    return "\n".join(d.text(order) for d in shuffled(schema, order))


def all_props(schema: Schema, decl: Decl) -> list[Prop]:
    """The properties of a declaration with those its interfaces give it."""
    given = [p for d in schema if d.name in decl.implements for p in d.props]
    return [*decl.props, *given]


def hint(name: str, origin: str | None) -> list[str]:
    return [f'@rename_from("{origin}")'] if origin not in (None, name) else []


def shuffled(items: Iterable[T], order: Random) -> list[T]:
    result = list(items)
    order.shuffle(result)
    return result


def shuffled_enum(type_text: str, order: Random) -> str:
    if not type_text.startswith("enum("):
        return type_text
    inside, _, mark = type_text.removeprefix("enum(").partition(")")
    return f"enum({', '.join(shuffled(inside.split(', '), order))}){mark}"


# Any schema, out of few names, so that two of them have much in common


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    interfaces = [draw(declaration("interface", f"I{i}", (f"q{i}", f"r{i}"))) for i in range(2)]
    interfaces = interfaces[: draw(st.integers(0, 2))]
    node_names = draw(st.lists(st.sampled_from(["A", "B", "C"]), min_size=1, unique=True))
    edge_names = draw(st.lists(st.sampled_from(["X", "Y", "Z"]), max_size=2, unique=True))
    nodes = [draw(declaration("node", name, ("a", "b", "src", "d"))) for name in node_names]
    edges = [draw(declaration("edge", name, ("a", "b", "src"))) for name in edge_names]
    names = st.sampled_from(node_names)
    inherits = st.lists(st.sampled_from([i.name for i in interfaces] or [""]), unique=True)
    return (
        *interfaces,
        *(replace(n, implements=tuple(filter(None, draw(inherits)))) for n in nodes),
        *(replace(e, ends=(draw(names), draw(names))) for e in edges),
    )


@st.composite
def declaration(draw: st.DrawFn, kind: str, name: str, pool: tuple[str, ...]) -> Decl:
    names = draw(st.lists(st.sampled_from(pool), unique=True))
    props = [
        Prop(
            prop,
            draw(st.sampled_from(TYPES)),
            origin=draw(st.sampled_from([None, None, None, *pool])),
            notes=draw(notes()),
        )
        for prop in names
    ]
    texts = [p.name for p in props if p.type in ("String", "String?")]
    if kind == "node" and texts:
        props = [
            replace(p, embed=draw(st.sampled_from([None, *texts])))
            if p.type.startswith("Vector")
            else p
            for p in props
        ]
    if kind == "interface":
        return Decl(kind, name, tuple(props))
    return Decl(
        kind,
        name,
        tuple(props),
        constraints=draw(constraints(kind, props)),
        notes=draw(notes()),
        origin=draw(st.sampled_from([None, None, "A", "B", "X"])),
        card=draw(st.sampled_from(["", "@card(0..1)", "@card(1..)"])) if kind == "edge" else "",
    )


def notes() -> st.SearchStrategy[tuple[str, ...]]:
    described = st.sampled_from([(), (), ('@description("one")',), ('@description("two")',)])
    custom = st.sampled_from([(), (), (), *((note,) for note in CUSTOM)])
    return st.tuples(described, custom).map(lambda pair: (*pair[0], *pair[1]))


@st.composite
def constraints(draw: st.DrawFn, kind: str, props: list[Prop]) -> tuple[Constraint, ...]:
    columns = [p.name for p in props if p.type != "Blob?"]
    if kind == "edge":
        columns = sorted({*columns, "src", "dst"})
    possible: list[Constraint] = []
    if columns:
        groups = st.lists(st.sampled_from(columns), min_size=1, max_size=2, unique=True)
        possible += [
            Constraint("index", tuple(draw(groups))),
            Constraint("unique", tuple(draw(groups))),
        ]
    if kind == "node":
        possible += [Constraint("key", (p.name,)) for p in props if p.type == "String"][:1]
        possible += [Constraint("range", (p.name,), ", 0..9") for p in props if p.type == "I32"]
        possible += [Constraint("check", (p.name,), ', "x"') for p in props if p.type == "String"]
    chosen = st.lists(st.sampled_from(possible), unique=True) if possible else st.just([])
    return tuple(draw(chosen))


# Changes that can be made


@st.composite
def evolutions(draw: st.DrawFn) -> tuple[Schema, Schema]:
    """A schema and what became of it by supported changes."""
    before = draw(schemas())
    after = tuple(
        replace(d, origin=d.name, props=tuple(replace(p, origin=p.name) for p in d.props))
        for d in before
    )
    for number in range(draw(st.integers(0, 8))):
        change = draw(st.sampled_from(CHANGES))
        after = change(draw, after, str(number))
    return before, after


def with_new_type(draw: st.DrawFn, schema: Schema, fresh: str) -> Schema:
    return (*schema, Decl("node", f"New{fresh}", (Prop("a", "String"),)))


def without_an_edge(draw: st.DrawFn, schema: Schema, fresh: str) -> Schema:
    edges = [d for d in schema if d.kind == "edge"]
    gone = draw(st.sampled_from(edges)) if edges else None
    return tuple(d for d in schema if d is not gone)


def with_a_renamed_type(draw: st.DrawFn, schema: Schema, fresh: str) -> Schema:
    chosen = draw(st.sampled_from([d for d in schema if d.kind != "interface"]))
    new = f"Renamed{fresh}"

    def follow(decl: Decl) -> Decl:
        if decl is chosen:
            decl = replace(decl, name=new)
        if chosen.kind == "node" and decl.kind == "edge":
            start, end = (new if e == chosen.name else e for e in decl.ends)
            decl = replace(decl, ends=(start, end))
        return decl

    return tuple(follow(d) for d in schema)


def with_a_renamed_property(draw: st.DrawFn, schema: Schema, fresh: str) -> Schema:
    def rename(decl: Decl) -> Decl:
        chosen = draw(st.sampled_from(decl.props)).name
        new = f"renamed{fresh}"
        # In the constraints of an edge `src` is its end, whatever its properties are called.
        fixed = ("src", "dst") if decl.kind == "edge" else ()

        def follow(name: str) -> str:
            return new if name == chosen else name

        return replace(
            decl,
            props=tuple(
                replace(p, name=follow(p.name), embed=follow(p.embed) if p.embed else None)
                for p in decl.props
            ),
            constraints=tuple(
                replace(c, columns=tuple(x if x in fixed else follow(x) for x in c.columns))
                for c in decl.constraints
            ),
        )

    return edit(draw, schema, [d for d in schema if d.props], rename)


def with_a_new_property(draw: st.DrawFn, schema: Schema, fresh: str) -> Schema:
    def add(decl: Decl) -> Decl:
        kind = draw(st.sampled_from([t for t in TYPES if t.endswith("?") or t in BACKFILLS]))
        note = (f"@backfill({BACKFILLS[kind]})",) if kind in BACKFILLS else ()
        return replace(decl, props=(*decl.props, Prop(f"new{fresh}", kind, notes=note)))

    return edit(draw, schema, schema, add)


def without_a_property(draw: st.DrawFn, schema: Schema, fresh: str) -> Schema:
    def drop(decl: Decl) -> Decl:
        used = {x for c in decl.constraints for x in c.columns} | {p.embed for p in decl.props}
        free = [p for p in decl.props if p.name not in used]
        gone = draw(st.sampled_from(free)) if free else None
        return replace(decl, props=tuple(p for p in decl.props if p is not gone))

    return edit(draw, schema, schema, drop)


def with_a_longer_enum(draw: st.DrawFn, schema: Schema, fresh: str) -> Schema:
    def extend(decl: Decl) -> Decl:
        return replace(
            decl,
            props=tuple(
                replace(p, type=p.type.replace(")", f", v{fresh})"))
                if p.type.startswith("enum")
                else p
                for p in decl.props
            ),
        )

    return edit(draw, schema, schema, extend)


def with_an_index(draw: st.DrawFn, schema: Schema, fresh: str) -> Schema:
    def index(decl: Decl) -> Decl:
        column = draw(st.sampled_from([p for p in decl.props if p.type != "Blob?"])).name
        constraint = Constraint("index", (column,))
        return replace(decl, constraints=(*decl.constraints, constraint))

    owners = [
        d for d in schema if d.kind != "interface" and any(p.type != "Blob?" for p in d.props)
    ]
    return edit(draw, schema, owners, index)


def with_a_description(draw: st.DrawFn, schema: Schema, fresh: str) -> Schema:
    def describe(decl: Decl) -> Decl:
        kept = tuple(n for n in decl.notes if not n.startswith("@description"))
        return replace(decl, notes=(*kept, f'@description("{fresh}")'))

    return edit(draw, schema, [d for d in schema if d.kind != "interface"], describe)


def edit(
    draw: st.DrawFn, schema: Schema, choices: Sequence[Decl], change: Callable[[Decl], Decl]
) -> Schema:
    """The schema with one of the choices changed; unchanged when there is no choice."""
    if not choices:
        return schema
    chosen = draw(st.sampled_from(choices))
    return tuple(change(d) if d is chosen else d for d in schema)


CHANGES = (
    with_new_type,
    without_an_edge,
    with_a_renamed_type,
    with_a_renamed_property,
    with_a_new_property,
    without_a_property,
    with_a_longer_enum,
    with_an_index,
    with_a_description,
)
