"""The steps of chains: which are to be proven, each once, and the overall verdict.

A step is the first state of a budget or of a window, or a spend, hold or commit that was admitted.
It is proven if its own move is sound and the holds that are open after it still fit (`holds.py`).
What a hold sets aside is proven once, and their sum at each record.

A step is proven from the state before it. A step after a refuted one is therefore not proven,
however right it is in itself: it is undecided until a new window begins from the start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from residua.records import Record, canonical, digest
from residua.verify.arithmetic.work_limit import LIMIT, MEMORY, TOTAL, Exhausted, limit_work
from residua.verify.chains.chain import ASKING, Chain
from residua.verify.chains.holds import Following, Holds, Sum
from residua.verify.descriptions.configurations import UNREADABLE
from residua.verify.descriptions.mechanisms import StepQuery
from residua.verify.proofs.filters import prove_first, prove_room, prove_set_aside, prove_step
from residua.verify.proofs.partitions import Part
from residua.verify.proofs.verdict import Proof, all_of, proven, undecided
from residua.verify.report import Step
from residua.verify.workers import spread

TableSource = Mapping[str, bytes] | Callable[[str], bytes | None]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Task:
    """One thing to prove, and what makes it the same as another."""

    budget: str
    seq: int
    key: str
    config: Any
    before: Any
    after: Any
    asked: StepQuery
    missing: str | None = None
    part: Part | None = None
    hold: str | None = None
    """The open hold whose commit this would be; None for what was done."""

    def verdict_on_record(self, proof: Proof) -> Proof:
        """The meaning of a verdict for the record."""
        if self.hold is None:
            return proof
        if proof.verdict == "proven":
            return proven("the open holds fit")
        what, do = f"hold {self.hold!r}", "does"
        if self.total is not None:
            what, do = "holds", "do"
        word = f"{do} not fit" if proof.verdict == "refuted" else "cannot be shown to fit"
        return Proof(proof.verdict, f"the open {what} {word}: {proof.reason}")

    component: Any = None
    """The component of a union in which holds set amounts aside."""
    takes: tuple[Any, ...] | None = None
    """What an open hold sets aside, of which is asked whether it suffices."""
    total: tuple[Fraction, ...] | None = None
    """What all open holds set aside, of which is asked whether it is left."""

    @property
    def starts(self) -> bool:
        """Whether nothing before it matters: the first state of a budget or of a window."""
        return self.before is None

    def prove(self, limit: float = LIMIT, memory: float = MEMORY) -> Proof:
        """The verdict, with so many seconds of counted work and megabytes at most."""
        return self.measured(limit, memory)[0]

    def measured(self, limit: float, memory: float) -> tuple[Proof, float]:
        """The verdict and the counted work, in seconds."""
        if self.missing is not None:
            return undecided(self.missing), 0.0
        with limit_work(limit, memory) as share:
            try:
                found = self._proof()
            except Exhausted as error:
                found = undecided(str(error))
            except MemoryError:
                found = undecided("memory limit: this machine is out of memory")
            except UNREADABLE as error:
                # Nothing that goes wrong here says anything about the record.
                found = undecided(f"the proof failed: {error!r:.200}")
        return found, min(share.seconds, limit)

    def _proof(self) -> Proof:
        if self.takes is not None:
            own = self.component, self.takes
            return prove_set_aside(self.config, self.after, *own, self.asked)
        if self.total is not None:
            return prove_room(self.config, self.after, self.component, self.total)
        if self.before is None:
            first = prove_first(self.config, self.after, self.asked.after)
            return first if self.part is None else all_of([first, self.part.prove(self.config)])
        return prove_step(self.config, self.before, self.after, self.asked)


class _Tables(NamedTuple):
    """The tables of a state: their hashes, what could be had of them, and why not all."""

    names: Any
    found: Mapping[str, bytes]
    missing: str | None = None


def tasks_of(
    chain: Chain, part: Part | None, source: TableSource, done: Mapping[str, int]
) -> Iterator[Task]:
    """The claims to be proven of each record, in the order of the records."""
    config = chain.first.get("filter")
    tables = _Tables({}, {})
    holds = Holds()
    known_of: dict[int, _Tables] = {}
    """The tables of the state that was stated last of each open hold, by the record of the hold."""
    for record in chain.records:
        body, before = record.body, None
        holds.follow(record)
        starts = record.type in ("create", "refresh")
        if starts:
            after = body["state"]
        elif record.type in ASKING and body["admitted"] is True:
            before, after = body["before"], body["after"]
        else:
            _following(chain, record, holds)
            continue
        known = tables
        if starts or before != after:
            tables = _fetched(chain, record, body["tables"], source)
        new = record.seq > done.get(chain.name, -1)
        if new and record.type != "hold":
            where = part if record.type == "create" else None
            yield _task(chain, record, config, (before, after), body, (known, tables), where)
        # Each open hold, as if it were committed after those that were made before it.
        following = _following(chain, record, holds)
        if isinstance(following, Sum):
            if new:
                yield from _sum_tasks(record, config, after, following)
            continue
        before, known = after, tables
        for hold, after, named, stated in following:
            if stated and named is not None and named == tables.names:
                chain.wrong(record.seq, "holds names tables that the committed state has")
            if stated:
                then = tables if named is None else _fetched(chain, record, named, source)
                known_of[hold.seq] = then
            then = known_of[hold.seq]
            if new:
                asked, states = hold.body, (before, after)
                made = _task(chain, record, config, states, asked, (known, then), None)
                yield replace(made, hold=str(asked["hold"]))
            before, known = after, then


def _sum_tasks(record: Record, config: Any, after: Any, holds: Sum) -> Iterator[Task]:
    """That what holds set aside suffices for each that is stated, and is left for all of them."""
    filters = after.get("filters") if isinstance(after, Mapping) else None
    budget, seq, place = record.budget, record.seq, holds.component
    none = StepQuery(None, None, {}, {})
    for hold, _, takes in holds.stated:
        asked = StepQuery(hold.body.get("mechanism"), hold.body.get("relation"), {}, {})
        shown = [config, filters, place, list(takes), asked.mechanism, asked.relation]
        key = digest(canonical(["suffices", *shown]))
        yield Task(
            budget, seq, key, config, after, after, asked,
            hold=str(hold.body["hold"]), component=place, takes=takes,
        )  # fmt: skip
    total = [str(each) for each in holds.total]
    key = digest(canonical(["room", config, after, place, total]))
    yield Task(
        budget, seq, key, config, after, after, none,
        hold="", component=place, total=holds.total,
    )  # fmt: skip


def _task(
    chain: Chain,
    record: Record,
    config: Any,
    states: tuple[Any, Any],
    body: Mapping[str, Any],
    tables: tuple[_Tables, _Tables],
    part: Part | None,
) -> Task:
    before, after = states
    asked = StepQuery(body.get("mechanism"), body.get("relation"), tables[0].found, tables[1].found)
    shown = [config, before, after, asked.mechanism, asked.relation]
    names = None if before is None else tables[0].names
    shown += [names, tables[1].names, part and part.plain]
    key = digest(canonical(shown))
    missing = tables[1].missing
    return Task(chain.name, record.seq, key, config, before, after, asked, missing, part)


def _following(chain: Chain, record: Record, holds: Holds) -> list[Following] | Sum:
    """A record's statement on the open holds; a form that no ledger writes is a problem."""
    try:
        return holds.after(record)
    except ValueError as error:
        chain.wrong(record.seq, str(error))
        return []


def _fetched(chain: Chain, record: Record, named: Any, source: TableSource) -> _Tables:
    """The tables that a record names, and why one cannot be had; one that was changed is damage."""
    found: dict[str, bytes] = {}
    if not isinstance(named, Mapping) or not all(isinstance(h, str) for h in named.values()):
        return _Tables(named, found, "the tables are not named by their hashes")
    missing = None
    for name, hash in named.items():
        content = source(hash) if callable(source) else source.get(hash)
        if content is None:
            missing = missing or f"the table {name!r} is not here"
        elif digest(content) != hash:
            missing = f"the table {name!r} ({hash[:12]}…) was changed: it does not hash to that"
            chain.wrong(record.seq, missing)
        else:
            found[name] = content
    return _Tables(named, found, missing)


@dataclass(frozen=True)
class Limits:
    """Limits of a verification: work for one step, work for all, and memory."""

    step: float = LIMIT
    """Seconds of counted work for one step."""
    total: float = TOTAL
    """Seconds of counted work for all steps."""
    memory: float = MEMORY
    """Megabytes of counted memory for a process."""


def prove_all(
    tasks: list[Task], jobs: int, limits: Limits, progress: Progress | None
) -> list[Step]:
    """The verdicts on steps, in the order of their chains."""
    firsts: dict[str, Task] = {}
    for task in tasks:
        firsts.setdefault(task.key, task)
    proofs: dict[str, Proof] = {}
    shares: dict[str, int] = {}
    for task in tasks:
        shares[task.key] = shares.get(task.key, 0) + 1
    finished = 0
    for key, proof in _proofs(list(firsts.values()), jobs, limits):
        proofs[key] = proof
        finished += shares[key]
        if progress is not None:
            progress(finished, len(tasks))
    return list(_resting(tasks, proofs))


def _resting(tasks: list[Task], proofs: Mapping[str, Proof]) -> Iterator[Step]:
    """The verdict on each record, seen together with those on the steps that it rests on."""
    budget, refuted, undecided = None, None, None
    for (name, seq), some in groupby(tasks, key=lambda task: (task.budget, task.seq)):
        same = list(some)
        if name != budget or same[0].starts:
            budget, refuted, undecided = name, None, None
        verdict, reason = all_of([task.verdict_on_record(proofs[task.key]) for task in same])
        # Later states rest on the step itself, not on whether the open holds still fit after it.
        moved = "proven" if same[0].hold is not None else proofs[same[0].key].verdict
        if verdict == "proven" and refuted is not None:
            verdict, reason = "undecided", f"rests on step {refuted}, which was refuted; {reason}"
        elif verdict == "proven" and undecided is not None:
            reason = f"{reason}; rests on step {undecided}, which is undecided"
        if moved == "refuted" and refuted is None:
            refuted = seq
        elif moved == "undecided" and undecided is None:
            undecided = seq
        yield Step(name, seq, verdict, reason)


def _proofs(tasks: list[Task], jobs: int, limits: Limits) -> Iterator[tuple[str, Proof]]:
    """Each verdict, until the total is used up: then all others are undecided."""
    left = limits.total
    measured = _measured(tasks, jobs, limits)
    over = undecided(f"total work limit: {limits.total:g} s of counted work were used up")
    for task in tasks:
        if left > 0.0:
            proof, used = next(measured)
            left -= used
            if left >= 0.0:
                yield task.key, proof
                continue
        if left != -math.inf:
            left = -math.inf
            measured.close()
        yield task.key, over


def _measured(
    tasks: list[Task], jobs: int, limits: Limits
) -> Generator[tuple[Proof, float], None, None]:
    """Verdicts with the work that each took, one after another or by several processes."""
    measure = partial(Task.measured, limit=limits.step, memory=limits.memory)
    if jobs == 1 or len(tasks) < 2:
        for task in tasks:
            yield measure(task)
    else:
        yield from spread(measure, tasks, min(jobs, len(tasks)))
