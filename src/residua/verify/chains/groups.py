"""The records of one request: one in the chain of each budget that it charges, all alike.

Each record lists them all in `group`, with the number and the `prev` that each got. A budget that
lost records in a recovery ends in `recover` and is closed as fully spent: what others say of its
lost records cannot be looked up, and is not verified against them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from residua.records import Record
from residua.verify.chains.chain import Chain

_SAME = (
    "by", "type", "group", "key", "request", "mechanism", "assumed", "admitted", "binding", "hold",
    "expires",
)  # fmt: skip
"""The fields that all records of a group share."""


def members_of(group: Any) -> tuple[tuple[str, int], ...]:
    """The budgets of a group and the numbers of their records, as far as they can be read."""
    return tuple(
        (member["budget"], member["seq"])
        for member in (group if isinstance(group, list) else ())
        if _is_member(member)
    )


def _is_member(member: Any) -> bool:
    return (
        isinstance(member, dict)
        and set(member) == {"budget", "seq", "prev"}
        and type(member["seq"]) is int
        and all(type(member[name]) is str for name in ("budget", "prev"))
    )


def check_group(
    record: Record, chains: Mapping[str, Chain], report: Callable[[str], None]
) -> set[str]:
    """Check the group of a record against the other chains; the names of its members."""
    group = record.body["group"]
    members: set[str] = set()
    if not isinstance(group, list):
        report("the group is not a list")
        return members
    for member in group:
        if not _is_member(member):
            report("a member of the group is not a budget with its record")
            continue
        name, seq = member["budget"], member["seq"]
        if name in members:
            report(f"{name!r} is in the group twice")
        members.add(name)
        other = chains.get(name)
        found = None if other is None else other.at(seq)
        if other is None:
            report(f"the budget {name!r} of the group is not here")
        elif found is not None and _matches(record, found, member["prev"]):
            continue
        elif name == record.budget or not other.may_have_lost(seq):
            here = found is not None and found.prev == member["prev"]
            how = "belongs to a different request" if here else "is missing from its place"
            report(f"the record {name!r} {seq} of the group {how}")
    if (record.budget, record.seq) not in members_of(group):
        report("the record is not in its own group")
    return members


def _matches(record: Record, found: Record, prev: str) -> bool:
    return found.prev == prev and same_request(record, found)


def same_request(one: Record, two: Record) -> bool:
    """Whether two records say the same of the request that they are of."""
    return all(one.body.get(name) == two.body.get(name) for name in _SAME)


def together(record: Record, chains: Mapping[str, Chain]) -> list[Record]:
    """The records of a group that are here, this one too."""
    found = [record]
    for name, seq in members_of(record.body["group"]):
        chain = chains.get(name)
        other = None if chain is None else chain.at(seq)
        if other is not None and same_request(record, other):
            found.append(other)
    return found
