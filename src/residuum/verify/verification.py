"""Verifying chains of records: structure first, then every step that moved a state.

Steps that are equal in filter, states, mechanism and tables are proven once. What `since` names
was verified before: its links are checked again, its steps are not.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from residuum.errors import ArgumentError, BrokenRecord, NotALedger
from residuum.records import Record, canonical, digest, from_line
from residuum.verify.filters import Asked, prove_first, prove_step
from residuum.verify.partitions import Part
from residuum.verify.report import Problem, Report, Step
from residuum.verify.structure import (
    Chain,
    check_across,
    check_heads,
    check_states,
    load,
    part_of,
)
from residuum.verify.verdict import Proof, all_of

TableSource = Mapping[str, bytes] | Callable[[str], bytes | None]
Progress = Callable[[int, int], None]


def verify_records(
    chains: Mapping[str, Iterable[Record | str]],
    tables: TableSource,
    expect_head: Any = None,
    since: Any = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Report:
    """Check chains of records and prove their steps.

    `chains` has the records of each budget, or their texts, by its name; `tables` the contents of
    the tables by SHA-256. `expect_head` is a hash that was given out, or maps budgets to a hash or
    to `(seq, hash)`. `since` maps budgets to what was verified before, `seq` or `(seq, hash)`; an
    earlier `Report` will do. `progress` is told how many steps of how many are done.
    """
    if type(jobs) is not int or jobs < 1:
        raise ArgumentError(f"jobs must be at least 1, got {jobs!r}")
    read = {name: load(name, items) for name, items in chains.items()}
    for chain in read.values():
        check_states(chain)
    check_across(read)
    check_heads(read, expect_head)
    done_before = _since(read, since)
    tasks = [
        task
        for chain in read.values()
        for task in _tasks(chain, part_of(chain, read), tables, done_before)
    ]
    steps = _prove(tasks, jobs, progress)
    return Report(
        tuple(steps),
        tuple(problem for chain in read.values() for problem in chain.problems),
        {n: (c.records[-1].seq, c.records[-1].hash) for n, c in read.items() if c.records},
        done_before,
    )


def verify_export(
    path: str | Path | Iterable[str],
    expect_head: Any = None,
    since: Any = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Report:
    """Verify an export: JSON Lines of records with their hashes, and of tables."""
    if isinstance(path, str | Path):
        try:
            lines = Path(path).read_text(encoding="ascii").splitlines()
        except UnicodeDecodeError as error:
            raise NotALedger(f"the export {str(path)!r} is not text: {error}") from None
    else:
        lines = list(path)
    chains: dict[str, list[str]] = {}
    tables: dict[str, bytes] = {}
    broken: list[Problem] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            table = _table(line)
            if table is not None:
                tables[table[0]] = table[1]
                continue
            record = from_line(line)
            chains.setdefault(record.budget, []).append(record.text)
        except BrokenRecord as error:
            name, seq = _place(line)
            broken.append(Problem(name, seq, f"line {number} of the export: {error}"))
    if not chains and not broken:
        raise NotALedger("the export has no records")
    report = verify_records(chains, tables, expect_head, since, jobs, progress)
    problems = (*broken, *report.problems)
    return Report(report.steps, problems, report.heads, report.since)


def _table(line: str) -> tuple[str, bytes] | None:
    if not line.startswith('{"content"'):
        return None
    try:
        parsed = json.loads(line)
        hash, content = parsed["table"], base64.b64decode(parsed["content"], validate=True)
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise BrokenRecord(f"a table that cannot be read: {error}") from None
    if digest(content) != hash:
        raise BrokenRecord(f"a table that does not hash to {str(hash)[:12]}…")
    return hash, content


def _place(line: str) -> tuple[str, int | None]:
    """About where a broken line belongs."""
    try:
        body = json.loads(json.loads(line)["record"])
        seq = body.get("seq")
        return str(body.get("budget")), seq if type(seq) is int else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return "?", None


def _since(chains: Mapping[str, Chain], since: Any) -> dict[str, int]:
    """Up to which record each chain was verified before; broken promises are problems."""
    if since is None:
        return {}
    marks = since.heads if isinstance(since, Report) else dict(since)
    known: dict[str, int] = {}
    for name, mark in marks.items():
        chain = chains.get(name)
        if chain is None:
            continue
        seq, hash = (mark, None) if isinstance(mark, int) else tuple(mark)
        record = chain.at(seq)
        if record is None or (hash is not None and record.hash != hash):
            chain.wrong(seq, "is not the record that was verified before")
            continue
        known[name] = seq
    return known


# -- steps --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Task:
    """One thing to prove, and what makes it the same as another."""

    budget: str
    seq: int
    key: str
    config: Any
    before: Any
    after: Any
    asked: Asked
    missing: str | None = None
    part: Part | None = None

    def prove(self) -> Proof:
        if self.missing is not None:
            return Proof("undecided", self.missing)
        if self.before is None:
            first = prove_first(self.config, self.after, self.asked.after)
            return first if self.part is None else all_of([first, self.part.prove(self.config)])
        return prove_step(self.config, self.before, self.after, self.asked)


def _tasks(
    chain: Chain, part: Part | None, source: TableSource, done: Mapping[str, int]
) -> Iterator[_Task]:
    config = chain.first.get("filter")
    tables: dict[str, bytes] = {}
    names: Any = {}
    for record in chain.records:
        body, before = record.body, None
        starts = record.type in ("create", "refresh")
        if starts:
            after = body["state"]
        elif record.type in ("spend", "commit") and body["admitted"] is True:
            before, after = body["before"], body["after"]
        else:
            continue
        moved = starts or before != after
        named = body["tables"] if moved else names
        found, missing = _fetched(named, source) if moved else (tables, None)
        if record.seq > done.get(chain.name, -1):
            asked = Asked(body.get("mechanism"), body.get("relation"), tables, found)
            shown = [config, before, after, asked.mechanism, asked.relation]
            where = part if record.type == "create" else None
            shown += [names if before is not None else None, named, where and where.plain]
            key = digest(canonical(shown))
            yield _Task(chain.name, record.seq, key, config, before, after, asked, missing, where)
        tables, names = found, named


def _fetched(named: Any, source: TableSource) -> tuple[dict[str, bytes], str | None]:
    found: dict[str, bytes] = {}
    if not isinstance(named, Mapping):
        return found, "the tables are not named by their hashes"
    for name, hash in named.items():
        content = source(hash) if callable(source) else source.get(hash)
        if content is None:
            return found, f"the table {name!r} is not here"
        if digest(content) != hash:
            return found, f"the table {name!r} does not hash to what the record says"
        found[name] = content
    return found, None


def _prove(tasks: list[_Task], jobs: int, progress: Progress | None) -> list[Step]:
    firsts: dict[str, _Task] = {}
    for task in tasks:
        firsts.setdefault(task.key, task)
    proofs: dict[str, Proof] = {}
    shares: dict[str, int] = {}
    for task in tasks:
        shares[task.key] = shares.get(task.key, 0) + 1
    finished = 0
    for key, proof in _proofs(list(firsts.values()), jobs):
        proofs[key] = proof
        finished += shares[key]
        if progress is not None:
            progress(finished, len(tasks))
    return [Step(t.budget, t.seq, proofs[t.key].verdict, proofs[t.key].reason) for t in tasks]


def _proofs(tasks: list[_Task], jobs: int) -> Iterator[tuple[str, Proof]]:
    if jobs == 1 or len(tasks) < 2:
        for task in tasks:
            yield task.key, task.prove()
        return
    # Not forked: the caller may have threads.
    fresh = get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=fresh) as pool:
        proofs = pool.map(_Task.prove, tasks, chunksize=max(1, len(tasks) // (8 * jobs)))
        for task, proof in zip(tasks, proofs, strict=True):
            yield task.key, proof
