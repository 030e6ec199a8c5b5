"""The committer: the only way to spend.

Lock, load, decide (pure), append, commit, anchor, reply. Callers of one process queue up, and the
first one to find it idle leads (`group_commit.py`): it takes everything that waits, decides
on it in one transaction, commits and anchors once, and answers all. A request that fails is
answered with its error and leaves the others alone; a transaction that fails is answered to all of
its batch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, NoReturn

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
from residua.ledger.operations import faults
from residua.ledger.operations.batch import Slot, charged, copied, in_order
from residua.ledger.operations.claims import Claims, WaitLimit
from residua.ledger.operations.early_decisions import (
    ATTEMPTS,
    LOSSES,
    QUICK,
    SLOW,
    EarlyDecisions,
    Stale,
)
from residua.ledger.operations.early_rulings import Compute, here
from residua.ledger.operations.group_commit import Ticket, Turns
from residua.ledger.operations.overdue import ending_with, overdue
from residua.ledger.operations.requests import Request
from residua.ledger.operations.unit_of_work import Page
from residua.ledger.storage import rows, schema
from residua.ledger.storage.anchor import Anchor, Marks
from residua.ledger.storage.store import Again, Lost, Store, Unsure

_TRIES = 20
_MOST_HELD = 1024
_R = schema.records
_UNWRITTEN = (OSError, LedgerError, Again, Unsure)
"""How an anchor fails."""


class _Wider(Again):
    """More budgets must be locked."""

    def __init__(self, names: set[str]):
        super().__init__()
        self.names = names


class Gate:
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
        self.let_go = False
        """Whether the caller closed the ledger, in which case it stays closed."""
        self.anchored: dict[str, tuple[int, str]] = {}
        self.others: dict[str, tuple[int, str]] = {}
        """Marks that others wrote to the anchor, perhaps not synced yet."""
        self.owed: dict[str, tuple[int, str]] = {}
        """Marks that are stored and could not be anchored."""
        self._mute: Exception | None = None
        """Why the anchor cannot be written now, or None; the store is not written then."""
        self._early = EarlyDecisions()
        self._held: dict[str, tuple[str, Held]] = {}
        """What the open holds of budgets need, and the heads that it was stated by."""
        self._above: dict[str, tuple[str, ...]] = {}
        self._turns: Turns[Slot] = Turns()
        self._claims = Claims()

    # -- queueing -----------------------------------------------------------------------

    def submit(self, request: Request, compute: Compute = here) -> Any:
        """Carry out a request; return the answer once it is durable.

        `compute` makes decisions that may take long. Where that is not in this thread, nothing slow
        is decided under the lock: after two attempts the budgets are claimed (`claims.py`), and
        `Contended` is raised where other processes change them all the same.
        """
        limit = WaitLimit()
        if compute is here:
            longest = [SLOW] * (ATTEMPTS - 1) + [math.inf]
            return self._attempt(request, compute, longest, limit).result()
        slot = self._attempt(request, compute, [QUICK] * LOSSES, limit)
        if isinstance(slot.error, Stale):
            wanted = charged(self._look_at(request), request)
            longest = [QUICK] * (ATTEMPTS - LOSSES - 1) + [SLOW]
            with self._claims.claimed(request, wanted, limit):
                slot = self._attempt(request, compute, longest, limit)
        if isinstance(slot.error, Stale):
            raise Contended(
                f"the budgets changed {ATTEMPTS} times while the query was decided; nothing was"
                " spent"
            )
        return slot.result()

    def _attempt(
        self, request: Request, compute: Compute, longest: Sequence[float], limit: WaitLimit
    ) -> Slot:
        """Decide early where that is wanted, and queue, until the decision is up to date."""
        for each in longest:
            if self._early.wanted(request) and not self._early.decide_on_last(request, compute):
                self._early.decide(self._look_at(request), request, compute)
            (slot,) = self._through([request], each)
            while slot.barred:
                self._claims.wait(request, slot.barred, limit)
                (slot,) = self._through([request], each)
            if not isinstance(slot.error, Stale):
                break
        return slot

    def decide(self, page: Page, request: Request, compute: Compute = here) -> None:
        """Decide in advance what may take long, for a caller that only reads the page."""
        if self._early.time_on(page, request) > 0:
            self._early.decide(page, request, compute)

    def submit_all(self, requests: Sequence[Request]) -> list[Any]:
        """The same for several, in one transaction: of each the answer, or the error it met."""
        slots, limit = self._through(requests), WaitLimit()
        while barred := [slot for slot in slots if slot.barred]:
            try:
                self._claims.wait(None, barred[0].barred, limit)
            except Contended as error:
                for slot in barred:
                    slot.error = error
                break
            again = iter(self._through([slot.request for slot in barred]))
            slots = [next(again) if slot.barred else slot for slot in slots]
        return [slot.answer if slot.error is None else slot.error for slot in slots]

    def _look_at(self, request: Request) -> Page:
        keys = () if request.key is None else ((request.principal, request.key),)
        return self.look(request.names, keys=keys, hold=request.hold)

    def look(
        self,
        names: Sequence[str],
        partitions: bool = False,
        keys: Sequence[tuple[str, str]] = (),
        hold: str | None = None,
    ) -> Page:
        """Budgets as a request would find them, with what is overdue done; never written.

        The transaction is over then, so computations on them keep no other caller waiting. With
        `partitions`, those of these budgets are included; with `keys` and a `hold`, the decisions
        under them, and the budgets of the hold.
        """
        with self.store.reading() as connection:
            page = self._page(connection)
            if hold is not None:
                page.load_holds([hold])
                names = [*names, *(page.holds[hold].members if hold in page.holds else ())]
            page.open(names, keys)
            loaded: set[str] = set()
            while loaded != set(page.entries):
                loaded = set(page.entries)
                held = {id for entry in page.entries.values() for id in entry.holds}
                page.load({n for id in held for n in page.holds[id].members} - loaded)
            if partitions:
                page.load_partitions(names)
        for sweep in overdue(page):
            sweep.run(page)
        return page

    def _through(self, requests: Sequence[Request], longest: float = math.inf) -> list[Slot]:
        if self.closed is not None:
            raise type(self.closed)(*self.closed.args)
        self.store.check_process()
        slots = [Slot(request, longest) for request in requests]
        if not slots:
            return slots
        mine = Ticket(slots)
        try:
            if self._turns.leads(mine):
                self._answer(mine)
        except BaseException:
            # Only this caller was interrupted, perhaps after the commit.
            for ticket in self._turns.leave(mine):
                for slot in ticket.wanted:
                    slot.error = OutcomeUnknown(
                        "the transaction was interrupted; ask again with the same key, until then"
                        " it counts as spent"
                    )
                ticket.finish()
            raise
        return slots

    def _answer(self, mine: Ticket[Slot]) -> None:
        """Lead: carry out everything that waits, and wake the callers."""
        batch = self._turns.take(mine)
        slots = [slot for ticket in batch for slot in ticket.wanted]
        try:
            self._lead(slots)
        except Exception as error:
            own = set(map(id, mine.wanted))
            for each in slots:
                each.error = error if id(each) in own else copied(error)
        self._turns.done(mine)
        faults.point("answered")

    # -- one transaction ----------------------------------------------------------------

    def _lead(self, batch: Sequence[Slot]) -> None:
        self._learn()
        extra: set[str] = set()
        lost = False
        for _ in range(_TRIES):
            try:
                self._transact(batch, extra)
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
            faults.point("begun")
            page = self._opened(connection, [slot.request for slot in batch], extra)
            faults.point("locked")
            self._decide(page, batch)
            faults.point("decided")
            if page.writes and self._mute is not None:
                raise StoreUnavailable(
                    f"the anchor {self.anchor} cannot be written ({self._mute}); nothing was spent"
                    " by this call, and nothing will be until it can"
                )
            if page.writes:
                page.flush()
                faults.point("written")
                place = page.last()
                faults.point("committing")
                try:
                    self.store.commit(connection, lambda other: _landed(other, place))
                except Unsure as error:
                    raise OutcomeUnknown(
                        f"{self.store.place} became unavailable while committing ({error}); ask"
                        " again with the same key; until then it counts as spent"
                    ) from error
                faults.point("committed")
                self._keep_held(page)
            elif self._unmarked(page.heads):
                # Decided by a process that may have died before it was durable.
                try:
                    self.store.make_durable(connection)
                except (Unsure, StoreUnavailable, SQLAlchemyError) as error:
                    raise OutcomeUnknown(
                        f"{self.store.place} has the decision, but could not be synced ({error});"
                        " ask again with the same key; until then it counts as spent"
                    ) from error
        self._mark(page.heads, page.found_heads)

    def _keep_held(self, page: Page) -> None:
        """Remember what open holds need, for the next request to extend."""
        if len(self._held) > _MOST_HELD:
            self._held.clear()
        for name, known in page.held.items():
            if known[1]:
                self._held[name] = known
            else:
                self._held.pop(name, None)

    def _decide(self, page: Page, batch: Sequence[Slot]) -> None:
        """Run every request of a batch on the page; each that fails has its error."""
        # What this thread has worked, had it never waited for the processor or the interpreter.
        worked = time.thread_time()
        times = {id(slot): self._early.time_on(page, slot.request) for slot in batch}
        decided_one = False
        for slot in sorted(in_order(page, batch), key=lambda slot: times[id(slot)] >= QUICK):
            slot.error, slot.barred = None, self._barred(page, slot)
            if slot.barred:
                continue
            # Again, for those before it may have moved the state.
            expected = self._early.time_on(page, slot.request)
            slow = expected >= QUICK
            if expected > slot.longest or (decided_one and slow and slot.longest < math.inf):
                slot.error = Stale()
                continue
            decided_one = decided_one or slow
            begun = time.perf_counter()
            try:
                slot.answer = slot.request.run(page)
            except ResiduaError as error:
                slot.error = error
            except SQLAlchemyError:
                raise
            except Exception as error:
                slot.error = LedgerError(f"the decision failed; nothing was spent: {error!r}")
                slot.error.__cause__ = error
            else:
                self._early.note_answer(slot.request, slot.answer)
            took = time.perf_counter() - begun
            worked += took
            if took >= QUICK:
                # Or it only waited. To ask for each would take longer than most decisions do.
                now = time.thread_time()
                took -= max(0.0, worked - now)
                self._early.note_time(page, slot.request, took)
                worked = now

    def _barred(self, page: Page, slot: Slot) -> frozenset[str]:
        """The budgets that a request charges, if another request claims one of them."""
        request = slot.request
        if not self._claims:
            return frozenset()
        wanted = charged(page, request)
        known = (request.principal, request.key) in page.keys
        return wanted if not known and self._claims.bar(request, wanted) else frozenset()

    def _page(self, connection: Connection) -> Page:
        return Page(
            connection, self.store, self.ledger, self.incarnation, self._held, self._early.rulings
        )

    def _named(self, requests: Sequence[Request]) -> set[str]:
        """The budgets that requests name, and those above them as far as these are known."""
        names = {name for request in requests for name in request.names}
        return names.union(*(self._above.get(name, ()) for name in names))

    def _opened(self, connection: Connection, requests: Sequence[Request], extra: set[str]) -> Page:
        """Lock and read everything that the requests need, and what is overdue there."""
        page = self._page(connection)
        if any(request.creates for request in requests):
            self.store.lock_schema(connection)
        held = [request.hold for request in requests if request.hold is not None]
        page.load_holds(held)
        names = extra | self._named(requests)
        names.update(name for row in page.holds.values() for name in row.members)
        names.update(above for name in tuple(names) for above in self._above.get(name, ()))
        keys = [(r.principal, r.key) for r in requests if r.key and not r.fresh]
        page.open(names, keys, lock=True)
        if self.store.locks_rows:
            # What was read before the lock may have changed while it was waited for.
            page.load_holds(held)
        needed = set(page.entries) | ending_with(page, requests)
        while needed - names:
            if self.store.locks_rows:
                raise _Wider(needed)
            names |= needed
            page.load(needed - set(page.entries))
            needed = set(page.entries) | ending_with(page, requests)
        self._check_anchored(page)
        for name in page.entries:
            if name not in self._above:
                self._above[name] = tuple(entry.name for entry in _ancestors(page, name))
        for sweep in overdue(page):
            sweep.run(page)
        return page

    def _learn(self) -> None:
        """Read the marks of other processes before the store, which must contain them."""
        if self.anchor is None:
            return
        try:
            if self.owed:
                self.anchor.write(
                    self.owed, lambda said: self.check_one_chain(self.owed, self.anchored, said)
                )
                self.anchored.update(self.owed)
                self.owed.clear()
            for name, mark in self.anchor.news().items():
                self.others[name] = _later(mark, self.others.get(name))
            self._mute = None
        except _UNWRITTEN as error:
            if self.closed is not None:
                raise
            if not self.owed and not isinstance(error, OSError):
                self.look(())  # The store may have been recovered or replaced, which it says.
                raise
            self._mute = error  # Later writes report it.

    def _check_anchored(self, page: Page) -> None:
        for name, entry in page.entries.items():
            marks = [m for m in (self.anchored.get(name), self.others.get(name)) if m is not None]
            last = max((seq for seq, _ in marks), default=-1)
            for seq, hash in marks:
                if entry.head_seq < seq:
                    self._close(name, f"ends with number {entry.head_seq}", seq)
                there: str | None = entry.head_hash
                if entry.head_seq > seq:
                    # Of two, the last one tells: the anchor's records are on one chain.
                    there = hash if seq < last else rows.hash_at(page.connection, name, seq)
                if there != hash:
                    self._close(name, f"has another record of number {seq}", seq)

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
            f"budget {name!r} {found}, but number {number} was acknowledged: a backup was restored,"
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
        faults.point("anchoring")
        if self.anchor is not None:
            try:
                self.anchor.write(new, lambda said: self.check_one_chain(new, found, said))
            except _UNWRITTEN as error:
                self.owed.update(new)
                raise OutcomeUnknown(
                    f"the spend is stored, but the anchor {self.anchor} could not be written"
                    f" ({error}); ask again with the same key; until then it counts as spent"
                ) from error
        faults.point("anchored")
        self.anchored.update(new)


def _later(one: tuple[int, str] | None, other: tuple[int, str] | None) -> tuple[int, str]:
    """The mark with the higher number, of those that there are."""
    return max((each for each in (one, other) if each), default=(-1, ""), key=lambda mark: mark[0])


def _ancestors(page: Page, name: str) -> list[Any]:
    found = []
    parent = page.entries[name].parent
    while parent is not None:
        found.append(page.entry(parent))
        parent = found[-1].parent
    return found


def _landed(connection: Connection, place: tuple[int, int, str]) -> bool:
    id, seq, hash = place
    query = select(_R.c.hash).where(_R.c.budget_id == id, _R.c.seq == seq)
    return connection.execute(query).scalar() == hash
