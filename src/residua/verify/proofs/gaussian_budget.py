"""Steps of filters whose budget is a Gaussian, with or without slack.

    gdp                       L ⪯ G_nu, nu² what was taken: a residue of nothing
    gdp_residue               G_m' ⊕ L ⪯ G_mu
    approximate_gdp_residue   G_m' ⊕ R_{0,d'} ⊕ L ⪯ G_mu ⊕ R_{0,d}

The Gaussian part of `L` joins `m'`. Mass at infinity that splits off joins `d'`: with
`(1-η)(1-d') = 1-d` the last line is `G_m' ⊕ L ⪯ G_mu ⊕ R_{0,η}`. A factor whose losses are
unbounded counts as the Gaussian above it where there is no slack.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import nextafter

from flint import arb

from residua.verify.arithmetic import LADDER, Ball, ball, bits, near, normal, upper
from residua.verify.losses.dominating import FINENESS, law_above
from residua.verify.losses.factors import Loss, Revealing, Unknown, together
from residua.verify.losses.hockey_stick import larger_height, law_of
from residua.verify.losses.laws import Law
from residua.verify.proofs.additive import missing_mass
from residua.verify.proofs.residue import Reserves, prove_residue, query_by_query
from residua.verify.proofs.verdict import (
    Proof,
    all_of,
    at_growing_precision,
    line_in_x,
    prove_at_most,
    prove_below,
    proven,
    refuted,
    undecided,
)


def gdp_residue(before: Fraction, after: Fraction, loss: Loss) -> Proof:
    """Whether `mu²` falls by enough for a loss, without slack."""
    none = Fraction(0)
    return approximate_gdp_residue((before, none), (after, none), loss)


def approximate_gdp_residue(
    before: tuple[Fraction, ...], after: tuple[Fraction, ...], loss: Loss
) -> Proof:
    """Whether `mu²` and delta fall by enough for a loss."""
    if loss.stated:
        return undecided("no formula for the loss of a stated Rényi bound")
    (v, d), (left, d_after) = before, after
    if d_after > d or d >= 1:
        return refuted("delta rises")
    eta = 1 - (1 - d) / (1 - d_after)
    taken, rest, tight = (loss.variance, loss.rest, True) if eta else _absorb_unbounded(loss)
    m2 = left + taken
    if m2 > v:
        found = _beyond_slack(m2, v, eta) if eta else _too_little(loss, taken, v - left)
        if found.verdict == "proven" and loss.factors:
            return undecided("slack covers the Gaussian part, but other losses are there too")
        return found
    split = _split(rest)
    if split is not None:
        rest, lost, least = split
        if lost > eta:
            # Charged as written, factor by factor: sums bound what composes.
            lost = min(lost, missing_mass(loss).upper)
        if lost > eta and missing_mass(loss).upper > d - d_after:
            why = "delta falls by less than the mass at infinity"
            return refuted(why) if least > eta else undecided(why)
        eta = max(Fraction(0), 1 - (1 - eta) / (1 - lost)) if lost < 1 else Fraction(0)
    if not rest.factors:
        return proven("mu² and delta fall by at least their costs")
    return prove_law(rest, m2, v, eta, tight)


def prove_law(
    rest: Loss,
    m2: Fraction,
    v: Fraction,
    eta: Fraction,
    tight: bool = True,
    reserves: Reserves = tuple,
    start: Fraction = Fraction(0),
) -> Proof:
    """`G_m ⊕ L ⪯ G_√v ⊕ R_{0,η}` by a law of `L`, or by finer and finer ones above it.

    Up to reserves, and from `t = start` on (`residue.py`). Only a tight law refutes.
    """
    if eta and _lies_within_slack(rest, eta):
        return proven("the loss lies within the slack that was taken")
    make = law_of(rest)
    many = sum(n for _, n in rest.factors) > 1
    if not eta and (make is None or many):
        # Not tight, but soon done where outcomes are many.
        apart = query_by_query(rest, m2, v)
        if apart.verdict == "proven":
            return apart
    if make is not None:
        return _compare_with_budget(make, m2, v, eta, tight, reserves, start)
    proof = undecided("too many outcomes, or no formula for their law")
    for fine in FINENESS:
        make = law_above(rest, eta, fine)
        if make is None:
            break
        try:
            proof = _compare_with_budget(make, m2, v, eta, False, reserves, start)
        except Unknown as error:
            return proof if fine < FINENESS[0] else undecided(str(error))
        if proof.verdict == "proven":
            break
    return proof


def _too_little(loss: Loss, left: Fraction, spent: Fraction) -> Proof:
    """Less than the Gaussian above: refuted where the tails alone need more than was taken."""
    tails = loss.variance + sum((n * (f.tail or Fraction(0)) for f, n in loss.factors), Fraction(0))
    if spent < tails:
        return refuted(f"mu² falls by less than the Gaussian part {float(tails):.9g}")
    return undecided(f"mu² falls by less than {float(left):.9g}, which is known to suffice")


def _beyond_slack(m2: Fraction, v: Fraction, eta: Fraction) -> Proof:
    """`G_m ⪯ G_mu ⊕ R_{0,η}` for `m > mu`, which is a matter of `x = 1`.

    There `h_m <= (1-η) h_mu + η` says `Φ(-m/2) >= (1-η) Φ(-mu/2)`. The slopes in `x = e^t` are
    `-Φ(-a_m)` and `-(1-η) Φ(-a_mu)`, `a_y = t/y + y/2`, so the gap falls on `t >= 0` if the ratio
    of the first to the second rises from there. With `λ = φ/Φ` at `-a` its logarithm has the slope
    `λ(a_mu)/mu - λ(a_m)/m`, and `λ(a_y)/y` falls in `y`: that is `(λ-a)(y/2 - t/y) <= 1`, which
    follows from `y/2 - t/y <= a` and the bound `λ < a + 1/a`. For `t < 0` by symmetry.
    """
    return prove_at_most(
        lambda: (ball(1 - eta) * normal(-ball(v).sqrt() / 2), normal(-ball(m2).sqrt() / 2)),
        "slack covers what the Gaussian part exceeds the budget by",
        "mu² falls by less than the Gaussian part",
    )


def _split(loss: Loss) -> tuple[Loss, Fraction, Fraction] | None:
    """What is left when all mass at infinity splits off; that mass from above and from below."""
    rest, kept, most = loss.core, Fraction(1), Fraction(1)
    for factor, n in loss.factors:
        if isinstance(factor, Revealing):
            with bits(LADDER[0]):
                lost = factor.missing()
                # Exactly for a few: powers of rationals grow long.
                gone = 1 - (1 - upper(lost)) ** n if n <= 64 else upper(1 - (1 - lost) ** n)
                kept *= max(Fraction(0), 1 - gone)
                most *= upper((1 - lost) ** n)
    return None if rest is None else (rest, 1 - kept, 1 - most)


def _compare_with_budget(
    make: Callable[[], Law],
    m2: Fraction,
    v: Fraction,
    eta: Fraction,
    tight: bool,
    reserves: Reserves,
    start: Fraction,
) -> Proof:
    """The same for one law; where it is one above `L`, a disproof shows nothing."""
    if m2 == 0 or (m2 == v and not eta):
        proof = below_gaussian(make, v - m2, eta, start)
    elif m2 == v:
        with bits(LADDER[0]):
            if make().curve(arb(0)) <= ball(eta):
                return proven("the loss lies within the slack that was taken")
        return undecided("only slack is taken, and the loss may exceed it")
    else:
        proof = prove_residue(make, m2, v, eta, reserves, start)
        if proof.verdict == "undecided":
            # Tiny masses may be known too badly for that, and well enough for `L ⪯ G_√(v - m²)`.
            below = below_gaussian(make, v - m2, eta, start)
            proof = below if below.verdict == "proven" else proof
    if proof.verdict == "refuted" and not tight:
        return undecided(f"not shown through a loss above it: {proof.reason}")
    return proof


def _lies_within_slack(rest: Loss, eta: Fraction) -> bool:
    """Whether a loss lies below `R_{0,η}`, by its height at `x = 1`."""

    def sides() -> tuple[Ball, Ball]:
        found = larger_height(rest, arb(0))
        return arb("inf") if found is None else found, ball(eta)

    return prove_at_most(sides, "", "").verdict == "proven"


def _absorb_unbounded(loss: Loss) -> tuple[Fraction, Loss, bool]:
    """The Gaussian part and those above what is unbounded; the rest; whether nothing was lost."""
    variance, rest, tight = loss.variance, [Loss(stated=loss.stated)], True
    for factor, n in loss.factors:
        if factor.above is None:
            rest.append(Loss(factors=((factor, n),)))
        else:
            variance += n * factor.above
            tight = False
    return variance, together(rest), tight


def below_gaussian(make: Callable[[], Law], nu2: Fraction, eta: Fraction, start: Fraction) -> Proof:
    """Whether a law lies below `G_nu ⊕ R_{0,η}` from `start` on, by chords through its curve."""
    if nu2 <= 0:
        return refuted("nothing is taken of mu²")

    def compare() -> Proof:
        law = make()
        if law.missing > 0:
            return refuted("mass at infinity, which no Gaussian covers")
        if not law.missing.is_zero():
            return undecided("mass at infinity that is not known to be none")
        tangent = partial(_tangent, ball(nu2).sqrt(), ball(eta))
        low, proofs = nextafter(float(start), 0.0), []
        for side in [law] if law.symmetric else [law, law.reversed()]:
            end = max(near(side.top) * (1 + 1e-9), low)
            proofs.append(prove_below(side.curve, tangent, low, end))
        return all_of(proofs)

    return at_growing_precision(compare)


def _tangent(nu: Ball, slack: Ball, t: Ball) -> Callable[[Ball], Ball]:
    """The line in `x` that touches the curve of `G_nu ⊕ R_{0,η}`."""
    a, kept = nu / 2 - t / nu, 1 - slack
    fall = kept * t.exp() * normal(a - nu)
    return line_in_x(t, kept * normal(a) - fall + slack, -fall)
