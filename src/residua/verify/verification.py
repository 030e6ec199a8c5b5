"""Verifying chains of records: structure first, then every step that moved a state.

Steps that are equal in filter, states, mechanism and tables are proven once. What `since` names
was verified before: its links are checked again, its steps are not. A hash chain shows that nothing
under its head was changed. Only heads that were given out, and earlier verifications, show that the
head is one that was acknowledged. Each of them must be there: one does not excuse another.
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

from residua.errors import ArgumentError, ArgumentTypeError, BrokenRecord, NotALedger
from residua.records import Record, digest, from_line
from residua.verify.arithmetic import Limits
from residua.verify.chains.across import check_across, part_of
from residua.verify.chains.chain import Chain, notes_on_lost_records
from residua.verify.chains.steps import Progress, TableSource, prove_all, tasks_of
from residua.verify.chains.structure import check_states, load
from residua.verify.report import (
    ANCHOR,
    GIVEN_HEADS,
    NOTES,
    TRUNCATION_NOT_CHECKED,
    Problem,
    Report,
)


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
        _positive("limit", limit, Limits.step, "seconds"),
        _positive("total_limit", total_limit, Limits.total, "seconds"),
        _positive("memory_limit", memory_limit, Limits.memory, "megabytes"),
    )
    given, verified = expected_marks(expect_head), verified_marks(since)
    held = [ANCHOR] * (anchored is not None) + [GIVEN_HEADS] * bool(given)
    read = _read_chains(chains)
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
        (
            *NOTES,
            *notes_on_lost_records(read.values()),
            *([] if held else [TRUNCATION_NOT_CHECKED]),
        ),
        tuple(held),
    )


def check_records(
    chains: Mapping[str, Iterable[Record | str | bytes]], tables: TableSource
) -> tuple[Problem, ...]:
    """Problems of the records of chains, whatever can be proven of their steps."""
    read = _read_chains(chains)
    for chain in read.values():
        every = {chain.name: chain.records[-1].seq} if chain.records else {}
        list(tasks_of(chain, part_of(chain, read), tables, every))
    return tuple(problem for chain in read.values() for problem in chain.problems)


def _read_chains(chains: Mapping[str, Iterable[Record | str | bytes]]) -> dict[str, Chain]:
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
        raise BrokenRecord(f"a table whose name is not its hash: {hash!r:.60}")
    return hash, content


def _place(line: str) -> tuple[str, int | None]:
    """About where a broken line belongs."""
    try:
        body = json.loads(json.loads(line)["record"])
        seq = body.get("seq")
        return str(body.get("budget")), seq if type(seq) is int else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _NOWHERE, None


# -- heads that were given out, and earlier verifications -----------------------------------------


Mark = tuple[str | None, int | None, str]
"""A budget (None: any), the number of a record (None: any) and its hash."""


def expected_marks(given: Any) -> list[Mark]:
    """The expected heads: a hash, a receipt, budgets with their heads, or a list of these."""
    if given is None:
        return []
    if isinstance(given, str):
        return [(None, None, given)]
    if isinstance(given, list):
        return [mark for each in given for mark in expected_marks(each)]
    # Receipts and reservations have them under this name; their types are not known here.
    heads = given if isinstance(given, Mapping) else getattr(given, "budgets", None)
    if not isinstance(heads, Mapping):
        raise ArgumentTypeError(
            "expect_head must be a hash, a receipt, a mapping of budgets to a hash or to"
            f" (seq, hash), or a list of these, got {given!r:.60}"
        )
    found: list[Mark] = []
    for name, mark in heads.items():
        seq, hash = (None, mark) if isinstance(mark, str) else _pair(mark)
        if not isinstance(name, str) or not isinstance(hash, str):
            raise ArgumentTypeError(
                f"expect_head[{name!r:.60}] must be a hash or (seq, hash) of a budget,"
                f" got {mark!r:.60}"
            )
        found.append((name, seq, hash))
    return found


def _pair(mark: Any) -> tuple[int | None, Any]:
    """A number and a hash; (None, None) where it is something else."""
    if isinstance(mark, tuple | list) and len(mark) == 2 and type(mark[0]) is int:
        return mark[0], mark[1]
    return None, None


def check_heads(chains: Mapping[str, Chain], expected: list[Mark]) -> list[Problem]:
    """Check that heads which were given out are in the chains: nothing was cut or rewritten."""
    found: dict[Problem, None] = {}
    for name, seq, hash in expected:
        if name is not None:
            wrong = _not_there(name, chains.get(name), seq, hash)
        elif any(record.hash == hash for c in chains.values() for record in c.records):
            continue
        else:
            wrong = f"the head {hash[:12]}… is in no chain"
        if wrong is not None:
            found[Problem(next(iter(chains), "?") if name is None else name, seq, wrong)] = None
    return list(found)


def _not_there(name: str, chain: Chain | None, seq: int | None, hash: str) -> str | None:
    """Why a record that was given out is not in a chain, if so."""
    if chain is None:
        return f"the budget {name!r} is missing, although a head of it is expected"
    if seq is None:
        if any(record.hash == hash for record in chain.records):
            return None
        return f"the expected head {hash[:12]}… is not in the chain"
    record = chain.at(seq)
    if record is None:
        last = chain.records[-1].seq if chain.records else None
        return f"the chain ends at {last}, but record {seq} is expected: records are missing"
    if record.hash != hash:
        return f"hashes to {record.hash[:12]}…, but {hash[:12]}… is expected: it was rewritten"
    return None


def verified_marks(since: Any) -> dict[str, tuple[int, str | None]]:
    """Of each budget, the number of the last record that was verified before, and its hash."""
    marks = since.proven_heads if isinstance(since, Report) else {} if since is None else since
    if not isinstance(marks, Mapping):
        raise ArgumentTypeError(
            "since must be an earlier report, or a mapping of budgets to seq or (seq, hash),"
            f" got {since!r:.60}"
        )
    known: dict[str, tuple[int, str | None]] = {}
    for name, mark in marks.items():
        seq, hash = (mark, None) if type(mark) is int else _pair(mark)
        if not isinstance(name, str) or seq is None or not isinstance(hash, str | None):
            raise ArgumentTypeError(
                f"since[{name!r:.60}] must be seq or (seq, hash) of a budget, got {mark!r:.60}"
            )
        known[name] = seq, hash
    return known


def check_verified(
    chains: Mapping[str, Chain], marks: Mapping[str, tuple[int, str | None]], missing: list[Problem]
) -> dict[str, int]:
    """Up to which record each chain was verified before; broken promises are problems."""
    known: dict[str, int] = {}
    for name, (seq, hash) in marks.items():
        chain = chains.get(name)
        if chain is None:
            missing.append(Problem(name, None, "the budget was verified before and is now missing"))
            continue
        record = chain.at(seq)
        if record is None or (hash is not None and record.hash != hash):
            chain.add_problem(seq, "is not the record that was verified before")
            continue
        known[name] = seq
    return known
