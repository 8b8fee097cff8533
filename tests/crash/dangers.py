"""The ways in which a writer comes to its end at a fault point."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from omnigraph.errors import OmnigraphError
from tests.crash.aftermath import check_aftermath
from tests.crash.conftest import Wharf
from tests.crash.dying import publishes_noted
from tests.crash.graphs import killed
from tests.crash.kinds import PUBLISHED, Kind
from tests.crash.power_loss import Losses, inodes, possible_losses, remove, truncate
from tests.support.faults import Arm, Call, FaultAction, Hit, InjectedFault, Kill, Record, armed


def check_raising(wharf: Wharf, kind: Kind, point: str, hit: int, action: FaultAction) -> None:
    """The step raises, in this process."""
    reference = wharf.reference(kind)
    root = wharf.restore(kind)
    with (
        armed(PUBLISHED, Call(lambda _hit: None)) as publishes,
        suppress(OmnigraphError, InjectedFault),
    ):
        noting = _Noting(publishes, action)
        with armed(point, noting, first=hit, times=1) as record:
            kind.run(str(root))
    # How often directories are synced depends on how quickly the writer gets on.
    assert record.count() >= hit or point.startswith("durability."), _not_there(kind, point)
    published = publishes.count() if noting.published is None else noting.published
    check_aftermath(kind, root, reference, done=reference.is_done(kind, published))


class _Noting:
    """Does what it is told, and knows how often something had been published by then."""

    def __init__(self, publishes: Record, action: FaultAction) -> None:
        self._publishes = publishes
        self._action = action
        self.published: int | None = None

    def act(self, hit: Hit) -> None:
        self.published = self._publishes.count()
        self._action.act(hit)


def _not_there(kind: Kind, point: str) -> str:
    return f"{kind.name} did not come to {point}"


def check_killing(
    wharf: Wharf, kind: Kind, point: str, hit: int, *, losing: str = "nothing"
) -> None:
    """A process of its own is killed at the step, and the power may go with it.

    `losing` says what the disk loses then: nothing; "much": the newest file, and everything that can
    be lost; "forks": that, and alone each file that makes a fork what it is; "anything": each file
    alone, and all files but no entries of directories and the reverse.
    """
    reference = wharf.reference(kind)
    root = wharf.restore(kind)
    before = inodes(root)
    notes = wharf.root.with_name("synced")
    notes.unlink(missing_ok=True)
    ended = killed(kind.name, root, [Arm(point, Kill(), first=hit)], notes)
    assert ended != 0 or point.startswith("durability."), _not_there(kind, point)
    done = ended == 0 or reference.is_done(kind, publishes_noted(notes))
    losses = possible_losses(root, before, notes)
    wharf.keep("wreck")
    check_aftermath(kind, root, reference, done=done)
    for lost in _lose(wharf, losses, losing):
        try:
            check_aftermath(kind, root, reference, done=done)
        except Exception as error:
            error.add_note(f"{kind.name} killed at {point} number {hit}, then lost {lost}")
            raise


def _lose(wharf: Wharf, losses: Losses, losing: str) -> Iterator[str]:
    """The wreck again and again, each time with something else lost."""
    if losing == "nothing":
        return
    chosen = [(losses.newest(), ()), (losses.empty, losses.gone)]
    if losing == "forks":
        chosen += [((path,), ()) for path in losses.empty if _makes_a_fork(path)]
    if losing == "anything":
        chosen += [(losses.empty, ()), ((), losses.gone)]
        chosen += [((path,), ()) for path in losses.empty]
    for empty, gone in dict.fromkeys(chosen):
        if empty or gone:
            root: Path = wharf.put_back("wreck")
            truncate(root, empty)
            remove(root, gone)
            yield f"the content of {empty} and the entries {gone}"


def _makes_a_fork(path: str) -> bool:
    """Whether a file is a version of a table on a branch, or the reference to that branch."""
    return "/_refs/" in path or ("/tree/" in path and path.endswith(".manifest"))
