"""`L ⪯ M` where inspection or two evaluations show it."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from residua.verify.arithmetic.balls import ball, bits, near
from residua.verify.losses.costs import Unknown
from residua.verify.losses.curves import curve
from residua.verify.losses.dominating import FINENESS, Above
from residua.verify.losses.factors import Factor, Loss, Mixture, Noise, Response
from residua.verify.losses.hockey_stick import heights, split
from residua.verify.losses.lattice import lattice_of
from residua.verify.losses.laws import Finite
from residua.verify.proofs.additive import divergence, enough_taken, largest_loss, missing_mass
from residua.verify.proofs.conversions import renyi_within, zcdp_within
from residua.verify.proofs.gaussian_budget import gdp
from residua.verify.proofs.verdict import Proof, all_of, proven, refuted, undecided

_BITS, _PRECISE = 192, 768
"""The second where an amount is a rounding of the height itself, such as to 2^-400."""
_ROUNDS = 12
_BEYOND = 10_000
"""A lattice reaches far enough if less than this part of delta lies beyond it."""
_MOST = 1 << 17


def below(loss: Loss, other: Loss) -> bool:
    """Whether a loss is known to lie below another: equal, or a smaller one of the same family."""
    if loss == other or loss.is_identity:
        return True
    if loss.stated or other.stated or loss.variance > other.variance:
        return False
    if not loss.factors:
        return True
    if not other.factors:
        return gdp(other.variance, loss).verdict == "proven"
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
            return one.eps <= two.eps and one.delta <= two.delta
        with bits(_BITS):
            tops, lost = [one.top(), one.top(True)], one.missing()
            return all(t is not None and t <= ball(two.eps) for t in tops) and bool(
                lost <= ball(two.delta)
            )
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
    """Whether stated Rényi bounds, with Gaussians, imply `(eps, delta)`-DP at some order.

    A factor `R_{0,d}` takes `d` of delta: `d + (1-d) h <= d + h`.
    """
    only = all(isinstance(f, Response) and f.eps == 0 for f, _ in loss.factors)
    delta -= missing_mass(loss).exact
    loss = Loss(variance=loss.variance, stated=loss.stated)
    if not only or not (eps >= 0 and 0 < delta < 1):
        return undecided("no formula for the loss of a stated Rényi bound")
    if all(box.rho is not None for box, _ in loss.stated):
        rho = loss.variance / 2 + sum(n * (box.rho or 0) for box, n in loss.stated)
        left = eps - sum(n * box.xi for box, n in loss.stated)
        return zcdp_within(rho, left, delta) if left >= 0 else undecided("xi exceeds eps")
    proof = undecided("no order is stated at which that would follow")
    for order in sorted({alpha for box, _ in loss.stated for alpha, _ in box.curve}):
        if order <= 1 or any(box.at(order) is None for box, _ in loss.stated):
            continue
        proof = renyi_within(order, divergence(loss, order).exact, eps, delta)
        if proof.verdict == "proven":
            break
    return proof


def within(loss: Loss, eps: Fraction, delta: Fraction) -> Proof:
    """`L ⪯ R_{eps,delta}`: `h(e^eps) <= delta` in both directions."""
    if loss.is_identity:
        return proven("nothing is lost")
    if eps < 0:
        return undecided("eps is negative")
    if loss.stated:
        raise Unknown("no formula for the loss of a stated Rényi bound")
    for precision in (_BITS, _PRECISE):
        with bits(precision):
            sides = heights(loss, ball(eps))
            if sides is None:
                break
            exact = sides[0].max(sides[1])
            if exact <= ball(delta):
                return proven("the composition lies within (eps, delta)")
            if exact > ball(delta):
                return refuted("the composition exceeds (eps, delta)")
            close = bool(exact.is_finite() and exact.rad() < ball(delta) / 1000)
        if not close:
            break
        if precision == _PRECISE:
            return undecided("the composition is not told from (eps, delta)")
    with bits(_BITS):
        if _shifted(loss, eps, delta):
            return proven("the composition lies within (eps, delta), small parts by their sizes")
        if any(_beside_the_largest(loss, eps, delta, fine) for fine in (None, *FINENESS[:2])):
            return proven("the composition lies within (eps, delta), small parts by laws above")
        if eps == 0 or delta <= 0:
            return undecided("the composition is not shown to lie within (eps, delta)")
        return _on_lattices(loss, eps, delta)


def _shifted(loss: Loss, eps: Fraction, delta: Fraction) -> bool:
    """Whether it lies within `(eps, delta)` less its smallest parts and their largest losses.

    What loses at most `t` for sure adds no more than that to any loss: `h_{L+M}(e^eps)` is at most
    `h_M(e^{eps-t})`. Mass at infinity splits off first.
    """
    lost, parts = split(loss)
    sizes = []
    for factor, n in parts:
        tops = factor.top(), factor.top(True)
        if tops[0] is None or tops[1] is None or not factor.missing().is_zero():
            return False
        sizes.append((n * tops[0].max(tops[1]), factor, n))
    sizes.sort(key=lambda each: near(each[0]))
    allowed = (ball(delta) - lost) / (1 - lost)
    taken = arb(0)
    for place, (size, _, _) in enumerate(sizes):
        taken += size
        rest = Loss(loss.variance, tuple((f, n) for _, f, n in sizes[place + 1 :]))
        left = ball(eps) - taken
        if not left >= 0:
            return False
        if rest.is_identity:
            return bool(allowed >= 0)
        found = heights(rest, left)
        if found is not None and found[0] <= allowed and found[1] <= allowed:
            return True
    return False


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
    zero = Fraction(0)
    for top, factor in tops[:-1]:
        # A float at or above it: rounding of the upper end is covered by the last bits.
        wide = top * (1 + Fraction(1, 1 << 50))
        above = Response(wide, zero, wide, zero) if fine is None else Above(factor, fine)
        listed.append((above, 1))
    rest = Loss(loss.variance, (*listed, (tops[-1][1], 1)))
    found = heights(rest, ball(eps))
    return found is not None and all(bool(side <= ball(delta)) for side in found)


def _on_lattices(loss: Loss, eps: Fraction, delta: Fraction) -> Proof:
    """By laws above it, on lattices that have `eps` on them: finer and finer, or farther where too
    much lies beyond their ends."""
    tail = 1e-9 * float(delta)
    sizes = [float(loss.variance)] if loss.variance else []
    for factor, _ in loss.factors:
        height = curve(factor, arb(0))
        if height is None:
            raise Unknown("no formula for its curve")
        sizes.append(6.0 * near(height) ** 2)
    cells = max(8, int(6.0 * float(eps) / min(sizes) ** 0.5) + 1)
    far = 3.0 * float(eps) + 12.0 * sum(sizes) ** 0.5
    for _ in range(_ROUNDS):
        spacing = eps / cells
        reach = int(far / float(spacing)) + 1
        if reach > _MOST:
            break
        law = lattice_of(loss, spacing, tail, reach)
        excess = law.excess(cells, 1)
        if excess[-1] <= ball(delta) and excess[0] <= (-ball(eps)).exp() * ball(delta):
            return proven(f"the composition lies within (eps, delta), {cells} cells")
        if law.plus > ball(delta) / _BEYOND:
            far *= 2.0
        else:
            cells *= 2
    return undecided("the composition is not shown to lie within (eps, delta)")
