"""`L ⪯ M`: by inspection, by two evaluations where `M` is a point, or by comparing curves.

**Curves** are compared for bounded symmetric compositions `A` and `B` without a Gaussian part. Both
are symmetric, so `t >= 0` is enough. `B` has a list of outcomes: between two of its losses `h_B` is
linear in `x` and `h_A` is convex, so `h_A - h_B` is largest at one of them, and it is enough to
look at the losses of `B` and at 0.

Single queries, symmetric or not, are compared by their curves in `x`, which are convex, over cells
(`verdict.py`).
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from residua.provable.forms import MOST_OUTCOMES
from residua.verify.arithmetic import BITS, Ball, ball, bits, near
from residua.verify.losses.dominating import FINENESS, LONGEST_LATTICE, Above, lattice_of
from residua.verify.losses.factors import (
    Factor,
    Loss,
    Mixture,
    Noise,
    Response,
    Revealed,
    Unknown,
)
from residua.verify.losses.hockey_stick import (
    curve,
    curve_of,
    known_curve,
    larger_height,
    law_of,
)
from residua.verify.losses.laws import Finite
from residua.verify.proofs.additive import (
    enough_taken,
    largest_loss,
    missing_mass,
    zcdp_within,
)
from residua.verify.proofs.gaussian_budget import gdp_residue
from residua.verify.proofs.verdict import (
    Proof,
    all_of,
    line_in_x,
    prove_below,
    proven,
    refuted,
    undecided,
)


def below(loss: Loss, other: Loss) -> bool:
    """Whether a loss is known to lie below another: equal, or a smaller one of the same family."""
    if loss == other or loss.is_identity:
        return True
    if loss.stated or other.stated or loss.variance > other.variance:
        return False
    if not loss.factors:
        return True
    if not other.factors:
        return gdp_residue(other.variance, Fraction(0), loss).verdict == "proven"
    # Each part below a different one.
    free = list(other.factors)
    for one, n in loss.factors:
        over = next((each for each in free if n <= each[1] and _smaller(one, each[0])), None)
        if over is None:
            return False
        free.remove(over)
    return True


def _smaller(one: Factor, two: Factor) -> bool:
    if one == two:
        return True
    if isinstance(one, Noise) and isinstance(two, Noise):
        return one.cut == two.cut and one.eps <= two.eps and one.cut in (None, 0)
    if isinstance(one, Mixture) and isinstance(two, Mixture):
        # On a sample: more of it, or less noise, loses more.
        pairs = [each.p for each in (one, two) if len(each.p) == 2 and each.p[0][0] == 0]
        plain = one.q == two.q == ((Fraction(0), Fraction(1)),) and len(pairs) == 2
        return plain and all(a <= b for a, b in zip(pairs[0][1], pairs[1][1], strict=True))
    if isinstance(two, Response):
        if isinstance(one, Response):
            return one.eps <= two.eps
        with bits(BITS):
            tops, lost = [one.top(), one.top(True)], one.missing()
            within = all(t is not None and t <= ball(two.eps) for t in tops)
            return within and bool(lost.is_zero())
    if isinstance(one, Revealed) and isinstance(two, Revealed):
        return one.delta <= two.delta
    return False


def basic(spent: tuple[Fraction, ...], loss: Loss) -> Proof:
    """Whether a loss is `(eps, delta)`-DP with what was taken of each.

    Its largest loss and its mass at infinity, as written; where losses are unbounded, its curve.
    """
    if not loss.variance and not loss.stated and not any(f.unbounded for f, _ in loss.factors):
        return all_of(
            [
                enough_taken("eps", spent[0], largest_loss(loss)),
                enough_taken("delta", spent[1], missing_mass(loss)),
            ]
        )
    if loss.stated:
        found = _stated(loss, *spent)
    elif not loss.variance and len(loss.factors) == 1:
        # Copies are charged one by one, and sums of `eps` and `delta` bound what composes.
        ((factor, n),) = loss.factors
        found = within(Loss(factors=((factor, 1),)), spent[0] / n, spent[1] / n)
    else:
        found = within(loss, spent[0], spent[1])
    return found if found.verdict == "proven" else undecided(found.reason)


def _stated(loss: Loss, eps: Fraction, delta: Fraction) -> Proof:
    """Whether stated zCDP bounds, with Gaussians, imply `(eps, delta)`-DP.

    A factor `R_{0,d}` takes `d` of delta: `d + (1-d) h <= d + h`.
    """
    only = all(isinstance(f, Revealed) for f, _ in loss.factors)
    delta -= missing_mass(loss).exact
    loss = Loss(variance=loss.variance, stated=loss.stated)
    if not only or not (eps >= 0 and 0 < delta < 1):
        return undecided("no formula for the loss of a stated Rényi bound")
    if any(box.rho is None for box, _ in loss.stated):
        return undecided("no formula for the loss of a stated Rényi bound")
    rho = loss.variance / 2 + sum(n * (box.rho or 0) for box, n in loss.stated)
    left = eps - sum(n * box.xi for box, n in loss.stated)
    return zcdp_within(rho, left, delta) if left >= 0 else undecided("xi exceeds eps")


def within(loss: Loss, eps: Fraction, delta: Fraction) -> Proof:
    """`L ⪯ R_{eps,delta}`: `h(e^eps) <= delta` in both directions."""
    if loss.is_identity:
        return proven("nothing is lost")
    if eps < 0:
        return undecided("eps is negative")
    if loss.stated:
        raise Unknown("no formula for the loss of a stated Rényi bound")
    # The second where an amount is a rounding of the height itself, such as to 2^-400.
    for precision in (BITS, 4 * BITS):
        with bits(precision):
            exact = larger_height(loss, ball(eps))
            if exact is None:
                break
            if exact <= ball(delta):
                return proven("the composition lies within (eps, delta)")
            if exact > ball(delta):
                return refuted("the composition exceeds (eps, delta)")
            close = bool(exact.is_finite() and exact.rad() < ball(delta) / 1000)
        if not close:
            break
        if precision > BITS:
            return undecided("the composition could not be told from (eps, delta)")
    with bits(BITS):
        if any(_beside_the_largest(loss, eps, delta, fine) for fine in (None, *FINENESS[:2])):
            return proven("the composition lies within (eps, delta), small parts by laws above")
        if eps == 0 or delta <= 0:
            return undecided("the composition is not shown to lie within (eps, delta)")
        return _on_lattices(loss, eps, delta)


def _beside_the_largest(loss: Loss, eps: Fraction, delta: Fraction, fine: float | None) -> bool:
    """Whether it lies within `(eps, delta)` with laws above all densities but the largest.

    At first these are `R_e`, `e` the largest loss, then chords through their curves.
    """
    listed: list[tuple[Factor, int]] = []
    dense: list[tuple[Factor, int]] = []
    for factor, n in loss.factors:
        smooth = not isinstance(factor.law(), Finite)
        if smooth and (factor.unbounded or n > 1 or not factor.symmetric):
            return False
        (dense if smooth else listed).append((factor, n))
    if len(dense) < 2:
        return False
    tops = [(Fraction(float((f.top() or arb(0)).upper())), f) for f, _ in dense]
    tops.sort(key=lambda each: each[0])
    for top, factor in tops[:-1]:
        # A float at or above it: rounding of the upper end is covered by the last bits.
        wide = top * (1 + Fraction(1, 1 << 50))
        above = Response(wide) if fine is None else Above(factor, fine)
        listed.append((above, 1))
    rest = Loss(loss.variance, (*listed, (tops[-1][1], 1)))
    found = larger_height(rest, ball(eps))
    return found is not None and bool(found <= ball(delta))


def _on_lattices(loss: Loss, eps: Fraction, delta: Fraction) -> Proof:
    """By laws above it, on lattices that have `eps` on them.

    They become finer, or reach farther where too much lies beyond their ends.
    """
    tail = 1e-9 * float(delta)
    sizes = [float(loss.variance)] if loss.variance else []
    for factor, _ in loss.factors:
        sizes.append(6.0 * near(known_curve(factor, arb(0))) ** 2)
    cells = max(8, int(6.0 * float(eps) / min(sizes) ** 0.5) + 1)
    far = 3.0 * float(eps) + 12.0 * sum(sizes) ** 0.5
    for _ in range(12):
        spacing = eps / cells
        reach = int(far / float(spacing)) + 1
        if reach > LONGEST_LATTICE:
            break
        law = lattice_of(loss, spacing, tail, reach)
        excess = law.excess(cells, 1)
        if excess[-1] <= ball(delta) and excess[0] <= (-ball(eps)).exp() * ball(delta):
            return proven(f"the composition lies within (eps, delta), {cells} cells")
        # Far enough is where less than this part of delta lies beyond.
        if law.plus > ball(delta) / 10_000:
            far *= 2.0
        else:
            cells *= 2
    return undecided("the composition is not shown to lie within (eps, delta)")


# -- comparing -------------------------------------------------------------------------------


def bounded_below(loss: Loss, other: Loss) -> bool:
    """Whether a bounded symmetric composition is shown to lie below another."""
    for each in (loss, other):
        plain = each.factors and not each.variance and not each.stated and each.symmetric
        if not plain or any(factor.unbounded for factor, _ in each.factors):
            return False
    with bits(BITS):
        make, left = law_of(other, MOST_OUTCOMES), curve_of(loss)
        law = None if make is None else make()
        if left is None or not isinstance(law, Finite):
            return False
        heights = ((left(t), law.curve(t)) for t in (arb(0), *law.z) if not t < 0)
        return all(bool(a <= 0) or bool(a <= b) for a, b in heights)


def single_below(one: Factor, two: Factor) -> bool:
    """Whether a bounded factor is shown to lie below another, both ways, by its curve."""
    if not (one.missing().is_zero() and two.missing().is_zero()):
        return False
    with bits(BITS):
        return _curves_below(one, two, False) and _curves_below(one, two, True)


def _curves_below(one: Factor, two: Factor, back: bool) -> bool:
    """On `t >= 0`; beyond the losses of the one there is nothing to show."""
    top, law = one.top(back), two.law()
    if top is None or law is None:
        return False
    other = law.reversed() if back else law

    def height(t: Ball) -> Ball:
        found = arb(0) if t > top else curve(one, t, back)
        return arb(1) if found is None else found

    end = max(near(top), 0.0) * (1 + 1e-9) + 1e-30
    found = prove_below(height, lambda t: line_in_x(t, other.curve(t), other.slope(t)), 0.0, end)
    return found.verdict == "proven"
