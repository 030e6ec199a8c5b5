"""The Blackwell order: `L ⪯ M` iff `h_L <= h_M` everywhere.

If `M` is finite, `h_L - h_M` is convex between the kinks of `M`, vanishes at `x → 0` and
decreases after the last kink: checking the kinks is enough, whatever `L` is. Against
`R_{eps,delta}` that is two checks, `x = e^eps` and `x = e^-eps`: one is not enough unless
`L` is symmetric. Kinks at `x < 1` are checked on the reversed curves, where the digits are.

If `M` is smooth, chords above `L` and tangents below `M` are compared cell by cell
(`convexity_bounds.py`), on `x >= 1` for both directions, out to a point beyond which the tails
decide (`tails.py`). Before that, lemmas between factors may prove it (`factor_lemmas.py`), and the
tails may refute it. What floats cannot decide is decided in rationals (finite atoms) or in high
precision (below); what remains is UNDECIDED.

High precision for comparisons of finite PLDs that floats leave open.

Randomized response has irrational masses `1/(1 + e^-eps)` but rational losses; atoms have
rational masses. Here their compositions are written out in decimal arithmetic with many
digits (`decimal`, correctly rounded `exp`), every sum of positive terms with relative error
below `10^-(digits - 20)`, and the finite check of `compare.py` is repeated. Exact ties at the
ends of the supports are settled in rationals first; other exact ties stay UNDECIDED.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING

from residua.bounds import Verdict
from residua.pld.arithmetic import FEW, MANY, MOST_STEPS
from residua.pld.curve.support_ends import ends_within, survival
from residua.pld.families.atoms import Atoms
from residua.pld.families.small_support import size
from residua.pld.families.symmetric import RandomizedResponse
from residua.pld.order import Domination, Witness
from residua.work_limit import work

if TYPE_CHECKING:
    from residua.pld.pld import Pld
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats, float_down
from residua.pld.arithmetic import convexity_bounds
from residua.pld.arithmetic.exact import DIGITS, ExactAtoms
from residua.pld.arithmetic.ulp_bounds import EXP_RANGE, EXP_ULPS, U
from residua.pld.order.factor_lemmas import dominated_by_structure, without_common, without_matched
from residua.pld.order.tails import tail_escapes, tail_start
from residua.pld.pld import Pld, query


def dominated_precisely(low: Pld, high: Pld) -> Domination:
    """Repeat the kink check in decimals."""
    for pld in (low, high):
        if not pld.is_finite or size(pld.terms.items()) > FEW:  # type: ignore[arg-type]
            return _UNDECIDED
    kept_low, kept_high = survival(low.terms), survival(high.terms)
    if kept_low is None or kept_high is None:
        return _UNDECIDED
    tops = (ends_within(low, high), ends_within(low.reverse(), high.reverse()))
    with localcontext(Context(prec=DIGITS)):
        a, b = _written_out(low), _written_out(high)
        open_ends = False
        a_inf, b_inf = _decimal(1 - kept_low), _decimal(1 - kept_high)
        tiny = Decimal(10) ** (20 - DIGITS)
        work(100.0 * len(b) * (len(a) + len(b)))
        order = sorted(range(len(b)), key=lambda i: b[i][0] / b[i][1])
        for rank, j in enumerate(order):
            x = b[j][0] / b[j][1]
            top = sum((p for p, q in a if p > x * q), a_inf)
            above = sum((q for p, q in a if p > x * q), Decimal(0))
            top_b = sum((b[i][0] for i in order[rank + 1 :]), b_inf)
            above_b = sum((b[i][1] for i in order[rank + 1 :]), Decimal(0))
            gap = (top - top_b) - x * (above - above_b)
            doubt = tiny * (top + top_b + x * (above + above_b) + x)
            if gap > doubt:
                return Domination(Verdict.NO, Witness(float(x), max(0.0, float(gap - doubt))))
            tied = (rank == len(order) - 1 and tops[0]) or (rank == 0 and tops[1])
            if gap > -doubt and not tied:
                open_ends = True
    return _UNDECIDED if open_ends else _YES


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _written_out(pld: Pld) -> list[tuple[Decimal, Decimal]]:
    work(200.0 * size(pld.terms.items()))  # type: ignore[arg-type]
    out = [(Decimal(1), Decimal(1))]
    for factor, n in pld.terms.items():
        if isinstance(factor, RandomizedResponse):
            grown = _binomial(factor, n)
            out = [(p * a, q * b) for p, q in out for a, b in grown]
        elif isinstance(factor, Atoms):
            exact = factor.exact
            single = [
                (_decimal(Fraction(p, exact.p_den)), _decimal(Fraction(q, exact.q_den)))
                for p, q in zip(exact.p, exact.q, strict=True)
            ]
            for _ in range(n):
                out = [(p * a, q * b) for p, q in out for a, b in single]
    return out


def _binomial(factor: RandomizedResponse, n: int) -> list[tuple[Decimal, Decimal]]:
    e = _decimal(Fraction(factor.eps)).exp()
    kept = 1 - _decimal(Fraction(factor.delta))
    heads, tails = kept * e / (1 + e), kept / (1 + e)
    return [
        (
            comb(n, k) * heads**k * tails ** (n - k),
            comb(n, k) * tails**k * heads ** (n - k),
        )
        for k in range(n + 1)
    ]


_ACCURACIES = (1e-3, 1e-5)
"""Widths in `eps` asked of contour sums, in turn, while the answer is open."""
_ACCURACY = _ACCURACIES[-1]


class Order(StrEnum):
    """How two PLDs relate in the Blackwell order."""

    LESS = "LESS"
    GREATER = "GREATER"
    EQUAL = "EQUAL"
    INCOMPARABLE = "INCOMPARABLE"
    UNDECIDED = "UNDECIDED"


class Comparison(NamedTuple):
    """How `L` relates to `M`; `not_below` witnesses `L ⋠ M`, `not_above` witnesses `M ⋠ L`."""

    verdict: Order
    not_below: Witness | None
    not_above: Witness | None


_YES = Domination(Verdict.YES)
_UNDECIDED = Domination(Verdict.UNDECIDED)


def compare(first: Pld, second: Pld) -> Comparison:
    """Compare two PLDs; LESS means `first ⪯ second` proven and the converse refuted."""
    below = dominated(query("first", first), query("second", second))
    above = dominated(second, first)
    verdicts = {
        (Verdict.YES, Verdict.YES): Order.EQUAL,
        (Verdict.YES, Verdict.NO): Order.LESS,
        (Verdict.NO, Verdict.YES): Order.GREATER,
        (Verdict.NO, Verdict.NO): Order.INCOMPARABLE,
    }
    verdict = verdicts.get((below.verdict, above.verdict), Order.UNDECIDED)
    return Comparison(verdict, below.witness, above.witness)


def dominated(low: Pld, high: Pld) -> Domination:
    """Whether `low ⪯ high`, proven either way or UNDECIDED; a function of the two values."""
    if low.is_identity or high.is_infinite or low == high:
        return _YES
    if not low.terms and not high.terms and low.gaussian and high.gaussian:
        if low._exact_variance <= high._exact_variance:
            return _YES
        return _refuted(low, high, np.zeros(1))
    if dominated_by_structure(low, high):
        return _YES
    if _is_rational(low) and _is_rational(high):
        return _YES if _proven_without_common(low, high) else dominated_exactly(low, high)
    low, high = low._workspace(), high._workspace()
    if tail_escapes(low, high):
        return _tail_refuted(low, high, 1.0)
    if tail_escapes(low.reverse(), high.reverse()):
        return _tail_refuted(low, high, -1.0)
    if _proven_without_common(low, high):
        return _YES
    outcome = _at_kinks(low, high) if _countable(high) else _by_cells(low, high)
    if outcome.verdict is Verdict.UNDECIDED and _proven_without_matched(low, high):
        return _YES
    return outcome


def _proven_without_common(low: Pld, high: Pld) -> bool:
    rest, room = without_common(low, high)
    return rest != low and _proven(rest, room)


def _proven_without_matched(low: Pld, high: Pld) -> bool:
    rest, room = without_matched(low, high)
    return rest != low and rest != without_common(low, high)[0] and _proven(rest, room)


def _proven(low: Pld, high: Pld) -> bool:
    """Whether `low ⪯ high` is proven, where a refutation is of no use."""
    if high.is_identity or tail_escapes(low, high) or tail_escapes(low.reverse(), high.reverse()):
        return low.is_identity
    return dominated(low, high).proven


# -- kinds ----------------------------------------------------------------------------


def _is_rational(pld: Pld) -> bool:
    """Whether the PLD is a small composition of rational atoms."""
    if pld.gaussian is not None or not all(type(f) is Atoms for f in pld.terms):
        return False
    single = len(pld.terms) == 1 and set(pld.terms.values()) == {1}
    return single or pld._evaluator._table_size <= MANY


def _countable(pld: Pld) -> bool:
    return pld.gaussian is None and pld._evaluator._table_size <= MANY


# -- finite against finite, in rationals ----------------------------------------------------


def dominated_exactly(low: Pld, high: Pld) -> Domination:
    """The finite check in floats where they decide and in rationals where they do not."""
    a, b = low._atoms, high._atoms
    if b.p.size == 0:
        return _YES
    if a.p.size == 0:
        return _refuted(low, high, np.array([float(b.z[-1]), float(b.z[-1]) + 1.0]))
    if max(np.max(np.abs(a.z)), np.max(np.abs(b.z))) > EXP_RANGE:
        exact = _largest_exact_gap(a.exact, b.exact, np.arange(b.z.size), a.z, b.z)
        return _YES if exact is None else Domination(Verdict.NO, exact)
    right = _float_gaps(a, b, low, high)
    left = _float_gaps(a.reverse(), b.reverse(), low.reverse(), high.reverse())
    # A gap of the reversed curves at y is one of y⁻¹ times its size at x = 1/y; either holds for
    # every x within the error allowed for the kink, so for the float reported.
    if right.gap > 0.0 and right.gap >= left.gap / left.x:
        return Domination(Verdict.NO, Witness(right.x, right.gap))
    if left.gap > 0.0:
        return Domination(Verdict.NO, Witness(1.0 / left.x, left.gap / left.x * (1.0 - 8.0 * U)))
    doubtful = np.concatenate([right.doubtful, b.z.size - 1 - left.doubtful])
    if doubtful.size == 0:
        return _YES
    exact = _largest_exact_gap(a.exact, b.exact, np.unique(doubtful), a.z, b.z)
    return _YES if exact is None else Domination(Verdict.NO, exact)


class _Gaps(NamedTuple):
    """The largest proven gap on one side, where it is, and the kinks that floats leave open."""

    gap: float
    x: float
    doubtful: NDArray[np.int64]


def _float_gaps(a: Atoms, b: Atoms, low: Pld, high: Pld) -> _Gaps:
    """Compare the curves at the kinks `x >= 1` of `b`."""
    first = int(np.searchsorted(b.z, 0.0))
    if first == b.z.size:
        return _Gaps(-1.0, 1.0, np.empty(0, dtype=np.int64))
    x = b._suffix_sums[2][first:]
    dx = x * (b.loss_error + (EXP_ULPS + 2.0) * U)
    a_lo, a_hi = a._at(x, dx)
    b_lo, b_hi = b._at(x, dx, np.arange(first + 1, b.z.size + 1))
    mine, theirs = low.mass_at_infinity_bounds, high.mass_at_infinity_bounds
    slack = 4.0 * U * (a_hi + b_hi + mine.hi + theirs.hi)
    slack = np.where(a_hi + b_hi > 0.0, slack, 0.0)
    gap = (a_lo - b_hi) + (mine.lo - theirs.hi) - slack
    above = (a_hi - b_lo) + (mine.hi - theirs.lo) + slack
    worst = int(np.argmax(gap))
    # Beyond its top `a` is its mass at infinity, exactly: no rounding to allow for.
    settled = (above <= 0.0) | ((a_hi == 0.0) & (mine.hi <= theirs.lo))
    return _Gaps(float(gap[worst]), float(x[worst]), np.flatnonzero(~settled) + first)


def _largest_exact_gap(
    a: ExactAtoms, b: ExactAtoms, kinks: NDArray[np.int64], a_losses: Floats, b_losses: Floats
) -> Witness | None:
    """Check kinks of `b` (float indices, widened by one) exactly; the worst failure or None."""
    if len(b) != b_losses.size:
        wanted = list(range(len(b)))
        starts = np.zeros(len(b), dtype=np.int64)
    else:
        near = np.concatenate([kinks - 1, kinks, kinks + 1])
        wanted = np.unique(np.clip(near, 0, len(b) - 1)).tolist()
        starts = np.searchsorted(a_losses, b_losses)
    work(1000.0 * len(wanted))
    worst: tuple[int, int, int] | None = None
    for j in wanted:
        x_num, x_den = b.p[j] * b.q_den, b.q[j] * b.p_den
        i = min(int(starts[j]), len(a))
        while i < len(a) and a.p[i] * a.q_den * x_den <= x_num * a.q[i] * a.p_den:
            i += 1
        while i > 0 and a.p[i - 1] * a.q_den * x_den > x_num * a.q[i - 1] * a.p_den:
            i -= 1
        # h_a - h_b = (P_a - P_b) - x (Q_a - Q_b) over the tails above the kink.
        p_gap = a.p_tails[i] * b.p_den - b.p_tails[j + 1] * a.p_den
        q_gap = a.q_tails[i] * b.q_den - b.q_tails[j + 1] * a.q_den
        excess = p_gap * x_den * a.q_den * b.q_den - q_gap * x_num * a.p_den * b.p_den
        if excess > 0:
            size = x_den * a.q_den * b.q_den * a.p_den * b.p_den
            if worst is None or excess * worst[1] > worst[0] * size:
                worst = (excess, size, j)
    if worst is None:
        return None
    # The gap at the float nearest to the kink, which is the x that is reported.
    x = float(b.kink(worst[2]))
    gap = a.hockey_stick(Fraction(x)) - b.hockey_stick(Fraction(x))
    return Witness(x, max(0.0, float_down(gap)))


# -- anything against finite, at the kinks --------------------------------------------------


def _at_kinks(low: Pld, high: Pld) -> Domination:
    """`low ⪯ high` for a finite `high`: check its kinks, each on the better of the two curves."""
    if high.is_identity:
        return _refuted(low, high, np.zeros(1))
    table = high._evaluator._table
    kinks = np.unique(table.z)
    dt = table.loss_error
    doubtful = False
    for sign, a, b in ((1.0, low, high), (-1.0, low.reverse(), high.reverse())):
        side = np.sort(sign * kinks[sign * kinks >= 0.0])
        if side.size == 0:
            continue
        a_lo, a_hi = a._evaluator.right(side, dt, _ACCURACY)
        b_lo, b_hi = b._evaluator.right(side, dt, _ACCURACY)
        gap = a_lo - b_hi - 4.0 * U * b_hi
        worst = int(np.argmax(gap))
        if gap[worst] > 0.0:
            return _refuted(low, high, sign * side[[worst]])
        unproven = a_hi > b_lo
        # At the top kink both curves may end exactly: beyond its top `a` is its mass at infinity.
        top = float(side[-1])
        if np.count_nonzero(sign * table.z >= top - 4.0 * dt) == 1 and ends_within(a, b):
            unproven[-1] = False
        if np.any(unproven) and b._evaluator._single_atoms is not None:
            unproven &= a_hi > _exact_heights(b._evaluator._single_atoms, side, unproven)
        doubtful = doubtful or bool(np.any(unproven))
    if not doubtful:
        return _YES
    return dominated_precisely(low, high)


def _exact_heights(atoms: Atoms, kinks: Floats, wanted: NDArray[np.bool_]) -> Floats:
    """The curve of `atoms` at its own kinks where wanted, in rationals, rounded down; else zero."""
    heights = np.zeros(kinks.size)
    exact = atoms.exact
    if len(exact) == atoms.z.size:
        at = np.searchsorted(atoms.z, kinks)
        work(1000.0 * int(np.count_nonzero(wanted)))
        for i in np.flatnonzero(wanted & (atoms.z[np.minimum(at, atoms.z.size - 1)] == kinks)):
            x = exact.kink(int(at[i]))
            heights[i] = float_down(exact.height(int(at[i]) + 1, x.numerator, x.denominator))
    return heights


# -- smooth against smooth, cell by cell ----------------------------------------------------


def _by_cells(low: Pld, high: Pld) -> Domination:
    if _costly(low, high):
        a_lo, _, _, b_hi = _sample(low, high, np.zeros(1), _ACCURACIES[0])
        if a_lo[0] > b_hi[0] * (1.0 + 4.0 * U):
            return _refuted(low, high, np.zeros(1))
    back, ahead = low.reverse(), high.reverse()
    sides = [(1.0, low, high), (-1.0, back, ahead)]
    if back is low and ahead is high:
        sides.pop()
    ends = [tail_start(a, b) for _, a, b in sides]
    open_end = any(end is None or end > 4 * MANY for end in ends)
    for (sign, a, b), end in zip(sides, ends, strict=True):
        for accuracy in _ACCURACIES:
            if open_end or end is None:
                outcome = _violation(a, b, accuracy)
            else:
                outcome = _right_half(a, b, end, accuracy)
            smooth = (a.gaussian and b.gaussian) or (open_end and _costly(a, b))
            if outcome.verdict is not Verdict.UNDECIDED or smooth:
                break
        if outcome.verdict is Verdict.NO and outcome.witness is not None:
            return _refuted(low, high, np.array([sign * np.log(outcome.witness.x)]))
        # With one side open the other can only refute.
        open_end = open_end or outcome.verdict is not Verdict.YES
    return _UNDECIDED if open_end else _YES


def _right_half(a: Pld, b: Pld, end: float, accuracy: float) -> Domination:
    """Whether `h_a <= h_b` on `1 <= x <= e^end`, from curves of the given accuracy."""
    # Cells are at most 64 wide, so that `e^t` stays within the floats.
    t = np.linspace(0.0, end, max(9 if _costly(a, b) else 65, int(end / 64.0) + 2))
    if _countable(a):
        kinks = a._evaluator._table.z
        t = np.unique(np.concatenate([t, kinks[(kinks > 0.0) & (kinks < end)]]))
    samples = _sample(a, b, t, accuracy)
    patience = 2 if _costly(a, b) else MOST_STEPS
    for turn in range(MOST_STEPS):
        work(60.0 * t.size)
        a_lo, a_hi, b_lo, b_hi = samples
        gap = a_lo - b_hi * (1.0 + 4.0 * U)
        worst = int(np.argmax(gap))
        if gap[worst] > 0.0:
            return Domination(Verdict.NO, Witness(float(np.exp(min(t[worst], 700.0))), 0.0))
        bounds = convexity_bounds.lower_cells(t, b_lo, b_hi)
        w, lowest = bounds.bottom()
        points = a_hi <= b_lo
        fine = points[:-1] & points[1:] & (lowest >= convexity_bounds.chord(a_hi, bounds.width, w))
        if np.all(fine):
            return _YES
        # A point that is open stays open: going on can only find another one that refutes.
        if turn >= patience and not points.all():
            return _UNDECIDED
        split = np.flatnonzero(~fine)
        middle = 0.5 * (t[split] + t[split + 1])
        new = middle[(middle > t[split]) & (middle < t[split + 1])]
        if new.size == 0 or t.size + new.size > 4 * MANY:
            return _UNDECIDED
        fresh = _sample(a, b, new, accuracy)
        order = np.argsort(np.concatenate([t, new]), kind="stable")
        samples = tuple(
            np.concatenate([old, more])[order] for old, more in zip(samples, fresh, strict=True)
        )
        t = np.concatenate([t, new])[order]
    return _UNDECIDED


def _violation(a: Pld, b: Pld, accuracy: float) -> Domination:
    """Look for a point that refutes, where no tail argument can prove: NO or UNDECIDED."""
    end = min(a._evaluator._top, b._evaluator.reach(1e-12), 600.0)
    t = np.linspace(0.0, max(end, 1e-12), 17 if _costly(a, b) else 129)
    a_lo, _, _, b_hi = _sample(a, b, t, accuracy)
    worst = int(np.argmax(a_lo - b_hi * (1.0 + 4.0 * U)))
    if a_lo[worst] > b_hi[worst] * (1.0 + 4.0 * U):
        return Domination(Verdict.NO, Witness(float(np.exp(t[worst])), 0.0))
    return _UNDECIDED


def _costly(a: Pld, b: Pld) -> bool:
    """Whether a point may need a separate contour: then look at a few first."""
    return any(
        pld._evaluator._by_contour and (pld.gaussian is None or pld._evaluator._moments.mixtures)
        for pld in (a, b)
    )


def _sample(a: Pld, b: Pld, t: Floats, accuracy: float) -> tuple[Floats, ...]:
    return (*a._evaluator.right(t, 0.0, accuracy), *b._evaluator.right(t, 0.0, accuracy))


def _tail_refuted(low: Pld, high: Pld, sign: float) -> Domination:
    """NO, with a witness far out; its gap is 0.0 where the tails are below the floats."""
    a, b = (low, high) if sign > 0.0 else (low.reverse(), high.reverse())
    top = min(b._evaluator._top, 600.0)
    last = min(top, 60.0) + 1.0
    t = np.geomspace(last / 300.0, last, 12) if _costly(a, b) else np.linspace(0.0, last, 200)
    crossed = tail_start(b, a) if b._evaluator._top == np.inf else None
    known = [] if crossed is None else [crossed, 1.2 * crossed]
    t = np.unique(np.concatenate([t, [top], known]))
    return _refuted(low, high, sign * t, 0.0, None if crossed is None else sign * crossed)


def _refuted(
    low: Pld, high: Pld, near: Floats, spread: float = 3.0, known: float | None = None
) -> Domination:
    """NO, with the best proven gap at and around the given `t = ln x`, or else at the `known`."""
    around = np.concatenate([[0.0], np.linspace(-spread, spread, 5 if _costly(low, high) else 25)])
    t = np.clip(np.unique((near[:, None] + around).ravel()), -EXP_RANGE, EXP_RANGE)
    dt = (EXP_ULPS + 2.0) * U
    gap = np.empty(t.size)
    for side, a, b in ((t >= 0.0, low, high), (t < 0.0, low.reverse(), high.reverse())):
        if side.any():
            a_lo, _ = a._evaluator.right(np.abs(t[side]), dt, _ACCURACIES[0])
            _, b_hi = b._evaluator.right(np.abs(t[side]), dt, _ACCURACIES[0])
            # h(x) gaps are x times those of the reversed curves at 1/x.
            gap[side] = (a_lo - b_hi * (1.0 + 4.0 * U)) * np.exp(np.minimum(t[side], 0.0))
    worst = int(np.argmax(gap))
    if known is not None and not gap[worst] > 0.0:
        return Domination(
            Verdict.NO, Witness(float(np.exp(np.clip(known, -EXP_RANGE, EXP_RANGE))), 0.0)
        )
    proven = max(0.0, float(gap[worst]) * (1.0 - 64.0 * U))
    return Domination(Verdict.NO, Witness(float(np.exp(t[worst])), proven))
