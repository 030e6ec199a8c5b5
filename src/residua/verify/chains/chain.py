"""The hash chain of one budget, and the records of one request.

A request has a record in the chain of each budget that it charges, all alike. Each record lists
them all in `group`, with the number and the `prev` that each got. A budget that lost records in a
recovery ends in `recover` and is closed as fully spent: what others say of its lost records cannot
be looked up, and is not verified against them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from residua.records import Record
from residua.verify.report import Problem

REQUEST_TYPES = ("spend", "hold", "commit")
"""The types of records that request something of a budget."""


@dataclass
class Chain:
    """The records of one budget that could be read, and the problems found in them."""

    name: str
    records: list[Record] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    whole: bool = True
    """Whether every record has the hash of the one before."""

    def add_problem(self, seq: int | None, what: str) -> None:
        self.problems.append(Problem(self.name, seq, what))

    @property
    def first(self) -> Mapping[str, Any]:
        """The fields of the record that creates the budget; empty if it is missing."""
        begins = bool(self.records) and self.records[0].type == "create"
        return self.records[0].body if begins else {}

    def at(self, seq: Any) -> Record | None:
        if type(seq) is int and 0 <= seq < len(self.records) and self.records[seq].seq == seq:
            return self.records[seq]
        return next((record for record in self.records if record.seq == seq), None)

    @property
    def lost_from(self) -> int | None:
        """The first number whose record may have been lost; None without a final `recover`.

        A recovery appends the expiry of each open hold to the records that remain, and `recover`.
        """
        if not self.records or self.records[-1].type != "recover":
            return None
        place = len(self.records) - 1
        while place and self.records[place - 1].type == "expire":
            place -= 1
        return self.records[place].seq

    def may_have_lost(self, seq: int) -> bool:
        """Whether a recovery may have lost the record of this number."""
        return self.lost_from is not None and seq >= self.lost_from


def parent_of(chain: Chain, chains: Mapping[str, Chain]) -> Chain | None:
    """The chain of the parent of a budget; None without a parent or its chain."""
    parent = chain.first.get("parent")
    return chains.get(parent) if isinstance(parent, str) else None


def notes_on_lost_records(chains: Iterable[Chain]) -> Iterator[str]:
    """The notes of a report on budgets that lost records in a recovery."""
    for chain in chains:
        if chain.lost_from is not None:
            yield (
                f"The budget {chain.name!r} lost records in a recovery, from number"
                f" {chain.lost_from} on, and is closed as fully spent. What they were is not shown."
            )


# -- groups ------------------------------------------------------------------------------------


_SAME = (
    "by", "type", "group", "key", "request", "mechanism", "assumed", "admitted", "binding", "hold",
    "expires", "question",
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
