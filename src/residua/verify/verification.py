"""Verifying chains of records: structure first, then every step that moved a state.

Steps that are equal in filter, states, mechanism and tables are proven once. What `since` names
was verified before: its links are checked again, its steps are not.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from residua.errors import ArgumentError, BrokenRecord, NotALedger
from residua.records import Record, digest, from_line
from residua.verify.arithmetic.work_limit import LIMIT, MEMORY, TOTAL
from residua.verify.chains.chain import Chain, lost_notes
from residua.verify.chains.heads import check_heads, check_verified, expected_marks, verified_marks
from residua.verify.chains.steps import Limits, Progress, TableSource, prove_all, tasks_of
from residua.verify.chains.structure import check_across, check_states, load, part_of
from residua.verify.report import ANCHOR, GIVEN, NOTES, UNHELD, Problem, Report


def verify_records(
    chains: Mapping[str, Iterable[Record | str | bytes]],
    tables: TableSource,
    expect_head: Any = None,
    since: Any = None,
    jobs: int = 1,
    progress: Progress | None = None,
    limit: float | None = None,
    anchored: Any = None,
    total_limit: float | None = None,
    memory_limit: float | None = None,
) -> Report:
    """Check chains of records and prove their steps.

    `chains` has the records of each budget, or their texts, by its name (bytes where a store has
    something that is not text, which is a problem); `tables` the contents of the tables by SHA-256.
    `expect_head` is a hash that was given out, a receipt, or maps budgets to a hash or to
    `(seq, hash)`; of a list of these all are expected. `since` maps budgets to what was verified
    before, `seq` or `(seq, hash)`; an earlier `Report` will do, of which only what was proven is
    left out. `progress` gets the number of steps done and their total. A step that takes more than
    `limit` seconds of work (60) is undecided, and so is everything after `total_limit` seconds
    (3600) for all of them, and a step that needs more than `memory_limit` megabytes (1024). Work
    and memory are counted, not measured, so that the verdict is the same everywhere. `anchored`:
    the heads that an anchor knows, which are expected besides.
    """
    if type(jobs) is not int or jobs < 1:
        raise ArgumentError(f"jobs must be at least 1, got {jobs!r}")
    limits = Limits(
        _positive("limit", limit, LIMIT, "seconds"),
        _positive("total_limit", total_limit, TOTAL, "seconds"),
        _positive("memory_limit", memory_limit, MEMORY, "megabytes"),
    )
    given, verified = expected_marks(expect_head), verified_marks(since)
    held = [ANCHOR] * (anchored is not None) + [GIVEN] * bool(given)
    read = _checked(chains)
    missing = check_heads(read, [*expected_marks(anchored), *given])
    done_before = check_verified(read, verified, missing)
    tasks = [
        task
        for chain in read.values()
        for task in tasks_of(chain, part_of(chain, read), tables, done_before)
    ]
    steps = prove_all(tasks, jobs, limits, progress)
    return Report(
        tuple(steps),
        (*missing, *(problem for chain in read.values() for problem in chain.problems)),
        {n: (c.records[-1].seq, c.records[-1].hash) for n, c in read.items() if c.records},
        done_before,
        (*NOTES, *lost_notes(read.values()), *([] if held else [UNHELD])),
        tuple(held),
    )


def check_records(
    chains: Mapping[str, Iterable[Record | str | bytes]], tables: TableSource
) -> tuple[Problem, ...]:
    """Problems of the records of chains, whatever can be proven of their steps."""
    read = _checked(chains)
    for chain in read.values():
        every = {chain.name: chain.records[-1].seq} if chain.records else {}
        list(tasks_of(chain, part_of(chain, read), tables, every))
    return tuple(problem for chain in read.values() for problem in chain.problems)


def _checked(chains: Mapping[str, Iterable[Record | str | bytes]]) -> dict[str, Chain]:
    read = {name: load(name, items) for name, items in chains.items()}
    for chain in read.values():
        check_states(chain)
    check_across(read)
    return read


def _positive(name: str, value: Any, default: float, unit: str) -> float:
    if value is None:
        return default
    if type(value) not in (int, float) or not 0 < value < math.inf:
        raise ArgumentError(f"{name} must be a positive number of {unit}, got {value!r}")
    return float(value)


def verify_export(
    path: str | Path | Iterable[str],
    expect_head: Any = None,
    since: Any = None,
    jobs: int = 1,
    progress: Progress | None = None,
    limit: float | None = None,
    total_limit: float | None = None,
    memory_limit: float | None = None,
) -> Report:
    """Verify an export: JSON Lines of records with their hashes, and of tables."""
    if isinstance(path, str | Path):
        try:
            lines = Path(path).read_text(encoding="ascii").splitlines()
        except UnicodeDecodeError:
            raise NotALedger(
                f"{path} is not a ledger or an export of one: exports are ASCII text, and this file"
                " has other characters"
            ) from None
        name = str(path)
    else:
        lines, name = list(path), "the export"
    chains: dict[str, list[str]] = {}
    tables: dict[str, bytes] = {}
    broken: list[Problem] = []
    strange: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            table = _table(line)
            if table is not None:
                hash, content = table
                good = digest(content) == hash
                # A damaged table is kept, so that the records that name it are reported, too.
                if good or hash not in tables:
                    tables[hash] = content
                if not good:
                    raise BrokenRecord(f"a table that does not hash to {hash[:12]}…")
                continue
            record = from_line(line)
            chains.setdefault(record.budget, []).append(record.text)
        except BrokenRecord as error:
            budget, seq = _place(line)
            if budget == _NOWHERE and not line.startswith(_TABLE):
                strange.append(str(error))
            broken.append(Problem(budget, seq, f"line {number} of the export: {error}"))
    if len(strange) == len(broken) and not chains and not tables:
        # Not one line is of an export, broken or not.
        why = strange[0] if strange else "it has no records"
        raise NotALedger(f"{name} is not a ledger or an export of one: {why}")
    report = verify_records(
        chains, tables, expect_head, since, jobs, progress, limit,
        total_limit=total_limit, memory_limit=memory_limit,
    )  # fmt: skip
    problems = (*broken, *report.problems)
    return replace(report, problems=problems)


_TABLE = '{"content"'
_NOWHERE = "?"


def _table(line: str) -> tuple[str, bytes] | None:
    if not line.startswith(_TABLE):
        return None
    try:
        parsed = json.loads(line)
        hash, content = parsed["table"], base64.b64decode(parsed["content"], validate=True)
    except (ValueError, KeyError, TypeError, RecursionError, binascii.Error) as error:
        raise BrokenRecord(f"a table that cannot be read: {error}") from None
    if not isinstance(hash, str):
        raise BrokenRecord(f"a table that is not named by its hash: {hash!r:.60}")
    return hash, content


def _place(line: str) -> tuple[str, int | None]:
    """About where a broken line belongs."""
    try:
        body = json.loads(json.loads(line)["record"])
        seq = body.get("seq")
        return str(body.get("budget")), seq if type(seq) is int else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _NOWHERE, None
