"""The committer: the only way to spend.

Lock, load, decide (pure), append, commit, anchor, reply. Callers of one process queue up
(`group_commit.py`), and the one that leads decides on everything that waits in one transaction,
commits and anchors once. A request that fails is answered with its error and leaves the others
alone; a transaction that fails is answered to all of its batch.

A decision that takes long is made off the lock (`early_decisions.py`), and made again if the
budgets moved meanwhile. A caller that computes in its own thread is decided under the lock in the
end. One that computes elsewhere, such as the service, claims the budgets and is `Contended` in the
end, where other processes change them all the same.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import count
from typing import Any, NoReturn, TypeVar

from sqlalchemy import Connection, select
from sqlalchemy.exc import SQLAlchemyError

from residua.errors import (
    Contended,
    LedgerError,
    OutcomeUnknown,
    ReadOnlyLedger,
    ResiduaError,
    StoreUnavailable,
)
from residua.ledger.domain.set_aside import Held
from residua.ledger.operations.budgets import overdue, sharing_ended_holds
from residua.ledger.operations.early_decisions import (
    QUICK,
    Claims,
    Compute,
    EarlyDecisions,
    Slow,
    WaitLimit,
    here,
)
from residua.ledger.operations.group_commit import CommitQueue, Slot
from residua.ledger.operations.requests import Request
from residua.ledger.operations.spending import Commit
from residua.ledger.operations.unit_of_work import UnitOfWork
from residua.ledger.storage import rows, schema
from residua.ledger.storage.anchor import Anchor, Marks
from residua.ledger.storage.store import Again, CommitUnknown, Lost, Store

T = TypeVar("T")

_ATTEMPTS = 4
"""How often a slow query is computed at most: more give it a better chance on a busy budget."""
_R = schema.records
_UNWRITTEN = (OSError, LedgerError, Again, CommitUnknown)
"""How an anchor fails."""


# -- points at which a test may kill the process ---------------------------------------------


POINTS = (
    "begun",
    "locked",
    "decided",
    "written",
    "committing",
    "committed",
    "anchoring",
    "anchored",
    "answered",
)
"""The stages of a write, in order: each is passed once for a transaction.

A test may kill the process there: `RESIDUA_FAULT="name:count"` in the environment ends it, as
SIGKILL does, when it passes the point of that name for the count-th time.
"""


def _configured_fault() -> tuple[str, int] | None:
    name, _, times = os.environ.get("RESIDUA_FAULT", "").partition(":")
    return (name, int(times or "1")) if name else None


_FAULT = _configured_fault()
_PASSES = count(1)


def point(name: str) -> None:
    """Pass one of the `POINTS`; in a test perhaps never to return."""
    if _FAULT is None or _FAULT[0] != name:
        return
    if next(_PASSES) == _FAULT[1]:
        os.kill(os.getpid(), signal.SIGKILL)


# -- requests --------------------------------------------------------------------------------


class _Wider(Again):
    """More budgets must be locked."""

    def __init__(self, names: set[str]):
        super().__init__()
        self.names = names


class Committer:
    """The committer of a ledger; one per process."""

    def __init__(self, store: Store, anchor: Anchor | None, ledger: str, incarnation: str):
        self.store = store
        self.anchor = anchor
        self.ledger = ledger
        self.incarnation = incarnation
        self.closed: LedgerError | None = None
        """Why nothing may be written, or None."""
        self.read_only = False
        """Whether the caller asked for that, in which case it stays so."""
        self.was_closed = False
        """Whether the caller closed the ledger, in which case it stays closed."""
        self.anchored: dict[str, tuple[int, str]] = {}
        self.others: dict[str, tuple[int, str]] = {}
        """Marks that others wrote to the anchor, perhaps not synced yet."""
        self.pending_marks: dict[str, tuple[int, str]] = {}
        """Marks that are stored and could not be anchored."""
        self._anchor_error: Exception | None = None
        """Why the anchor cannot be written now, or None; the store is not written then."""
        self._early = EarlyDecisions()
        self._held: dict[str, tuple[str, Held]] = {}
        """What the open holds of budgets need, and the heads that it was stated by."""
        self._above: dict[str, tuple[str, ...]] = {}
        self._queue = CommitQueue(self._carry_out)
        self._claims = Claims()

    # -- queueing -----------------------------------------------------------------------

    def submit(self, request: Request, compute: Compute = here) -> Any:
        """Carry out a request; return the answer once it is durable.

        `compute` makes decisions that take long; where that is not in this thread, none of them is
        made under the lock.
        """
        waits = WaitLimit()
        with ExitStack() as claim:
            for attempt in range(_ATTEMPTS + 1):
                must = compute is here and attempt == _ATTEMPTS
                slot = self._run(request, None if must else QUICK, waits)
                slow = slot.error
                if not isinstance(slow, Slow):
                    return slot.result()
                if compute is not here and attempt == 2:
                    # Others were faster twice.
                    claim.enter_context(self._claims.claimed(request, slow.budgets, waits))
                    # What was read before may have changed while others had claims.
                    slot = self._run(request, QUICK, waits)
                    slow = slot.error
                    if not isinstance(slow, Slow):
                        return slot.result()
                if attempt < _ATTEMPTS:
                    self._early.compute(slow, compute)
        raise Contended(
            f"the budgets changed {_ATTEMPTS} times while the query was decided; nothing was spent"
        )

    def _run(self, request: Request, within: int | None, waits: WaitLimit) -> Slot:
        """Queue up; again, where that had to wait for a claim."""
        while True:
            if self.closed is not None:
                raise type(self.closed)(*self.closed.args)
            self.store.check_process()
            slot = Slot(request, within)
            self._queue.run(slot)
            if slot.error is not None or not slot.blocked_by:
                return slot
            self._claims.wait(request, slot.blocked_by, waits)

    def look_and_rule(
        self, names: Sequence[str], rule: Callable[[UnitOfWork], T], compute: Compute
    ) -> T:
        """What `rule` says of budgets as they are now; a slow decision is computed by `compute`."""
        work = self.look(names)
        work.within = QUICK
        while True:
            try:
                return rule(work)
            except Slow as slow:
                self._early.compute(slow, compute)

    def look(self, names: Sequence[str], partitions: bool = False) -> UnitOfWork:
        """Budgets as a request would find them, with what is overdue done; never written.

        The transaction is over then, so computations on them keep no other caller waiting. With
        `partitions`, those of these budgets are included.
        """
        with self.store.reading() as connection:
            work = self._new_work(connection)
            work.open(names)
            loaded: set[str] = set()
            while loaded != set(work.entries):
                loaded = set(work.entries)
                held = {id for entry in work.entries.values() for id in entry.holds}
                work.load({n for id in held for n in work.holds[id].members} - loaded)
            if partitions:
                work.load_partitions(names)
        for sweep in overdue(work):
            sweep.run(work)
        return work

    # -- one transaction ----------------------------------------------------------------

    def _carry_out(self, batch: Sequence[Slot]) -> None:
        """Carry out everything that waits, in one transaction."""
        self._read_new_marks()
        extra: set[str] = set()
        lost = False
        for _ in range(20):  # Each because a transaction met another one.
            try:
                self._transact(batch, extra)
                point("answered")
                return
            except _Wider as wider:
                extra |= wider.names
            except Lost as error:
                if lost:
                    raise StoreUnavailable(
                        f"{self.store.place} became unavailable ({error}); nothing was spent"
                    ) from error
                lost = True
            except Again:
                continue
        raise StoreUnavailable(
            f"{self.store.place}: too many transactions at once; nothing was spent"
        )

    def _transact(self, batch: Sequence[Slot], extra: set[str]) -> None:
        with self.store.writing() as connection:
            point("begun")
            work = self._opened(connection, [slot.request for slot in batch], extra)
            point("locked")
            self._decide(work, batch)
            point("decided")
            if work.writes and self._anchor_error is not None:
                raise StoreUnavailable(
                    f"the anchor {self.anchor} cannot be written ({self._anchor_error});"
                    " nothing was spent, and nothing can be spent until the anchor can be written"
                )
            if work.writes:
                work.flush()
                point("written")
                place = work.last()
                point("committing")
                try:
                    self.store.commit(connection, lambda other: _is_committed(other, place))
                except CommitUnknown as error:
                    raise OutcomeUnknown(
                        f"{self.store.place} became unavailable while committing ({error}); repeat"
                        " the call with the same key (until then it counts as spent)"
                    ) from error
                point("committed")
                # The next request extends what open holds need; it is kept of some budgets only.
                if len(self._held) > 1024:
                    self._held.clear()
                self._held.update(work.held)
            elif self._unmarked(work.heads):
                # Decided by a process that may have died before it was durable.
                try:
                    self.store.make_durable(connection)
                except (CommitUnknown, StoreUnavailable, SQLAlchemyError) as error:
                    raise OutcomeUnknown(
                        f"{self.store.place} has the decision, but could not be synced ({error});"
                        " repeat the call with the same key (until then it counts as spent)"
                    ) from error
        self._mark(work.heads, work.found_heads)

    def _decide(self, work: UnitOfWork, batch: Sequence[Slot]) -> None:
        """Run every request of a batch on the page; each that fails has its error."""
        for slot in _in_order(work, batch):
            slot.error, slot.blocked_by = None, self._blocked_by(work, slot.request)
            if slot.blocked_by:
                continue
            work.within = slot.within
            try:
                slot.answer = slot.request.run(work)
            except (ResiduaError, Slow) as error:
                slot.error = error
            except SQLAlchemyError:
                raise
            except Exception as error:
                slot.error = LedgerError(f"the decision failed; nothing was spent: {error!r}")
                slot.error.__cause__ = error

    def _blocked_by(self, work: UnitOfWork, request: Request) -> frozenset[str]:
        """The budgets that a request charges, if another request claims one of them."""
        if not self._claims or (request.principal, request.key) in work.keys:
            return frozenset()
        names = set(request.names)
        if request.hold in work.holds:
            names.update(work.holds[request.hold].members)
        lines = [work.line(name) for name in names if name in work.entries]
        charged = frozenset(entry.name for line in lines for entry in line)
        return frozenset() if self._claims.until(request, charged) is None else charged

    def _new_work(self, connection: Connection) -> UnitOfWork:
        return UnitOfWork(
            connection, self.store, self.ledger, self.incarnation, self._held, self._early
        )

    def _opened(
        self, connection: Connection, requests: Sequence[Request], extra: set[str]
    ) -> UnitOfWork:
        """Lock and read everything that the requests need, and what is overdue there."""
        work = self._new_work(connection)
        if any(request.creates for request in requests):
            self.store.lock_schema(connection)
        held = [request.hold for request in requests if request.hold is not None]
        work.load_holds(held)
        names = extra.union(*(request.names for request in requests))
        names.update(name for row in work.holds.values() for name in row.members)
        # Those above them, as far as these are known.
        names.update(above for name in tuple(names) for above in self._above.get(name, ()))
        keys = [(r.principal, r.key) for r in requests if r.key and not r.fresh]
        work.open(names, keys, lock=True)
        # What was read before the lock may have changed while it was waited for.
        work.load_holds(held)
        needed = set(work.entries) | sharing_ended_holds(work, requests)
        if needed - names:
            raise _Wider(needed)
        self._check_anchored(work)
        for name in work.entries:
            if name not in self._above:
                self._above[name] = tuple(entry.name for entry in work.upward(name))
        for sweep in overdue(work):
            sweep.run(work)
        return work

    def _read_new_marks(self) -> None:
        """Read the marks of other processes before the store, which must contain them."""
        if self.anchor is None:
            return
        try:
            if self.pending_marks:
                self.anchor.write(
                    self.pending_marks,
                    lambda said: self.check_one_chain(self.pending_marks, self.anchored, said),
                )
                self.anchored.update(self.pending_marks)
                self.pending_marks.clear()
            for name, mark in self.anchor.changes().items():
                self.others[name] = _later(mark, self.others.get(name))
            self._anchor_error = None
        except _UNWRITTEN as error:
            if self.closed is not None:
                raise
            if not self.pending_marks and not isinstance(error, OSError):
                self.look(())  # The store may have been recovered or replaced, which it says.
                raise
            self._anchor_error = error  # Later writes report it.

    def _check_anchored(self, work: UnitOfWork) -> None:
        for name, entry in work.entries.items():
            marks = [m for m in (self.anchored.get(name), self.others.get(name)) if m is not None]
            last = max((seq for seq, _ in marks), default=-1)
            for seq, hash in marks:
                if entry.head_seq < seq:
                    self._close(name, f"ends with record {entry.head_seq}", seq)
                there: str | None = entry.head_hash
                if entry.head_seq > seq:
                    # Of two, the last one tells: the anchor's records are on one chain.
                    there = hash if seq < last else rows.hash_at(work.connection, name, seq)
                if there != hash:
                    self._close(name, f"has another record {seq}", seq)

    def check_one_chain(self, new: Marks, found: Marks, said: Marks) -> None:
        """Raise where the anchor knows records that are on another chain than those to be marked.

        That a record is under another one is so for good, whatever happens to the store. So what is
        acknowledged is always on the chain of what was acknowledged before, even if a backup is put
        back while it is decided. `found` are heads that `new` was appended to.
        """
        for name, mark in said.items():
            self.others[name] = _later(mark, self.others.get(name))
        for name, mark in new.items():
            other, ours = self.others.get(name, mark), self.anchored.get(name, (-1, ""))
            if other[0] <= ours[0] or other in (mark, found.get(name)):
                continue
            with self.store.reading() as connection:
                there = [rows.hash_at(connection, name, seq) for seq, _ in (mark, other)]
            if there != [mark[1], other[1]]:
                self._close(name, "has other records now", max(mark[0], other[0]))

    def _close(self, name: str, found: str, number: int) -> NoReturn:
        self.closed = ReadOnlyLedger(
            f"budget {name!r} {found}, but record {number} was acknowledged: a backup was restored,"
            " or records were changed; recover the ledger (residua recover)"
        )
        raise self.closed

    def _unmarked(self, heads: Marks) -> Marks:
        known, none = self.anchored, (-1, "")
        return {name: mark for name, mark in heads.items() if known.get(name, none)[0] < mark[0]}

    def _mark(self, heads: Marks, found: Marks) -> None:
        """Anchor what is about to be acknowledged, appended to the heads that were found."""
        new = self._unmarked(heads)
        if not new:
            return
        point("anchoring")
        if self.anchor is not None:
            try:
                self.anchor.write(new, lambda said: self.check_one_chain(new, found, said))
            except _UNWRITTEN as error:
                self.pending_marks.update(new)
                raise OutcomeUnknown(
                    f"the spend is stored, but the anchor {self.anchor} could not be written"
                    f" ({error}); repeat the call with the same key (until then it counts as"
                    " spent)"
                ) from error
        point("anchored")
        self.anchored.update(new)


def _later(one: tuple[int, str] | None, other: tuple[int, str] | None) -> tuple[int, str]:
    """The mark with the higher number, of those that there are."""
    return max((each for each in (one, other) if each), default=(-1, ""), key=lambda mark: mark[0])


def _in_order(work: UnitOfWork, batch: Sequence[Slot]) -> list[Slot]:
    """A batch with its commits in the order of their holds, which spares folding these again.

    They came at the same time, so that any order is one in which they may have come.
    """
    places = {id: at for each in work.entries.values() for at, id in enumerate(each.holds)}
    commits = [slot for slot in batch if isinstance(slot.request, Commit)]
    following = iter(sorted(commits, key=lambda slot: places.get(slot.request.hold or "", 0)))
    return [next(following) if isinstance(s.request, Commit) else s for s in batch]


def _is_committed(connection: Connection, place: tuple[int, int, str]) -> bool:
    id, seq, hash = place
    query = select(_R.c.hash).where(_R.c.budget_id == id, _R.c.seq == seq)
    return connection.execute(query).scalar() == hash
