"""Gap amplification, in exact rationals: the lemmas behind `adversary/freeness.py`.

Why two queries that are not in order break the natural filter. Let `h_1,
h_2` be the curves of two finite PLDs and

    X_1 = {x : h_1(x) < h_2(x)},    X_2 = {x : h_2(x) < h_1(x)},    supp(h_i) the kinks of h_i.

A set `S` *links* `X_1` and `X_2` if some multiple `c S` meets both. If the support of `A` links
them, through kinks `s_1, s_2` with `c s_i ∈ X_i`, then at `x = c s_1 s_2` the curve of
`A ⊕ (L_1 ∨ L_2)` lies above both of `A ⊕ L_1` and `A ⊕ L_2`: the outcome `s_2` brings the
threshold to `c s_1`, where `L_2` is better, the outcome `s_1` to `c s_2`, where `L_1` is. Of two
PLDs that are not in order, with at least two finite losses each, one has a support that links
`X_1` and `X_2`.

A degenerate PLD (fewer than two finite losses) cannot link anything, and two unordered PLDs of
which one or both are degenerate may amplify nothing at all; then `link` is None, which is an
answer: composing with either of them does not break anything. Other queries of a catalogue still
may (`is_universally_free` asks them all).

Everything is in exact rationals. Irrational PLDs must be rounded first; a link that is found
between rounded ones is a statement about those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from residua.adversary.attack import largest_gap
from residua.adversary.finite import finite_atoms
from residua.pld.arithmetic.exact import ExactAtoms
from residua.pld.constructors import from_exact
from residua.pld.lattice import exact_supremum
from residua.pld.order import Witness
from residua.pld.pld import Pld

Span = tuple[Fraction, Fraction | None]
"""An open interval of `x`; None is infinity."""


class Link(NamedTuple):
    """Two kinks of the query `asked` (0 or 1) that reach `X_1` and `X_2` at once."""

    asked: int
    first_kink: Fraction
    second_kink: Fraction
    scale: Fraction
    """`scale * first_kink ∈ X_1` and `scale * second_kink ∈ X_2`."""

    @property
    def x(self) -> Fraction:
        """Where the composed curves part."""
        return self.scale * self.first_kink * self.second_kink


@dataclass(frozen=True)
class Amplification:
    """How two PLDs cross, which support links the regions, and the gap that this opens."""

    crossings: tuple[Fraction, ...]
    """Where one curve passes from below the other to above it, and back."""
    first_below: tuple[Span, ...]
    """`X_1`, where the first curve is strictly the lower one."""
    second_below: tuple[Span, ...]
    supports: tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
    degenerate: tuple[bool, bool]
    link: Link | None
    gap: Witness | None
    """The largest gap of `L ⊕ (L_1 ∨ L_2)` above `(L ⊕ L_1) ∨ (L ⊕ L_2)`, for the linked `L`."""

    @property
    def ordered(self) -> bool:
        """Whether one of the two dominates the other."""
        return not (self.first_below and self.second_below)


def amplification(first: Pld, second: Pld) -> Amplification:
    """Crossings, supports, links and the amplified gap of two finite PLDs.

    Randomized responses are rounded up to rationals of 64 bits first.
    """
    one, two = (finite_atoms(pld, "above") for pld in (first, second))
    lower, upper, crossings = regions(one, two)
    supports = (kinks(one), kinks(two))
    gap: Witness | None = None
    chosen: Link | None = None
    for i, asked in enumerate((one, two)):
        link = find_link(i, supports[i], lower, upper)
        if link is None:
            continue
        whole = asked.compose(exact_supremum(one, two))
        apart = exact_supremum(asked.compose(one), asked.compose(two))
        opened = largest_gap(from_exact(whole), from_exact(apart))
        assert opened is not None, "a link without a gap contradicts gap amplification"
        if gap is None or opened.gap > gap.gap:
            gap, chosen = opened, link
    degenerate = (len(one) < 2, len(two) < 2)
    return Amplification(crossings, lower, upper, supports, degenerate, chosen, gap)


def kinks(atoms: ExactAtoms) -> tuple[Fraction, ...]:
    """`supp(h)`: where the curve bends."""
    return tuple(atoms.kink(i) for i in range(len(atoms)))


def regions(
    one: ExactAtoms, two: ExactAtoms
) -> tuple[tuple[Span, ...], tuple[Span, ...], tuple[Fraction, ...]]:
    """`X_1`, `X_2` as open intervals, and the simple crossings between them."""
    stops = sorted({*kinks(one), *kinks(two)})
    # Before the first kink both curves are 1 - (Q's finite mass) x, after the last one constant.
    before = (stops[0] if stops else Fraction(1)) / 2
    places = [before, *stops, (stops[-1] if stops else Fraction(1)) * 2]
    gaps = [one.hockey_stick(x) - two.hockey_stick(x) for x in places]
    cuts: list[tuple[Fraction | None, int]] = [(Fraction(0), _sign(gaps[0]))]
    for (x0, g0), (x1, g1) in pairwise(zip(places, gaps, strict=True)):
        if g0 * g1 < 0:
            cuts.append((x0 + (x1 - x0) * g0 / (g0 - g1), _sign(g1)))
        elif g0 == 0:
            cuts.append((x0, _sign(g1)))
        elif g1 == 0:
            cuts.append((x1, 0))
    return _spans(cuts, -1), _spans(cuts, 1), _crossings(cuts)


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)


def _spans(cuts: Sequence[tuple[Fraction | None, int]], sign: int) -> tuple[Span, ...]:
    """The open intervals on which the difference has this sign, touching points kept apart."""
    spans: list[Span] = []
    for i, (start, own) in enumerate(cuts):
        end = cuts[i + 1][0] if i + 1 < len(cuts) else None
        if own == sign and start != end:
            assert start is not None
            spans.append((start, end))
    return tuple(spans)


def _crossings(cuts: Sequence[tuple[Fraction | None, int]]) -> tuple[Fraction, ...]:
    """Where the sign changes at a single point."""
    found = []
    ends = [(s, e, sign) for (s, sign), (e, _) in zip(cuts, [*cuts[1:], (None, 0)], strict=True)]
    kept = [(s, e, sign) for s, e, sign in ends if s != e]
    for (_, end, left), (start, _, right) in pairwise(kept):
        if left * right < 0 and end == start and start is not None:
            found.append(start)
    return tuple(found)


def find_link(
    asked: int, support: Sequence[Fraction], lower: Sequence[Span], upper: Sequence[Span]
) -> Link | None:
    """Two points of a support, one multiple of which lies in `X_1` and in `X_2`, if there are."""
    for s1 in support:
        for s2 in support:
            if s1 == s2:
                continue
            for a, b in lower:
                for c, d in upper:
                    low = max(a / s1, c / s2)
                    tops = [end / s for end, s in ((b, s1), (d, s2)) if end is not None]
                    if not tops:
                        return Link(asked, s1, s2, low + 1)
                    if low < min(tops):
                        return Link(asked, s1, s2, (low + min(tops)) / 2)
    return None
