"""A world for the ledger in which one seed decides everything that happens.

Processes are greenlets, each with the ledger open. Every access to the store or the anchor, and
every named point of a write (`committer.POINTS`), is a step: there the scheduler chooses who goes
on. It may kill a process instead, cut the power, jump the clock, fill the disk, or lose and
duplicate messages between clients and processes.

The store is SQLite in memory; its disk has a write cache. What was written is seen by everyone at
once, what was synced survives a power failure, and what was not may or may not. That a single
commit is atomic is SQLite's promise, and is taken for granted here; real files and real kills are
in `tests/faults`. A store that is asked to commit may also answer that it does not know, as a
server does whose connection breaks, whether or not the commit is there.

Not simulated: row locks of PostgreSQL, threads that share a process (a batch stands for these),
`recover` (the model in `model/` has it), and standbys. What a disk keeps of a single write is in
`tests/faults/test_power.py`.
"""

from __future__ import annotations

import random
import sqlite3
import types
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar
from unittest import mock

from greenlet import getcurrent, greenlet
from sqlalchemy import Connection, create_engine
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

import residua as rz
from batches import many
from residua.ledger.api.opening import ledger_facts
from residua.ledger.domain import clock
from residua.ledger.operations import committer as write_path
from residua.ledger.operations import early_decisions, group_commit
from residua.ledger.operations.committer import Committer
from residua.ledger.recovery.anchor_check import compare_with_anchor
from residua.ledger.storage.anchor import Anchor, Anchored, Check, Marks
from residua.ledger.storage.sqlite import SqliteStore
from residua.ledger.storage.store import Again, CommitUnknown, Lost, Place, Store

T = TypeVar("T")
START = 1_800_000_000.0
_COMPILED: dict[Any, Any] = {}
"""Statements that were compiled, for all processes: most of the time of a run otherwise."""


class Crash(BaseException):
    """The process is gone. Nothing that it does from here on has an effect."""


class Disk(Generic[T]):
    """A file with a write cache: what is seen, and what survives a power failure."""

    def __init__(self, content: T):
        self.seen = self.synced = content

    def write(self, content: T) -> None:
        self.seen = content

    def sync(self) -> None:
        self.synced = self.seen

    def lose_power(self, keeps: bool) -> None:
        """What was not synced is kept or lost."""
        self.seen = self.synced = self.seen if keeps else self.synced


class SimulatedStore(SqliteStore):
    """An SQLite store whose file is on a simulated disk."""

    now = "simulated_now()"

    def __init__(self, world: World):
        self.world, self.wal, self.read_only = world, False, False
        engine = create_engine("sqlite://", creator=self._connect, poolclass=NullPool)
        engine = engine.execution_options(compiled_cache=_COMPILED)
        Store.__init__(self, Place(URL.create("sqlite", database="simulated")), engine)

    def _connect(self) -> sqlite3.Connection:
        made = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        made.create_function("simulated_now", 0, self._now)
        return made

    def _now(self) -> str:
        return clock.text(datetime.fromtimestamp(self.world.time, UTC))

    def settle(self) -> None:
        """There is no journal to choose."""

    def begin_reading(self, connection: Connection) -> None:
        self.world.step("read")
        while self.world.committing is not None:
            self.world.step("wait")
        self._begin(connection, "BEGIN")

    def begin_writing(self, connection: Connection) -> None:
        self.world.step("lock")
        self.world.take_lock()
        if self.world.fails("lost"):
            raise Lost("simulated")
        self._begin(connection, "BEGIN IMMEDIATE")

    def _begin(self, connection: Connection, how: str) -> None:
        driver: Any = connection.connection.driver_connection
        if self.world.disk.seen:
            driver.deserialize(self.world.disk.seen)
        driver.execute(how)

    def tidy(self, connection: Connection) -> None:
        self.world.release_lock()

    def commit(self, connection: Connection, is_committed: Callable[[Connection], bool]) -> None:
        world, driver = self.world, connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        world.step("write")
        if world.fails("full"):
            raise rz.StoreUnavailable("the simulated disk is full; nothing was spent")
        if world.fails("silent"):
            raise CommitUnknown("the simulated connection broke before the commit arrived")
        driver.commit()
        # SQLite's journal is gone: it counts. While the process lives, nobody sees it before it is
        # synced; if the process dies, the lock is gone.
        world.disk.write(driver.serialize())
        world.committing = world.running
        world.step("sync")
        self.sync()
        world.committing = None
        world.step("synced")
        if world.fails("silent"):
            raise CommitUnknown("the simulated connection broke after the commit")

    def sync(self) -> None:
        self.world.disk.sync()


class SimulatedAnchor(Anchor):
    """An anchor on another simulated disk."""

    def __init__(self, world: World):
        self.world, self._told = world, dict[str, tuple[int, str]]()

    def __str__(self) -> str:
        return "simulated"

    def read(self) -> Anchored | None:
        self.world.step("anchor read")
        return self.world.marks.seen

    def create(self, said: Anchored) -> None:
        if self.world.marks.seen is None:
            self.start(said)

    def start(self, said: Anchored, check: Check | None = None) -> None:
        self.world.marks.write(said)
        self.world.marks.sync()

    def changes(self) -> Marks:
        said = self.read()
        assert said is not None
        return self._new(said)

    def _new(self, said: Anchored) -> Marks:
        new = {name: mark for name, mark in said.marks.items() if self._told.get(name) != mark}
        self._told.update(new)
        return new

    def write(self, marks: Marks, check: Check | None = None) -> None:
        world = self.world
        while world.marking not in (None, world.running):
            world.step("wait")
        world.marking = world.running
        try:
            self._write(marks, check)
        finally:
            # Not of a process that died meanwhile: `forget` did.
            world.marking = None if world.marking is world.running else world.marking

    def _write(self, marks: Marks, check: Check | None) -> None:
        world, said = self.world, self.read()
        assert said is not None
        if check is not None:
            check(self._new(said))
        if world.fails("anchor full"):
            raise OSError("the simulated disk of the anchor is full")
        later = {n: m for n, m in marks.items() if n not in said.marks or said.marks[n][0] < m[0]}
        world.marks.write(Anchored(said.ledger, said.incarnation, {**said.marks, **later}))
        world.step("anchor sync")
        if world.fails("anchor unsynced"):
            raise OSError("the simulated anchor could not be synced")
        world.marks.sync()

    def close(self) -> None:
        """There is no file."""


class Process:
    """A process that opens the ledger and answers what comes, until it is killed."""

    def __init__(self, world: World, name: str):
        self.world, self.name = world, name
        self.alive = True
        self.inbox: list[Message] = []
        self._run = greenlet(self._serve)

    def _serve(self) -> None:
        try:
            ledger = None
            while True:
                if ledger is None:
                    ledger = self._open()
                self.world.step("idle")
                if not self.inbox or ledger is None:
                    continue
                taken = self.inbox[: self.world.rng.choice((1, 1, 2, 4))]
                self.inbox = self.inbox[len(taken) :]
                for message, answer in zip(taken, self._answer(ledger, taken), strict=True):
                    self.world.answered(message, answer)
                    if isinstance(answer, rz.ReadOnlyLedger):
                        ledger = None
        except Crash:
            return

    def _open(self) -> rz.Ledger | None:
        try:
            return self.world.open()
        except (rz.LedgerError, Again, CommitUnknown):
            return None

    def _answer(self, ledger: rz.Ledger, taken: list[Message]) -> list[Any]:
        """One by one, or as a batch, which shares a transaction."""
        calls = [message.operation.call for message in taken]
        try:
            if len(calls) > 1:
                return many(ledger, calls)
            acting = ledger.as_principal(calls[0].principal)
            return [getattr(acting, calls[0].verb)(**calls[0].arguments)]
        except rz.ResiduaError as error:
            return [error] * len(taken)

    def go_on(self) -> None:
        """Run up to the next step."""
        self._run.switch()

    def kill(self) -> None:
        """End it where it is; what it does to clean up has no effect."""
        self.alive = False
        if self._run:
            self._run.throw(Crash)
        self.world.forget(self)


@dataclass
class Operation:
    """What a client wants, under one key, and what it was told."""

    call: Any
    key: str
    deliveries: int = 0
    doubtful: bool = False
    """Whether an attempt may have been decided without an answer."""
    fresh: int = 0
    """How many answers were given that are not replays."""
    answer: Any = None


@dataclass
class Message:
    """An operation on its way to a process, or its answer on the way back."""

    operation: Operation
    answer: Any = None
    is_answer: bool = False


@dataclass
class World:
    """Everything there is."""

    seed: Any
    image: bytes
    """The content of the store's disk at the start."""
    anchored: Anchored | None = None
    store: type[SimulatedStore] = SimulatedStore
    anchor: type[SimulatedAnchor] = SimulatedAnchor
    rate: float = 0.02
    """How likely each chance of a failure is taken."""
    time: float = START
    writer: Process | None = None
    committing: Process | None = None
    """Who commits, and keeps all others from reading."""
    marking: Process | None = None
    """Who writes to the anchor."""
    trace: list[tuple[str, str]] = field(default_factory=list)
    running: Process | None = None
    crash_at: int | None = None
    """The number of a step at which the process that takes it is killed."""

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.disk, self.marks = Disk(self.image), Disk(self.anchored)
        self.hub = getcurrent()

    def open(self) -> rz.Ledger:
        """The ledger, as `open_ledger` opens it."""
        store = self.store(self)
        facts = ledger_facts(store, create=True)
        committer = Committer(store, None, facts["ledger"], facts["incarnation"])
        committer.anchor = self.anchor(self)
        committer.closed = compare_with_anchor(committer)
        return rz.Ledger(committer)

    # -- what the ledger meets ----------------------------------------------------------

    def step(self, label: str) -> None:
        """A place at which anything else may happen; nothing for who is not simulated."""
        process = self.running
        if process is None:
            assert label != "wait", "only a simulated process can wait"
            return
        if not process.alive:
            raise Crash
        self.trace.append((process.name, label))
        if self.crash_at is not None and len(self.trace) == self.crash_at:
            process.alive = False
            raise Crash
        self.hub.switch()
        if not process.alive:
            raise Crash

    def fails(self, what: str) -> bool:
        """Whether something goes wrong now."""
        if self.running is None or self.rng.random() >= self.rate:
            return False
        self.trace.append((self.running.name, f"fails: {what}"))
        return True

    def forget(self, process: Process) -> None:
        """The locks of a process that is gone."""
        self.writer = None if self.writer is process else self.writer
        self.committing = None if self.committing is process else self.committing
        self.marking = None if self.marking is process else self.marking

    def take_lock(self) -> None:
        while self.writer is not None and self.writer is not self.running:
            self.step("wait")
        self.writer = self.running

    def release_lock(self) -> None:
        if self.writer is self.running:
            self.writer = None

    # -- what the scheduler does --------------------------------------------------------

    def run(self, process: Process) -> None:
        self.running = process
        try:
            process.go_on()
        finally:
            self.running = None

    def kill(self, process: Process) -> None:
        self.trace.append((process.name, "killed"))
        self.running = process
        try:
            process.kill()
        finally:
            self.running = None

    def answered(self, message: Message, answer: Any) -> None:
        """A process has an answer; `Run` says what becomes of it."""
        raise NotImplementedError


@contextmanager
def determined(world: World) -> Iterator[None]:
    """Ids and the time that decisions take follow from the seed, too."""
    ids = random.Random(f"ids {world.seed}")
    still = types.SimpleNamespace(monotonic=lambda: 0.0, thread_time=lambda: 0.0)
    with (
        mock.patch.object(uuid, "uuid4", lambda: uuid.UUID(int=ids.getrandbits(128), version=4)),
        mock.patch.object(write_path, "point", world.step),
        mock.patch.object(early_decisions, "time", still),
        mock.patch.object(group_commit, "time", still),
    ):
        yield
