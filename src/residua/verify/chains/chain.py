"""The hash chain of one budget: its records that could be read, and their problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
