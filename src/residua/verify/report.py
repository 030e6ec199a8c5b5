"""The report of a verification: a verdict for each step, problems of the chains, open notes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

NOTES = (
    "A proof is about what the records say. No verifier can prove that the mechanism that ran is"
    " the one that was described, that its sensitivity is what was declared, or that its noise was"
    " sampled correctly.",
    "No verifier can prove that every use of the data went through this ledger.",
    "The hash chain shows that nothing under a head was changed. Only receipts or an anchor show"
    " that the head itself is the latest one.",
    "Parameters, keys and reasons are taken to be functions of public information and past answers,"
    " never of the data.",
)
Word = Literal["proven", "refuted", "undecided"]
ANCHOR, GIVEN_HEADS = "anchor", "given heads"
TRUNCATION_NOT_CHECKED = (
    "Truncation was not checked: no receipt or anchor says what the last records are."
)


@dataclass(frozen=True)
class Step:
    """The verdict on a step of a budget (an admitted record or the first state), and its reason."""

    budget: str
    seq: int
    verdict: Word
    reason: str


@dataclass(frozen=True)
class Problem:
    """A defect of the records of a budget, and where it is (`seq` None: the whole chain)."""

    budget: str
    seq: int | None
    what: str


@dataclass(frozen=True)
class Report:
    """The outcome of a verification."""

    steps: tuple[Step, ...]
    problems: tuple[Problem, ...]
    heads: Mapping[str, tuple[int, str]]
    """Sequence number and hash of the last record of each chain."""
    since: Mapping[str, int]
    """For chains that an earlier report verified in part: the number of the last such record."""
    notes: tuple[str, ...] = NOTES
    held_against: tuple[str, ...] = ()
    """The sources of heads that the chains were compared with: `ANCHOR`, `GIVEN_HEADS`."""

    @cached_property
    def _counts(self) -> Counter[str]:
        return Counter(step.verdict for step in self.steps)

    @property
    def proven(self) -> int:
        """Steps that are proven."""
        return self._counts["proven"]

    @property
    def refuted(self) -> int:
        """Steps that are disproven."""
        return self._counts["refuted"]

    @property
    def undecided(self) -> int:
        """Steps that are neither."""
        return self._counts["undecided"]

    @property
    def ok(self) -> bool:
        """Whether the chains are whole and every step is proven."""
        return not self.problems and self.proven == len(self.steps)

    @property
    def exit_code(self) -> int:
        """0 all proven, 1 refuted or broken, 7 undecided."""
        if self.problems or self.refuted:
            return 1
        return 7 if self.undecided else 0

    @property
    def proven_heads(self) -> dict[str, tuple[int, str]]:
        """The heads of the chains that are whole and proven; pass it as `since` to skip them."""
        unproven = {each.budget for each in self.problems}
        unproven |= {step.budget for step in self.steps if step.verdict != "proven"}
        return {name: head for name, head in self.heads.items() if name not in unproven}

    @property
    def _checked_against(self) -> str:
        if not self.held_against:
            return "truncation was not checked (no anchor or receipt given)"
        return "verified against " + " and ".join(f"the {each}" for each in self.held_against)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        return {
            "ok": self.ok,
            "exit_code": self.exit_code,
            "proven": self.proven,
            "refuted": self.refuted,
            "undecided": self.undecided,
            "held_against": list(self.held_against),
            "problems": [asdict(problem) for problem in self.problems],
            "steps": [asdict(step) for step in self.steps],
            "heads": {name: {"seq": n, "hash": h} for name, (n, h) in sorted(self.heads.items())},
            "since": dict(sorted(self.since.items())),
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """Canonical JSON of the report."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @property
    def text(self) -> str:
        """The report as text for people; characters that cannot be encoded are escaped."""
        lines = [
            f"{_plural(len(self.heads), 'budget')}, {_plural(len(self.steps), 'step')} (first"
            " states, and admitted spends, holds and commits):"
            f" {self.proven} proven, {self.refuted} refuted, {self.undecided} undecided",
            self._checked_against,
        ]
        if self.since:
            lines.append("  steps that an earlier report proved are not counted")
        if self.problems:
            places = _plural(len(self.problems), "place")
            lines.append(f"the records are broken in {places}:")
        for problem in self.problems:
            where = "" if problem.seq is None else f" {problem.seq}"
            lines.append(f"  {problem.budget}{where}: {problem.what}")
        for step in self.steps:
            if step.verdict != "proven":
                lines.append(f"  {step.budget} {step.seq}: {step.verdict}: {step.reason}")
        lines += [f"  {name} ends at {n}, {h}" for name, (n, h) in sorted(self.heads.items())]
        lines.append("What this does not show:")
        lines += [f"  - {note}" for note in self.notes]
        return "\n".join(lines).encode(errors="backslashreplace").decode()


def _plural(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
