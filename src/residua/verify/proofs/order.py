"""`L ⪯ M`: by inspection, by two evaluations where `M` is a point, or by comparing curves.

**Curves** are compared for bounded symmetric compositions `A` and `B` without a Gaussian part. Both
are symmetric, so `t >= 0` is enough. Where `B` has a list of outcomes: between two of its losses
`h_B` is linear in `x` and `h_A` is convex, so `h_A - h_B` is largest at one of them, and it is
enough to look at the losses of `B`, at 0 and far out. Otherwise on a lattice: `A` from above
(`dominating.py`), `B` from below by rounding every loss down: `Σ p (1 - e^{t-z})_+` rises with the
losses, composed or not. Both are linear in `x` between lattice points.

Single queries, symmetric or not, are compared by their curves in `x`, which are convex: `h_A` lies
below its chord over a cell, `h_B` above the lines through its points on either side of the cell.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from residua.provable.forms import MOST_OUTCOMES
from residua.verify.arithmetic.balls import BITS, Ball, ball, bits, near
from residua.verify.arithmetic.work_limit import reserve_memory, work
from residua.verify.losses.dominating import FINENESS, LONGEST_LATTICE, Above, Lattice, lattice_of
from residua.verify.losses.factors import Factor, Loss, Mixture, Noise, Response, Unknown
from residua.verify.losses.hockey_stick import (
    Steps,
    curve,
    hockey_sticks,
    known_curve,
    law_of,
    split,
)
from residua.verify.losses.laws import Central, Finite
from residua.verify.proofs.additive import (
    divergence,
    enough_taken,
    largest_loss,
    missing_mass,
    renyi_within,
    zcdp_within,
)
from residua.verify.proofs.gaussian_budget import gdp
from residua.verify.proofs.residue import chord_below_tangents
from residua.verify.proofs.verdict import Proof, all_of, proven, refuted, undecided


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
        with bits(BITS):
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
    # The second where an amount is a rounding of the height itself, such as to 2^-400.
    for precision in (BITS, 4 * BITS):
        with bits(precision):
            sides = hockey_sticks(loss, ball(eps))
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
        if precision > BITS:
            return undecided("the composition could not be told from (eps, delta)")
    with bits(BITS):
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
        found = hockey_sticks(rest, left)
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
    found = hockey_sticks(rest, ball(eps))
    return found is not None and all(bool(side <= ball(delta)) for side in found)


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
        one, two = _listed(loss), _listed(other)
        if two is not None and _below_at_losses(loss, one, two):
            return True
        if one is not None and two is not None:
            return False
        # The numbers of lattice points up to the largest loss of a factor.
        return any(_below_on_lattice(loss, other, cells) for cells in (32, 128, 512))


def single_below(one: Factor, two: Factor) -> bool:
    """Whether a bounded factor is shown to lie below another, both ways, by its curve."""
    if not (one.missing().is_zero() and two.missing().is_zero()):
        return False
    with bits(BITS):
        return _curves_below(one, two, False) and _curves_below(one, two, True)


def _curves_below(one: Factor, two: Factor, back: bool) -> bool:
    """On `t >= 0`, where the losses of the one end before those of the other."""
    top, beyond = one.top(back), two.top(back)
    if top is None or beyond is None or not top < beyond:
        return False
    high = near(top) + 0.5 * (near(beyond) - near(top))
    if not (arb(high) >= top and high > 0.0):
        return False
    for count in (16, 64, 256, 1024):
        ts = [arb(high * k / count) for k in range(count + 1)]
        pairs = [(curve(one, t, back), curve(two, t, back)) for t in ts]
        found = [(a, b) for a, b in pairs if a is not None and b is not None]
        if len(found) < len(pairs) or any(a > b for a, b in found):
            return False
        # A symmetric curve has `h'(1-) + h'(1+) = h(1) - 1`: half of that is a slope at 1.
        first = (found[0][1] - 1) / 2 if two.symmetric else arb(-1)
        if _cells_close([t.exp() for t in ts], found, first):
            return True
    return False


def _cells_close(x: list[Ball], pairs: list[tuple[Ball, Ball]], first: Ball) -> bool:
    """Whether chords of the one lie below what is known to lie below the other; 0 beyond the end.

    Over a cell the other lies above the lines through its two points on the left, and on the right;
    over the first, above a line of slope `first`.
    """
    over, under = ([pair[k] for pair in pairs] for k in (0, 1))
    if not all(a <= b for a, b in pairs):
        return False
    for k in range(len(x) - 1):
        width = x[k + 1] - x[k]
        # It rises by no more than its slope on the right, and falls by no more than on the left.
        right = (under[k + 2] - under[k + 1]) / (x[k + 2] - x[k + 1]) if k + 2 < len(x) else arb(0)
        left = (under[k] - under[k - 1]) / (x[k] - x[k - 1]) if k else first
        ends = slice(k, k + 2)
        if not chord_below_tangents(over[ends], under[ends], (left * width, right * width)):
            return False
    return True


def _listed(loss: Loss) -> Finite | None:
    make = law_of(loss, MOST_OUTCOMES)
    law = None if make is None else make()
    return law if isinstance(law, Finite) else None


def _below_at_losses(loss: Loss, one: Finite | None, two: Finite) -> bool:
    """Whether a composition, `one` if its law is listed, lies below another at its losses."""
    if one is not None and not (one.p_inf <= two.p_inf and one.q_inf <= two.q_inf):
        return False
    left, right = None if one is None else Steps(one), Steps(two)
    for t in (arb(0), *two.z):
        if t < 0:
            continue
        sides = hockey_sticks(loss, t) if left is None else (left(t),)
        if sides is None or not (sides[0] <= 0 or sides[0] <= right(t)):
            return False
    return True


def _below_on_lattice(loss: Loss, other: Loss, cells: int) -> bool:
    """The same for bounded compositions in general; no where the lattice would be too long."""
    spacing = min(size for f, _ in other.factors if (size := _size(f))) / cells
    sizes = [n * _size(f) for each in (loss, other) for f, n in each.factors]
    if not all(sizes) or sum(sizes) > spacing * LONGEST_LATTICE / 2:
        return False
    above = lattice_of(loss, spacing, 0.0, LONGEST_LATTICE)
    below: Lattice | None = None
    for factor, n in other.factors:
        power = _rounded_down(factor, spacing).power(n, LONGEST_LATTICE, 0.0)
        below = power if below is None else below * power
    assert below is not None
    half = max(above.high, 0) + 1
    high, low = above.excess(half, 1)[half:], below.excess(half, 1)[half:]
    if not (above.plus.is_zero() and above.minus.is_zero()):
        return False
    return all(a <= b for a, b in zip(high, low, strict=True))


def _size(factor: Factor) -> Fraction:
    """About the largest loss, as a rational; 0 if it has none."""
    if isinstance(factor, Response | Noise):
        return factor.eps
    top = factor.top()
    return Fraction(0) if top is None else Fraction(float(top.upper()))


def _rounded_down(factor: Factor, spacing: Fraction) -> Lattice:
    """Masses of `P` at lattice points at or below their losses; for heights at `t >= 0` alone."""
    law, d = factor.law(), ball(spacing)
    masses: dict[int, Ball] = {}

    def add(k: int, mass: Ball) -> None:
        masses[k] = masses.get(k, arb(0)) + mass

    if isinstance(law, Central) and isinstance(factor, Noise):
        top, bottom = factor.eps // spacing, -factor.eps // spacing
        add(bottom, law.atoms.p[0])
        add(top, law.atoms.p[1])
        work(4 * (top - bottom))
        for k in range(bottom, top + 1):
            start, stop = (k * d).max(-law.e), ((k + 1) * d).min(law.e)
            add(k, 2 * law.height * ((stop / 2).exp() - (start / 2).exp()))
    elif isinstance(law, Finite):
        for p, z in zip(law.p, law.z, strict=True):
            cell = (z / d).lower().floor().unique_fmpz()
            if cell is not None:
                add(int(cell), p)
    first, last = min(masses, default=0), max(masses, default=0)
    work(last - first)
    reserve_memory(last - first)
    listed = tuple(masses.get(k, arb(0)) for k in range(first, last + 1))
    return Lattice(d, first, listed, arb(0), arb(0))
