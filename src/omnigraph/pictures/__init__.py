"""Pictures of a graph for notebooks and files: its schema, its history, the surroundings of an entity.

A picture is one SVG text with everything in it: it needs no network, no script and no font of its own.

>>> from omnigraph import pictures
>>> pictures.schema(graph)
<picture: 2 node types, 2 edge types>
"""

from omnigraph.pictures.history import history
from omnigraph.pictures.neighbourhood import neighbourhood
from omnigraph.pictures.schema import schema
from omnigraph.pictures.svg import Picture

__all__ = ["Picture", "history", "neighbourhood", "schema"]
