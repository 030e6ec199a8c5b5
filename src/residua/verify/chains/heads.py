"""Knowledge of chains from elsewhere: heads that were given out, and earlier verifications.

A hash chain shows that nothing under its head was changed; only these show that the head is one
that was acknowledged. Everything that is expected must be there: one head does not excuse another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from residua.errors import ArgumentTypeError
from residua.verify.chains.chain import Chain
from residua.verify.report import Problem, Report

Mark = tuple[str | None, int | None, str]
"""A budget (None: any), the number of a record (None: any) and its hash."""


def expected_marks(given: Any) -> list[Mark]:
    """The expected heads: a hash, a receipt, budgets with their heads, or a list of these."""
    return list(_marks(given))


def _marks(given: Any) -> Iterator[Mark]:
    if given is None:
        return
    if isinstance(given, str):
        yield None, None, given
        return
    if isinstance(given, list):
        for each in given:
            yield from _marks(each)
        return
    # Receipts and reservations have them under this name; they are a stranger's types here.
    heads = given if isinstance(given, Mapping) else getattr(given, "budgets", None)
    if not isinstance(heads, Mapping):
        raise ArgumentTypeError(
            "expect_head must be a hash, a receipt, a mapping of budgets to a hash or to"
            f" (seq, hash), or a list of these, got {given!r:.60}"
        )
    for name, mark in heads.items():
        seq, hash = (None, mark) if isinstance(mark, str) else _pair(mark)
        if not isinstance(name, str) or not isinstance(hash, str):
            raise ArgumentTypeError(
                f"expect_head[{name!r:.60}] must be a hash or (seq, hash) of a budget,"
                f" got {mark!r:.60}"
            )
        yield name, seq, hash


def _pair(mark: Any) -> tuple[int | None, Any]:
    """A number and a hash; (None, None) where it is something else."""
    if isinstance(mark, tuple | list) and len(mark) == 2 and type(mark[0]) is int:
        return mark[0], mark[1]
    return None, None


def check_heads(chains: Mapping[str, Chain], expected: list[Mark]) -> list[Problem]:
    """Check that heads which were given out are in the chains: nothing was cut or rewritten."""
    found: dict[Problem, None] = {}
    for name, seq, hash in expected:
        if name is None:
            if not any(record.hash == hash for c in chains.values() for record in c.records):
                what = f"the head {hash[:12]}… that was given out is in no chain"
                found[Problem(next(iter(chains), "?"), None, what)] = None
            continue
        wrong = _not_there(name, chains.get(name), seq, hash)
        if wrong is not None:
            found[Problem(name, seq, wrong)] = None
    return list(found)


def _not_there(name: str, chain: Chain | None, seq: int | None, hash: str) -> str | None:
    """Why a record that was given out is not in a chain, if so."""
    if chain is None:
        return f"the budget {name!r}, of which a head was given out, is missing"
    if seq is None:
        if any(record.hash == hash for record in chain.records):
            return None
        return f"the head {hash[:12]}… that was given out is not in the chain"
    record = chain.at(seq)
    if record is None:
        last = chain.records[-1].seq if chain.records else None
        return f"the chain ends at {last}: the record {seq} that was given out is gone"
    if record.hash != hash:
        return f"hashes to {record.hash[:12]}…, given out was {hash[:12]}…: rewritten"
    return None


def verified_marks(since: Any) -> dict[str, tuple[int, str | None]]:
    """Of each budget, the number of the last record that was verified before, and its hash."""
    marks = since.settled if isinstance(since, Report) else {} if since is None else since
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
            missing.append(Problem(name, None, "was verified before, and the budget is missing"))
            continue
        record = chain.at(seq)
        if record is None or (hash is not None and record.hash != hash):
            chain.wrong(seq, "is not the record that was verified before")
            continue
        known[name] = seq
    return known
