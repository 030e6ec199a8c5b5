"""The steps of chains: which are to be proven, each once, and the overall verdict.

A step is the first state of a budget or of a window, or a spend, hold or commit that was admitted.
It is proven if its own move is sound and the holds that are open after it still fit (`holds.py`).
What a hold sets aside is proven once, and their sum at each record.

A step is proven from the state before it. A step after a refuted one is therefore not proven,
however right it is in itself: it is undecided until a new window begins from the start.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from residua.errors import LedgerError
from residua.records import Record, canonical, digest
from residua.verify.arithmetic import Exhausted, Limits, limit_work
from residua.verify.chains.chain import REQUEST_TYPES, Chain
from residua.verify.chains.holds import Following, Holds, Sum
from residua.verify.descriptions.configurations import UNREADABLE
from residua.verify.descriptions.mechanisms import StepQuery
from residua.verify.proofs.filters import prove_first, prove_room, prove_set_aside, prove_step
from residua.verify.proofs.partitions import Part
from residua.verify.proofs.verdict import Proof, all_of, proven, undecided
from residua.verify.report import Step
from residua.worker_process import WorkerLost, WorkerProcess

T = TypeVar("T")
R = TypeVar("R")
TableSource = Mapping[str, bytes] | Callable[[str], bytes | None]
Progress = Callable[[int, int], None]
ALL_HOLDS = "holds"


@dataclass(frozen=True)
class Task:
    """One thing to prove, and what makes it the same as another."""

    budget: str
    seq: int
    key: str
    claim: Callable[[], Proof]
    missing: str | None = None
    """Why it cannot be proven, if a table is not here."""
    starts: bool = False
    """Whether nothing before it matters: the first state of a budget or of a window."""
    holds: str | None = None
    """The open holds of which it is asked whether they fit; None for what was done."""

    def verdict_on_record(self, proof: Proof) -> Proof:
        """The meaning of a verdict for the record."""
        if self.holds is None:
            return proof
        if proof.verdict == "proven":
            return proven("the open holds fit")
        do = "do" if self.holds == ALL_HOLDS else "does"
        word = f"{do} not fit" if proof.verdict == "refuted" else "cannot be shown to fit"
        return Proof(proof.verdict, f"the open {self.holds} {word}: {proof.reason}")

    def measured(self, limit: float, memory: float) -> tuple[Proof, float]:
        """The verdict and the counted work, in seconds."""
        if self.missing is not None:
            return undecided(self.missing), 0.0
        return measured(self.claim, limit, memory)


def measured(
    claim: Callable[[], Proof], limit: float = Limits.step, memory: float = Limits.memory
) -> tuple[Proof, float]:
    """The verdict on a claim and its work, with so many seconds and megabytes at most."""
    with limit_work(limit, memory) as share:
        try:
            found = claim()
        except Exhausted as error:
            found = undecided(str(error))
        except MemoryError:
            found = undecided("memory limit: this machine is out of memory")
        except UNREADABLE as error:
            # Nothing that goes wrong here says anything about the record.
            found = undecided(f"the proof failed: {error!r:.200}")
    return found, min(share.seconds, limit)


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
        body = record.body
        holds.follow(record)
        starts = record.type in ("create", "refresh")
        if starts:
            before, after = None, body["state"]
        elif record.type in REQUEST_TYPES and body["admitted"] is True:
            before, after = body["before"], body["after"]
        else:
            _following(chain, record, holds)
            continue
        known = tables
        if starts or before != after:
            tables = _fetch_tables(chain, record, body["tables"], source)
        new = record.seq > done.get(chain.name, -1)
        if new and starts:
            yield _first_task(record, config, tables, part if record.type == "create" else None)
        elif new and record.type != "hold":
            yield _task(record, config, (before, after), body, (known, tables), None)
        # Each open hold, as if it were committed after those that were made before it.
        following = _following(chain, record, holds)
        if isinstance(following, Sum):
            if new:
                yield from _sum_tasks(record, config, after, following)
            continue
        before, known = after, tables
        for hold, after, named, stated in following:
            if stated and named is not None and named == tables.names:
                chain.add_problem(record.seq, "holds names tables that the committed state has")
            if stated:
                then = tables if named is None else _fetch_tables(chain, record, named, source)
                known_of[hold.seq] = then
            then = known_of[hold.seq]
            if new:
                name = f"hold {hold.body['hold']!r}"
                yield _task(record, config, (before, after), hold.body, (known, then), name)
            before, known = after, then


def _key(*shown: Any) -> str:
    return digest(canonical(list(shown)))


def _first_task(record: Record, config: Any, tables: _Tables, part: Part | None) -> Task:
    state = record.body["state"]
    key = _key("begins", config, state, tables.names, part and part.plain)
    claim = partial(_prove_beginning, config, state, tables.found, part)
    return Task(record.budget, record.seq, key, claim, tables.missing, starts=True)


def _prove_beginning(
    config: Any, state: Any, tables: Mapping[str, bytes], part: Part | None
) -> Proof:
    first = prove_first(config, state, tables)
    return first if part is None else all_of([first, part.prove(config)])


def _task(
    record: Record,
    config: Any,
    states: tuple[Any, Any],
    body: Mapping[str, Any],
    tables: tuple[_Tables, _Tables],
    holds: str | None,
) -> Task:
    """That a step is sound from the one state to the other, for what `body` asks."""
    asked = StepQuery(body.get("mechanism"), body.get("relation"), tables[0].found, tables[1].found)
    names = [each.names for each in tables]
    key = _key("step", config, *states, asked.mechanism, asked.relation, *names)
    claim = partial(prove_step, config, *states, asked)
    return Task(record.budget, record.seq, key, claim, tables[1].missing, holds=holds)


def _sum_tasks(record: Record, config: Any, after: Any, holds: Sum) -> Iterator[Task]:
    """That what holds set aside suffices for each that is stated, and is left for all of them."""
    filters = after.get("filters") if isinstance(after, Mapping) else None
    budget, seq, place = record.budget, record.seq, holds.component
    for hold, _, takes in holds.stated:
        asked = StepQuery(hold.body.get("mechanism"), hold.body.get("relation"), {}, {})
        shown = config, filters, place, list(takes), asked.mechanism, asked.relation
        claim = partial(prove_set_aside, config, after, place, takes, asked)
        name = f"hold {hold.body['hold']!r}"
        yield Task(budget, seq, _key("suffices", *shown), claim, holds=name)
    # In hexadecimal, which has no limit: sums of fractions grow long.
    total = [[hex(part) for part in each.as_integer_ratio()] for each in holds.total]
    key = _key("room", config, after, place, total)
    claim = partial(prove_room, config, after, place, holds.total)
    yield Task(budget, seq, key, claim, holds=ALL_HOLDS)


def _following(chain: Chain, record: Record, holds: Holds) -> list[Following] | Sum:
    """A record's statement on the open holds; a form that no ledger writes is a problem."""
    try:
        return holds.after(record)
    except ValueError as error:
        chain.add_problem(record.seq, str(error))
        return []


def _fetch_tables(chain: Chain, record: Record, named: Any, source: TableSource) -> _Tables:
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
            chain.add_problem(record.seq, missing)
        else:
            found[name] = content
    return _Tables(named, found, missing)


def prove_all(
    tasks: list[Task], jobs: int, limits: Limits, progress: Progress | None
) -> list[Step]:
    """The verdicts on steps, in the order of their chains."""
    alike = Counter(task.key for task in tasks)
    proofs: dict[str, Proof] = {}
    finished = 0
    for key, proof in _proofs(list({task.key: task for task in tasks}.values()), jobs, limits):
        proofs[key] = proof
        finished += alike[key]
        if progress is not None:
            progress(finished, len(tasks))
    return list(_verdicts_on_records(tasks, proofs))


def _verdicts_on_records(tasks: list[Task], proofs: Mapping[str, Proof]) -> Iterator[Step]:
    """The verdict on each record, given those on the steps that it rests on."""
    budget, refuted, undecided = None, None, None
    for (name, seq), some in groupby(tasks, key=lambda task: (task.budget, task.seq)):
        same = list(some)
        if name != budget or same[0].starts:
            budget, refuted, undecided = name, None, None
        verdict, reason = all_of([task.verdict_on_record(proofs[task.key]) for task in same])
        # Later states rest on the step itself, not on whether the open holds still fit after it.
        moved = "proven" if same[0].holds is not None else proofs[same[0].key].verdict
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


# -- several processes --------------------------------------------------------------------------


def spread(do: Callable[[T], R], items: Sequence[T], jobs: int) -> Iterator[R]:
    """The results of `do` on each item, in order, computed by so many processes."""
    size = max(1, len(items) // (8 * jobs))
    pieces = [items[start : start + size] for start in range(0, len(items), size)]
    workers: list[WorkerProcess] = []
    free: SimpleQueue[WorkerProcess] = SimpleQueue()

    def made(piece: Sequence[T]) -> list[R]:
        worker = free.get()
        try:
            return worker.ask(_each, do, piece)
        except WorkerLost as lost:
            raise LedgerError(
                f"a process that proved steps ended with {lost.status} before it was done:"
                " verify again, with fewer jobs if memory was short"
            ) from None
        finally:
            free.put(worker)

    threads = ThreadPoolExecutor(jobs)
    try:
        for _ in range(min(jobs, len(pieces))):
            workers.append(_start_worker())
            free.put(workers[-1])
        for found in threads.map(made, pieces):
            yield from found
    finally:
        # First, so that nobody waits for what is under way where the caller lost interest.
        for worker in workers:
            worker.end()
        threads.shutdown(cancel_futures=True)


def _start_worker() -> WorkerProcess:
    try:
        return WorkerProcess()
    except OSError as error:
        raise LedgerError(
            f"jobs must be 1 here, because no process can be started ({error})"
        ) from None


def _each(do: Callable[[T], R], items: Sequence[T]) -> list[R]:
    return [do(item) for item in items]
