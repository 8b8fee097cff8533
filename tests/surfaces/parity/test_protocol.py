"""What is offered has the names and signatures of the protocols, and nothing else."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import omnigraph as og
from omnigraph.api import protocol
from omnigraph.api.graph_at import BlobsAt
from omnigraph.client.blobs import RemoteBlobs, RemoteBlobsAt
from omnigraph.client.branches import RemoteBranches, RemoteTags
from omnigraph.client.graph import RemoteGraph, RemoteMaintenance, RemoteSchema
from omnigraph.client.reading import RemoteGraphAt

PAIRS = [
    (og.Graph, og.GraphProtocol),
    (og.GraphAt, og.GraphAtProtocol),
    (og.Branches, protocol.BranchesProtocol),
    (og.Tags, protocol.TagsProtocol),
    (og.Schema, protocol.SchemaProtocol),
    (og.Blobs, protocol.BlobsProtocol),
    (BlobsAt, protocol.BlobsAtProtocol),
    (og.Maintenance, protocol.MaintenanceProtocol),
    (RemoteGraph, og.GraphProtocol),
    (RemoteGraphAt, og.GraphAtProtocol),
    (RemoteBranches, protocol.BranchesProtocol),
    (RemoteTags, protocol.TagsProtocol),
    (RemoteSchema, protocol.SchemaProtocol),
    (RemoteBlobs, protocol.BlobsProtocol),
    (RemoteBlobsAt, protocol.BlobsAtProtocol),
    (RemoteMaintenance, protocol.MaintenanceProtocol),
]
CONTAINER_METHODS = {"__iter__", "__len__", "__contains__", "__getitem__"}


def public(cls: type[Any]) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")} | (
        CONTAINER_METHODS & set(dir(cls))
    )


def parameters(cls: type[Any], name: str) -> Iterator[tuple[str, Any, Any]]:
    found = inspect.getattr_static(cls, name)
    if isinstance(found, property):
        return
    for parameter in inspect.signature(found).parameters.values():
        yield parameter.name, parameter.kind, parameter.default


@pytest.mark.parametrize(("implementation", "wanted"), PAIRS, ids=lambda cls: cls.__name__)
def test_the_public_names_are_those_of_the_protocol(implementation, wanted):
    assert public(implementation) == public(wanted)


@pytest.mark.parametrize(("implementation", "wanted"), PAIRS, ids=lambda cls: cls.__name__)
def test_the_signatures_are_those_of_the_protocol(implementation, wanted):
    for name in public(wanted):
        assert list(parameters(implementation, name)) == list(parameters(wanted, name)), name


def test_a_graph_and_its_groups_are_instances_of_their_protocols(unchanged):
    assert isinstance(unchanged, og.GraphProtocol)
    assert isinstance(unchanged.at("main"), og.GraphAtProtocol)
    assert isinstance(unchanged.branches, protocol.BranchesProtocol)
    assert isinstance(unchanged.tags, protocol.TagsProtocol)
    assert isinstance(unchanged.schema, protocol.SchemaProtocol)
    assert isinstance(unchanged.blobs, protocol.BlobsProtocol)
    assert isinstance(unchanged.maintenance, protocol.MaintenanceProtocol)


def test_no_call_takes_keywords_that_it_does_not_name():
    for implementation, _ in PAIRS:
        for name in public(implementation):
            kinds = [kind for _, kind, _ in parameters(implementation, name)]
            assert inspect.Parameter.VAR_KEYWORD not in kinds, name


def test_a_mistyped_keyword_changes_nothing(unchanged):
    before = unchanged.head().id
    with pytest.raises(TypeError, match="brnach"):
        unchanged.mutate(
            "team.gq", {"email": "cy@x.org", "name": "Cy"}, name="add_person", brnach="dev"
        )
    assert unchanged.head().id == before
