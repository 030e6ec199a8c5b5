"""The target residue filter: a Gaussian residue that must hold only where it can be read.

A state is what is left of `mu²` and the largest loss `b` that the queries so far add up to, or null
where losses are unbounded. After a query `L` the next Gaussian `G_m` must satisfy

    h_{G_m ⊕ L}(e^t) <= h_{G_mu}(e^t)      for all t >= eps - b,

in both directions. On the whole line that is the step of a GDP residue filter. Where `t0 = eps - b`
is positive, one of these is enough:

* the losses of `L` are at most `t0`: then `h_L(e^t) = 0` from there on, and `G_mu` may be gone;
* `L` is one randomized response, Laplace noise or bounded range, and the inequality holds at `t0`:
  the difference of both sides has the sign of `∫ g(y) e^{-y²/2m²} cosh(ty/m²) dy` over `y > 0`,
  `g` changes its sign once, from plus to minus, and `cosh(ty/m²) / cosh(t0 y/m²)` increases in
  `y`; so what is at most 0 at `t0` stays so;
* the same for `R_e` in place of `L`, `e` its largest loss: `L ⪯ R_e`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from residua.verify.arithmetic.balls import ball, bits, upper, written
from residua.verify.descriptions.states import State, Unreadable, amount
from residua.verify.losses.costs import Infinite, Unknown
from residua.verify.losses.factors import Loss, Noise, Response
from residua.verify.losses.hockey_stick import heights
from residua.verify.losses.laws import gaussian_curve
from residua.verify.proofs.additive import Cost, enough_taken, largest_loss, missing_mass
from residua.verify.proofs.gaussian_budget import gdp_residue
from residua.verify.proofs.verdict import Proof, all_of, proven, refuted, undecided

_BITS = (128, 256, 512)


def first(config: Mapping[str, Any], state: State, tables: Mapping[str, bytes]) -> Proof:
    """Whether the first Gaussian keeps `(eps, delta)`, and nothing has been lost."""
    left, reached = _read(state)
    if reached != 0:
        return refuted("something is lost before anything was asked")
    if left == 0:
        return proven("nothing but plain addition is left")
    for precision in _BITS:
        with bits(precision):
            height = gaussian_curve(ball(written(config["eps"])), ball(left).sqrt())
            if height <= ball(written(config["delta"])):
                return proven("the first Gaussian keeps (eps, delta)")
            if height > ball(written(config["delta"])):
                return refuted("the first Gaussian exceeds delta at eps")
    return undecided("the first Gaussian is not told from (eps, delta)")


def step(config: Mapping[str, Any], before: State, after: State, loss: Loss) -> Proof:
    """Whether a step from one state to the next is sound."""
    (v, b), (left, reached) = _read(before), _read(after)
    if left > v:
        return refuted("mu² rises")
    if b is None and reached is not None:
        return refuted("losses that were unbounded are bounded again")
    if b is not None and reached is not None and reached < b:
        return refuted("the largest loss so far falls")
    if loss.is_identity:
        return proven("no loss")
    m2 = left + loss.variance
    if m2 > v:
        return refuted("mu² falls by less than the Gaussian part")
    rest, top = loss.rest, _largest(loss)
    far = _reach(b, reached, top)
    if not rest.factors and not loss.stated:
        return all_of([far, proven("mu² falls by at least its cost")])
    near = _from_where_it_is_read(config, b, m2, v, rest)
    if near is not None and near.verdict == "proven":
        return all_of([far, near])
    whole = gdp_residue(v, left, loss)
    if whole.verdict == "proven" or near is None or b is None:
        return all_of([far, whole])
    # On the whole line less may fit than where it is read.
    return all_of([far, near])


def _read(state: State) -> tuple[Fraction, Fraction | None]:
    left, reached = state.get("left"), state.get("reached")
    if isinstance(left, list):
        raise Unreadable(f"left must be one amount, got {left!r:.60}")
    return amount(left), None if reached is None else amount(reached)


def _largest(loss: Loss) -> Cost | None:
    """The largest loss of a query; None where it has none."""
    if loss.variance or loss.stated:
        return None
    try:
        return largest_loss(loss)
    except (Infinite, Unknown):
        return None


def _reach(b: Fraction | None, reached: Fraction | None, top: Cost | None) -> Proof:
    """Whether the largest loss so far grows by at least that of the query."""
    if reached is None or b is None:
        return proven("losses are taken to be unbounded")
    if top is None:
        return refuted("the losses of the query are unbounded, and count as bounded")
    return enough_taken("the largest loss", reached - b, top)


def _from_where_it_is_read(
    config: Mapping[str, Any], b: Fraction | None, m2: Fraction, v: Fraction, rest: Loss
) -> Proof | None:
    """The inequality from `t0` on; None where only the whole line can be checked."""
    if b is None or rest.stated:
        return None
    start, top = written(config["eps"]) - b, _largest(rest)
    if start < 0 or top is None or _may_lose_everything(rest):
        return None
    covered = enough_taken("eps", start, top)
    if covered.verdict == "proven":
        return proven("the losses of all queries add up to at most eps")
    if start == 0:
        return None
    one = len(rest.factors) == 1 and rest.factors[0][1] == 1
    factor = rest.factors[0][0]
    central = one and (isinstance(factor, Noise) or _is_coin(factor))
    proof = undecided("the curves are not told apart where the budget is first read")
    for precision in _BITS:
        with bits(precision):
            law = rest if central else _response(top)
            found = heights(Loss(variance=m2, factors=law.factors), ball(start))
            if found is None or not v:
                return None
            budget = gaussian_curve(ball(start), ball(v).sqrt())
            if found[0] <= budget:
                return proven("the budget covers the query wherever it can be read")
            if found[0] > budget and central:
                return refuted("the budget does not cover the query where it is first read")
            if found[0] > budget:
                return undecided("the budget is not shown to cover the query where it is read")
    return proof


def _may_lose_everything(rest: Loss) -> bool:
    lost = missing_mass(rest)
    return bool(lost.exact) or (lost.rest is not None and not lost.rest().is_zero())


def _is_coin(factor: Any) -> bool:
    return isinstance(factor, Response) and factor.delta == 0


def _response(top: Cost) -> Loss:
    """The randomized response above everything with this largest loss."""
    eps = top.exact if top.rest is None else top.exact + upper(top.rest())
    zero = Fraction(0)
    return Loss(factors=((Response(eps, zero, eps, zero), 1),))
