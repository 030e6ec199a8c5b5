"""The result of a proof: proven, refuted by a rigorous disproof, or neither; and why."""

from __future__ import annotations

from typing import Literal, NamedTuple

Word = Literal["proven", "refuted", "undecided"]


class Proof(NamedTuple):
    """A verdict and its reason."""

    verdict: Word
    reason: str


def proven(reason: str) -> Proof:
    """A proof."""
    return Proof("proven", reason)


def refuted(reason: str) -> Proof:
    """A rigorous disproof."""
    return Proof("refuted", reason)


def undecided(reason: str) -> Proof:
    """Neither."""
    return Proof("undecided", reason)


def all_of(proofs: list[Proof]) -> Proof:
    """Proven if all are; refuted if one is."""
    for word in ("refuted", "undecided"):
        for proof in proofs:
            if proof.verdict == word:
                return proof
    return proven("; ".join(dict.fromkeys(p.reason for p in proofs)) or "nothing to prove")
