"""The automatic filter: a union whose components are chosen at the first query.

A state has the components' configurations and a state or null for each; before the first query both
lists are empty. The step that opens the filter is proven if every component keeps an `eps` of at
most the filter's, the deltas add up to at most `delta`, as they are written, and the step from the
first states of the components is one of their union. The records do not hold those first states, so
they are worked out here, from the configurations: never less than what the library starts with. A
plan must fit as a whole.
Afterwards the components must not change, and the filter is their union (`union.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from flint import arb

from residua.records import canonical
from residua.verify.arithmetic.balls import ball, bits, rational, written
from residua.verify.descriptions.states import State, fingerprint
from residua.verify.losses.laws import gaussian_curve
from residua.verify.proofs import plans, target, union
from residua.verify.proofs.verdict import Proof, all_of, proven, refuted

Config = Mapping[str, Any]

_BITS = 256
_DIGITS = 110
"""Binary digits of what is worked out: more than the library keeps."""


def first(config: Config, state: State, tables: Mapping[str, bytes]) -> Proof:
    """Whether nothing is chosen yet."""
    if state["filters"] or state["parts"]:
        return refuted("components are chosen before anything was asked")
    return proven("nothing was admitted yet")


def step(
    config: Config,
    before: State,
    after: State,
    no_loss: bool,
    prove_first: Callable[[Any, Any], Proof],
    prove: union.StepProof,
) -> Proof:
    """Whether a step opens the filter soundly, or is one of the union that it has become.

    `prove_first` and `prove` check a first state and a step of a component.
    """
    filters = after["filters"]
    if no_loss and canonical(before) == canonical(after):
        return proven("no loss")
    wrong = _promise_too_much(config, filters)
    if wrong is not None:
        return refuted(wrong)
    if before["filters"]:
        if canonical(before["filters"]) != canonical(filters):
            return refuted("the components change")
        return union.step(after, before, after, prove)
    starts = [first_state(each) for each in filters]
    proofs = []
    for place, (each, part) in enumerate(zip(filters, starts, strict=True)):
        proof = prove_first(each, part)
        proofs.append(Proof(proof.verdict, f"component {place}: {proof.reason}"))
    opened = union.step(after, {**after, "parts": starts}, after, prove)
    return all_of([*proofs, opened])


def _promise_too_much(config: Config, filters: list[Config]) -> str | None:
    """Why components do not keep `(eps, delta)` together, if so."""
    if not filters:
        return "a query is admitted by no component"
    total = Fraction(0)
    for place, each in enumerate(filters):
        if each["kind"] not in _FIRST:
            return f"component {place} is of a kind that auto does not have: {each['kind']}"
        if written(each["eps"]) > written(config["eps"]):
            return f"the eps of component {place} is more than that of the filter"
        total += written(each.get("delta", 0.0))
    if total > written(config["delta"]):
        return "the deltas of the components add up to more than that of the filter"
    return None


# -- first states -------------------------------------------------------------------------------


def first_state(config: Config) -> State:
    """The first state of a component: at least what the library starts with."""
    return {"kind": config["kind"], "of": fingerprint(config), **_FIRST[config["kind"]](config)}


def _pure(config: Config) -> dict[str, Any]:
    return {"left": [str(written(config["eps"]))]}


def _target_residue(config: Config) -> dict[str, Any]:
    eps, delta = written(config["eps"]), written(config["delta"])
    reserve, slack = (written(config[name]) for name in ("reserve", "slack"))
    v = _largest_mu(eps, delta * (1 - reserve - slack)) ** 2
    orders = target.kappas(config) if reserve and v else ()
    kept = []
    for k in orders:
        with bits(_BITS):
            share = ball(delta * reserve / len(orders))
            most = share * ball(k * eps - k * (k + 1) * v / 2).exp()
            kept.append(str(rational(arb((most * (1 - arb(2) ** -_DIGITS)).lower()))))
    return {"left": str(v), "reached": "0", "reserves": kept, "slack": str(delta * slack)}


def _renyi_commit(config: Config) -> dict[str, Any]:
    rho = _largest_rho(*(written(config[name]) for name in ("alpha", "eps", "delta")))
    return {"left": str(rho), "committed": False, "to": None, "inner": None}


def _largest_mu(eps: Fraction, delta: Fraction) -> Fraction:
    """A `mu` with `h_{G_mu}(e^eps) <= delta`, the largest but for its last binary digits."""
    with bits(_BITS):
        at, most = ball(eps), ball(delta)

        def keeps(mu: Fraction) -> bool:
            return bool(gaussian_curve(at, ball(mu)) <= most)

        high = Fraction(1)
        while keeps(high):
            high *= 2
        while high > Fraction(1, 1 << 20) and not keeps(high / 2):
            high /= 2
        low, gap = high / 2, high / 2
        if not keeps(low):
            return Fraction(0)
        for _ in range(_DIGITS):
            gap /= 2
            low = low + gap if keeps(low + gap) else low
    return low


def _largest_rho(alpha: Fraction, eps: Fraction, delta: Fraction) -> Fraction:
    """The `rho` at the order `alpha` that `(eps, delta)` gives, less its last binary digits."""
    with bits(_BITS):
        a = ball(alpha)
        rho = ball(eps) + (ball(delta) * a).log() / (a - 1) - (1 - 1 / a).log()
        least = arb(rho.lower()) * (1 - arb(2) ** -_DIGITS)
        return rational(arb(least.lower())) if least > 0 else Fraction(0)


_FIRST: dict[str, Callable[[Config], dict[str, Any]]] = {
    "pure": _pure,
    "target_residue": _target_residue,
    "renyi_commit": _renyi_commit,
    "plan": plans.first_state,
}
"""What the first state of each kind of component holds beside its kind and fingerprint."""
