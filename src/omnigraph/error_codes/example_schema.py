"""The schema that the query examples of the registry are written against."""

from __future__ import annotations

from typing import Final

EXAMPLE_SCHEMA: Final = """\
node Person {
    email: String @key
    name: String @index
    role: enum(author, editor, reviewer)?
    age: I32?
    topics: [String]?
    joined: DateTime?
    photo: Blob?
}

node Article {
    slug: String @key
    title: String @index
    published: Date?
    vec: Vector(3)? @embed(title)
}

edge Follows: Person -> Person

edge Wrote: Person -> Article

edge Reviewed: Person -> Article {
    stars: I32?
    @unique(src, dst)
}
"""
