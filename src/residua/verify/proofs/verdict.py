"""The result of a proof, and comparisons that give one: of two numbers, or of two curves.

A claim is proven, refuted by a rigorous disproof, or neither. Numbers are compared at growing
precision. Curves are compared over cells: the chord of the one, which lies above it, with tangents
of the other, which lie below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from flint import arb

from residua.verify.arithmetic import LADDER, Ball, bits, near, work
from residua.verify.report import Word

MOST_CELLS = 30_000
"""The most cells of a comparison of curves: more tell apart what differs by less than a part in a
million."""


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


# -- comparisons --------------------------------------------------------------------------------


def at_growing_precision(claim: Callable[[], Proof]) -> Proof:
    """The first verdict on a claim that is not undecided, as precision grows."""
    found = undecided("not settled")
    for precision in LADDER:
        with bits(precision):
            found = claim()
        if found.verdict != "undecided":
            break
    return found


def prove_at_most(sides: Callable[[], tuple[Ball, Ball]], claim: str, denial: str) -> Proof:
    """Whether the first of two numbers is at most the second; what to say if so, and if not."""

    def compare() -> Proof:
        one, two = sides()
        if one <= two:
            return proven(claim)
        unknown = undecided(f"not known well enough to tell whether {claim}")
        return refuted(denial) if one > two else unknown

    return at_growing_precision(compare)


def chord_below_tangents(
    over: Sequence[Ball], under: Sequence[Ball], rises: tuple[Ball, Ball]
) -> bool:
    """Whether the chord of one curve lies below the tangents of another at the ends of a cell.

    The values at both ends are given, in order there, and how much each tangent rises over the
    cell. Wherever it is cut in two, it is enough that the chord is below both tangents there.
    """
    step, bend = near(under[1] - under[0]), near(rises[1] - rises[0])
    cut = arb(min(max((near(rises[1]) - step) / bend, 0.0), 1.0)) if bend > 0.0 else arb(0.5)
    chord = over[0] + (over[1] - over[0]) * cut
    return bool(chord <= under[0] + rises[0] * cut) and bool(
        chord <= under[1] - rises[1] * (1 - cut)
    )


def line_in_x(t: Ball, height: Ball, slope: Ball) -> Callable[[Ball], Ball]:
    """A line in `x = e^t`, from its height at `t` and its slope in `ln x` there."""
    return lambda other: height + slope * (other - t).expm1()


def prove_below(
    height: Callable[[Ball], Ball],
    tangent: Callable[[Ball], Callable[[Ball], Ball]],
    start: float,
    end: float,
    at: str = "ln x",
) -> Proof:
    """Whether a convex curve lies below another between two places, which messages call `at`.

    `tangent` makes the line that touches the other at a place. Cells are halved until the chord
    of the one lies below the line at the middle.
    """
    cells = [(start, end, height(arb(start)), height(arb(end)))]
    if cells[0][2] > tangent(arb(start))(arb(start)):
        return refuted(f"the curve exceeds the other at {at} = {start:.6g}")
    tried = 0
    while cells:
        low, high, at_low, at_high = cells.pop()
        middle = 0.5 * (low + high)
        t = arb(middle)
        line = tangent(t)
        if at_low <= line(arb(low)) and at_high <= line(arb(high)):
            continue
        work(80)
        tried += 1
        if tried > MOST_CELLS or not low < middle < high:
            return undecided("the curves could not be told apart")
        at_middle = height(t)
        if at_middle > line(t):
            return refuted(f"the curve exceeds the other at {at} = {middle:.6g}")
        cells += [(low, middle, at_low, at_middle), (middle, high, at_middle, at_high)]
    return proven("the one curve lies below the other")
