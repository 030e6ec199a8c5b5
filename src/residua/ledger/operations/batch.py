"""The requests that wait for one transaction, and the order in which they run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from residua.errors import LedgerError
from residua.ledger.operations.holding import Commit
from residua.ledger.operations.requests import Request
from residua.ledger.operations.unit_of_work import Page


class Slot:
    """A request that waits, and then its answer."""

    __slots__ = ("answer", "barred", "error", "longest", "request")

    def __init__(self, request: Request, longest: float = math.inf):
        self.request = request
        self.barred: frozenset[str] = frozenset()
        """The budgets that it charges, where another request has claimed one of them."""
        self.longest = longest
        """Seconds that its decision may take under the lock; otherwise it is returned."""
        self.answer: Any = None
        self.error: BaseException | None = None

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.answer


def charged(page: Page, request: Request) -> frozenset[str]:
    """The budgets whose state a request may move, as far as they are there."""
    names = set(request.names)
    if request.hold in page.holds:
        names.update(page.holds[request.hold].members)
    lines = [page.line(name) for name in names if name in page.entries]
    return frozenset(entry.name for line in lines for entry in line)


def in_order(page: Page, batch: Sequence[Slot]) -> list[Slot]:
    """A batch with its commits in the order of their holds, which spares folding these again.

    They came at the same time, so that any order is one in which they may have come.
    """
    places = {id: at for each in page.entries.values() for at, id in enumerate(each.holds)}
    commits = [slot for slot in batch if isinstance(slot.request, Commit)]
    commits.sort(key=lambda slot: places.get(slot.request.hold or "", 0))
    following = iter(commits)
    return [next(following) if isinstance(s.request, Commit) else s for s in batch]


def copied(error: Exception) -> Exception:
    """The same error for another thread, which adds its own traceback."""
    if not isinstance(error, LedgerError):
        return error
    other = type(error)(*error.args)
    other.__cause__ = error.__cause__
    return other
