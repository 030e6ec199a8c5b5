"""A run: clients that ask again until they are answered, in a world where things go wrong."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import residua as rz
from batches import Call
from residua.ledger.storage.anchor import Anchored
from residua.mechanisms import PureDp
from simulation.invariants import CAPACITY, Books, mark_covers
from simulation.world import Message, Operation, Process, World, determined

NAMES: tuple[Any, ...] = ("a", "b", "q", ["a", "b"], ["b", "q"])
SIZES = (0.01, 0.05, 0.2)
FINAL = (rz.UnknownHold, rz.KeyReused)
"""Errors that a client does not ask again after."""


@lru_cache(maxsize=1)
def beginning() -> tuple[bytes, Anchored]:
    """A ledger with three budgets: its image, and its anchor."""
    world = World("beginning", b"")
    with determined(world):
        ledger = world.open()
        for name in ("a", "b", "q"):
            cap = rz.PureFilter(float(CAPACITY[name]))
            ledger.create_budget(name, cap, parent="a" if name == "q" else None)
    assert world.marks.synced is not None
    return world.disk.synced, world.marks.synced


class Run(World):
    """One seed."""

    def __init__(self, seed: Any, processes: int = 2, clients: int = 3, **options: Any):
        super().__init__(seed, *beginning(), **options)
        self.processes = [Process(self, f"p{n}") for n in range(processes)]
        self.started = processes
        self.clients: list[Operation | None] = [None] * clients
        self.made = 0
        self.messages: list[Message] = []
        self.acknowledged: list[Any] = []
        self.holds: list[str] = []
        self.backups: list[bytes] = [self.disk.synced]

    # -- clients ------------------------------------------------------------------------

    def ask(self, client: int) -> None:
        """Send something new, or the same again under the same key."""
        if self.clients[client] is None:
            self.clients[client] = self._made()
        operation = self.clients[client]
        assert operation is not None
        self.messages.append(Message(operation))

    def _made(self) -> Operation:
        rng = self.rng
        self.made += 1
        key = f"k{self.made}"
        arguments: dict[str, Any] = {"key": key}
        verb = rng.choice(("spend", "spend", "reserve", "commit", "cancel"))
        if verb in ("commit", "cancel") and not self.holds:
            verb = "spend"
        if verb in ("commit", "cancel"):
            arguments["hold"] = rng.choice(self.holds)
        else:
            arguments |= {"budgets": rng.choice(NAMES), "query": PureDp(rng.choice(SIZES))}
        if verb == "reserve":
            arguments["ttl"] = rng.choice((0.5, 5.0, 600.0))
        if verb == "cancel":
            arguments = {"hold": arguments["hold"], "reason": key}
        return Operation(Call(verb, arguments, "client"), key)

    def deliver(self, message: Message) -> None:
        """A message arrives: at a process, or at the client that waits for it."""
        operation = message.operation
        if not message.is_answer:
            if self.processes:
                operation.deliveries += 1
                self.rng.choice(self.processes).inbox.append(message)
            return
        answer = message.answer
        if operation not in self.clients:
            return  # It was answered before.
        if isinstance(answer, rz.ResiduaError) and not isinstance(answer, FINAL):
            return  # The client asks again.
        if hasattr(answer, "budgets") and hasattr(answer, "admitted"):
            self.check_durable(answer)
            self.acknowledged.append(answer)
            if operation.call.verb == "reserve" and answer.admitted:
                self.holds.append(answer.id)
        operation.answer = answer
        self.clients[self.clients.index(operation)] = None

    def answered(self, message: Message, answer: Any) -> None:
        operation = message.operation
        if isinstance(answer, rz.StoreUnavailable) and operation.deliveries == 1:
            assert not Books(self.disk.seen).has_key(operation.key), "nothing was spent"
        if hasattr(answer, "replayed"):
            operation.fresh += not answer.replayed
            assert operation.fresh <= 1, "a receipt permits one run"
            self.check_durable(answer)
        self.messages.append(Message(operation, answer, is_answer=True))

    def check_durable(self, answer: Any) -> None:
        """What a caller is told is on both disks, whatever happens to the power."""
        assert Books(self.disk.synced).has(answer.budgets), "durable before the caller is told"
        assert mark_covers(self.marks.synced, answer.budgets), "anchored before the caller is told"

    # -- what happens -------------------------------------------------------------------

    def happen(self) -> None:
        """Something, by chance."""
        rng, chance = self.rng, self.rng.random()
        if chance < 0.72 and self.processes:
            self.run(rng.choice(self.processes))
        elif chance < 0.78:
            self.ask(rng.randrange(len(self.clients)))
        elif chance < 0.95 and self.messages:
            message = self.messages.pop(rng.randrange(len(self.messages)))
            fate = rng.random()
            if fate < 0.1:
                return  # It is lost.
            if fate < 0.2:
                self.messages.append(message)  # It will arrive a second time.
            self.deliver(message)
        elif chance < 0.955 and self.processes:
            self.end(rng.choice(self.processes))
        elif chance < 0.975 and len(self.processes) < 3:
            self.start()
        elif chance < 0.9765:
            self.cut_power()
        elif chance < 0.984:
            self.time += rng.choice((-3600.0, -1.0, 0.3, 1.0, 3600.0))
        elif chance < 0.988:
            self.backups.append(self.disk.synced)
        elif chance < 0.99:
            self.put_back(rng.choice(self.backups))
        self.time += 0.01

    def start(self) -> None:
        self.started += 1
        self.processes.append(Process(self, f"p{self.started}"))

    def end(self, process: Process) -> None:
        self.kill(process)
        self.processes.remove(process)

    def cut_power(self) -> None:
        """All processes are gone, and perhaps what was not synced."""
        self.trace.append(("world", "power"))
        for process in list(self.processes):
            self.end(process)
        self.disk.lose_power(keeps=self.rng.random() < 0.5)
        self.marks.lose_power(keeps=self.rng.random() < 0.5)
        books = Books(self.disk.seen)
        books.check()
        for answer in self.acknowledged:
            assert books.has(answer.budgets), "nothing that was acknowledged is missing"
        self.start()

    def put_back(self, backup: bytes) -> None:
        """A restored backup that lacks what was acknowledged is read-only for who opens it."""
        if self.writer is not None:
            return  # Not while somebody writes.
        present = self.disk.seen, self.disk.synced
        self.disk.seen = self.disk.synced = backup
        marks = self.marks.seen
        assert marks is not None
        books = Books(backup)
        lost = not books.has(marks.marks)
        ledger = self.open()
        assert (ledger.read_only is not None) == lost, "a backup does not un-spend"
        if lost:
            try:
                ledger.spend("a", PureDp(0.01))
            except rz.ReadOnlyLedger:
                pass
            else:
                raise AssertionError("a backup does not un-spend")
        self.disk.seen, self.disk.synced = present
        self.marks.write(marks)

    def whole(self, events: int) -> None:
        """Let things happen, then let all be well, and look at everything."""
        with determined(self):
            for _ in range(events):
                self.happen()
            self.settle()
        books = Books(self.disk.synced)
        books.check()
        for answer in self.acknowledged:
            assert books.has(answer.budgets)

    def settle(self) -> None:
        """Nothing fails any more: whoever waits is answered."""
        self.rate = 0.0
        for process in list(self.processes):
            self.end(process)
        self.start()
        self.messages.clear()
        waiting = [n for n, operation in enumerate(self.clients) if operation is not None]
        for client in waiting:
            self.ask(client)
        for _ in range(2000):
            if all(operation is None for operation in self.clients):
                break
            while self.messages:
                self.deliver(self.messages.pop(0))
            self.run(self.processes[0])
        assert all(operation is None for operation in self.clients), "whoever waits is answered"


class Restoring(Run):
    """A run in which a backup is put back once, while requests are under way and servers go on.

    What was acknowledged may be missing then, but not noticed late: no budget permits more runs
    than it has room for, no number of a chain is acknowledged as two records, and a ledger that
    lacks anything is read-only for those who open it.
    """

    def __init__(self, seed: Any, **options: Any):
        super().__init__(seed, processes=3, **options)
        self.restored = False
        self.permitted = dict.fromkeys(CAPACITY, Fraction(0))
        self.known: dict[tuple[str, int], str] = {}
        self.held: dict[str, Fraction] = {}

    def check_durable(self, answer: Any) -> None:
        if not self.restored:
            super().check_durable(answer)
        assert mark_covers(self.marks.synced, answer.budgets), "anchored before the caller is told"

    def answered(self, message: Message, answer: Any) -> None:
        super().answered(message, answer)
        if not hasattr(answer, "replayed"):
            return
        for name, (seq, hash) in answer.budgets.items():
            assert self.known.setdefault((name, seq), hash) == hash, "one chain is acknowledged"
        if answer.replayed or not answer.admitted:
            return
        call = message.operation.call
        if call.verb == "commit":
            cost = self.held[call.arguments["hold"]]
        else:
            cost = Fraction(str(call.arguments["query"].eps))
        if call.verb == "reserve":
            self.held[answer.id] = cost
            return
        for name in answer.budgets:
            self.permitted[name] += cost
            assert self.permitted[name] <= CAPACITY[name], "a backup does not un-spend"

    def put_back(self, backup: bytes) -> None:
        """Now and for good."""
        if self.writer is None and not self.restored:
            self.restored = True
            self.trace.append(("world", "restored"))
            self.disk.seen = self.disk.synced = backup

    def cut_power(self) -> None:
        if not self.restored:
            super().cut_power()

    def whole(self, events: int) -> None:
        """Put the backup back somewhere in the middle."""
        at = self.rng.randrange(events // 4, events)
        with determined(self):
            for n in range(events):
                if n >= at:
                    self.put_back(self.rng.choice(self.backups))
                self.happen()
            for process in list(self.processes):
                self.end(process)
            books = Books(self.disk.synced)
            lost = [one for one in self.acknowledged if not books.has(one.budgets)]
            if lost:
                assert self.open().read_only is not None, "what was acknowledged is missing"
