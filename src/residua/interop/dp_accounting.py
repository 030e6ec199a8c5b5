"""dp_accounting's events as mechanisms, and its accountant on our core.

An event says what was run; which loss that is depends on the neighbouring relation, so the
mechanism is made for one relation and must be asked for under it. A Gaussian or Laplace event says
that each record contributes a value of norm at most 1: adding, removing or blanking one record
moves the sum by 1, exchanging one for another by 2. (dp_accounting's PLD accountant reads
Gaussians so, its Rényi accountant does not double.)

Where a parameter is not a float here it is rounded to the side that loses more: several Gaussians
on one sample are one with `sigma = (Σ σ_i^-2)^-1/2`, rounded down; discrete Laplace noise of
parameter `a` has scale `1/a`, rounded down. (With `r = e^-a` noise of a larger `r2` is noise of a
smaller `r1` and more: the ratio of characteristic functions is, up to a factor, `r1/r2` plus
`(1 - r1 r2)(1 - r1/r2)` times that of `r2`.)

A Poisson sample that is cut to a largest size, at random, has beside the same sample of the others
at most one record more, or one in place of another: with one record more or less the sum moves by 2
at most when that record is sampled, and not at all otherwise. Given the others' sample that is a
Poisson sampled Gaussian of sensitivity 2, and mixing over it loses no more (joint convexity). Where
a record is exchanged or blanked, another is displaced on both sides: no pair of this form.

What has no proven loss is refused by name.

**The accountant interface on our core.** Composition is exact, per direction of the neighbouring
relation, and every answer is an upper bound that is proven: nothing is discretised, and nothing is
truncated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import dp_accounting
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting import PrivacyAccountant as Interface

from residua import checks
from residua.bounds import float_down
from residua.errors import UnsupportedError
from residua.interop.repeat_and_select import repeat_and_select
from residua.mechanisms import relations
from residua.mechanisms.black_boxes import ApproximateDp, FromTradeoff, PureDp, Zcdp
from residua.mechanisms.composition import Composed, SelfComposed
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.noise import DiscreteLaplace, Gaussian, Laplace, MixtureOfGaussians
from residua.mechanisms.relations import ADD_REMOVE, REPLACE_ONE, ZERO_OUT, directions
from residua.mechanisms.sampled import PoissonSampled, SampledWithoutReplacement, SubsampledGaussian
from residua.mechanisms.selection import RandomizedResponse
from residua.pld.pld import Pld
from residua.pld.running_composition import RunningComposition

_RELATIONS = {
    "ADD_OR_REMOVE_ONE": ADD_REMOVE,
    "REPLACE_ONE": REPLACE_ONE,
    "REPLACE_SPECIAL": ZERO_OUT,
}
_NOISE = ("GaussianDpEvent", "LaplaceDpEvent", "DiscreteLaplaceDpEvent")


def from_dp_event(event: Any, relation: Any = ADD_REMOVE) -> Mechanism:
    """The mechanism that an event describes, for one neighbouring relation.

    Args:
        event: a `DpEvent` of dp_accounting.
        relation: add-remove, replace-one or zero-out, or dp_accounting's own
            `NeighboringRelation`.

    Returns:
        A mechanism whose loss under that relation dominates that of the event; ask for it under the
        same one: `filter.spend(mechanism, relation=relation)`.

    Raises:
        UnsupportedError: no loss is proven; the message names the event.
    """
    checks.instance("event", event, dp_accounting.DpEvent, "a DpEvent")
    relation = relation_of(relation)
    try:
        return _translate(event, relation)
    except RecursionError:
        why = f"{type(event).__name__} is nested too deeply"
        raise UnsupportedError(
            f"event must be one with a proven loss: {why}", type(event)
        ) from None


def relation_of(relation: Any) -> str:
    """Our name of a neighbouring relation."""
    name = getattr(relation, "name", None)
    if isinstance(relation, dp_accounting.NeighboringRelation):
        if name not in _RELATIONS:
            raise UnsupportedError(f"neighbouring relation {name} is not known here", relation)
        return _RELATIONS[name]
    return relations.relation(relation)


def _reveals_everything(mechanism: Mechanism) -> bool:
    """Whether a mechanism reveals everything, or some part of it does."""
    return mechanism == _EVERYTHING or any(map(_reveals_everything, mechanism.parts))


_NOTHING = PureDp(0.0)
_EVERYTHING = ApproximateDp(0.0, 1.0)


def _translate(event: Any, relation: str) -> Mechanism:
    name = type(event).__name__
    # A class of another library with the same name is not known.
    if name not in _TRANSLATIONS or type(event) is not getattr(dp_event, name, None):
        raise _refusal(event, _REFUSED.get(name, "this kind of event is not known here"))
    return _TRANSLATIONS[name](event, relation)


def _refusal(event: Any, reason: str) -> UnsupportedError:
    return UnsupportedError(f"event must be one with a proven loss, got {event!r}: {reason}", event)


def _only(event: Any, relation: str, known: Sequence[str], why: str) -> None:
    if relation not in known:
        raise _refusal(event, f"{why}, got {relation}")


# -- noise ------------------------------------------------------------------------------------


def _distance(relation: str) -> int:
    return 2 if relation == REPLACE_ONE else 1


def _gaussian(event: Any, relation: str) -> Mechanism:
    sigma = checks.non_negative("noise_multiplier", event.noise_multiplier)
    return Gaussian(sigma=sigma, sensitivity=float(_distance(relation))) if sigma else _EVERYTHING


def _laplace(event: Any, relation: str) -> Mechanism:
    scale = checks.non_negative("noise_multiplier", event.noise_multiplier)
    return Laplace(scale, float(_distance(relation))) if scale else _EVERYTHING


def _discrete_laplace(event: Any, relation: str) -> Mechanism:
    parameter = checks.non_negative("noise_parameter", event.noise_parameter)
    sensitivity = checks.count("sensitivity", event.sensitivity) * _distance(relation)
    if sensitivity == 0:
        return _NOTHING
    # Parameter 0 would be infinite noise; dp_accounting counts it as none.
    if parameter == 0.0 or 1 / Fraction(parameter) > Fraction(10) ** 300:
        return _EVERYTHING
    return DiscreteLaplace(float_down(1 / Fraction(parameter)), sensitivity)


def _mixture(event: Any, relation: str) -> Mechanism:
    why = "a mixture of Gaussians has a pair under add-remove and zero-out only"
    _only(event, relation, (ADD_REMOVE, ZERO_OUT), why)
    sigma = checks.non_negative("standard_deviation", event.standard_deviation)
    sensitivities = checks.numbers("sensitivities", list(event.sensitivities))
    probabilities = checks.numbers("sampling_probs", list(event.sampling_probs))
    if not any(sensitivities):
        return _NOTHING
    return MixtureOfGaussians(sigma, sensitivities, probabilities) if sigma else _EVERYTHING


def _randomized_response(event: Any, relation: str) -> Mechanism:
    why = "randomized response answers for one record: its relation is replace-one or zero-out"
    _only(event, relation, (REPLACE_ONE, ZERO_OUT), why)
    noise = checks.probability("noise_parameter", event.noise_parameter)
    k = checks.count("num_buckets", event.num_buckets)
    checks.require(k >= 1, "num_buckets", "at least 1", k)
    if k == 1 or noise == 1.0:
        return _NOTHING
    if noise == 0.0:
        return _EVERYTHING
    if relation == REPLACE_ONE:
        return RandomizedResponse(num_buckets=k, noise_parameter=noise)
    # The special record reports a bucket at random: the truth, with mass 1 - noise + noise/k
    # against 1/k, is the one vertex of the testing region.
    missed, seen = Fraction(noise) * (k - 1) / k, Fraction(1, k)
    return FromTradeoff(
        (0.0, float_down(missed), 1.0), (1.0, float_down(seen), 0.0), relation=relation
    )


def _around(inner: Mechanism, make: Callable[[Mechanism], Mechanism]) -> Mechanism:
    """What is made of a mechanism; nothing and everything stay what they are."""
    return inner if inner in (_NOTHING, _EVERYTHING) else make(inner)


# -- composition ------------------------------------------------------------------------------


def _self_composed(event: Any, relation: str) -> Mechanism:
    count = checks.count("count", event.count)
    inner = _translate(event.event, relation)
    if count == 0:
        return _NOTHING
    return inner if count == 1 else _around(inner, lambda one: SelfComposed(one, count))


def _composed(event: Any, relation: str) -> Mechanism:
    checks.instance("events", event.events, list | tuple, "a list")
    every = [_translate(one, relation) for one in event.events]
    parts = tuple(one for one in every if one != _NOTHING)
    if not parts:
        return _NOTHING
    if _EVERYTHING in parts:
        return _EVERYTHING
    return parts[0] if len(parts) == 1 else Composed(parts)


def _tree(event: Any, relation: str) -> Mechanism:
    why = "a tree of one epoch is analysed for records that are blanked (zero-out)"
    _only(event, relation, (ZERO_OUT,), why)
    sigma = checks.non_negative("noise_multiplier", event.noise_multiplier)
    given = event.step_counts
    steps = [given] if isinstance(given, int) else list(given)
    counts = [checks.count("step_counts", one) for one in steps]
    checks.require(max(counts, default=0) > 0, "step_counts", "positive", given)
    # Each record is in one leaf, and so in as many nodes as its tree is deep.
    return SelfComposed(Gaussian(sigma=sigma), max(counts).bit_length()) if sigma else _EVERYTHING


def _repeat_and_select(event: Any, relation: str) -> Mechanism:
    inner = _translate(event.event, relation)
    if _reveals_everything(inner):
        return _EVERYTHING
    return _around(inner, lambda one: repeat_and_select(one, relation, event.mean, event.shape))


# -- sampling ---------------------------------------------------------------------------------


def _poisson_sampled(event: Any, relation: str) -> Mechanism:
    rate = checks.probability("sampling_probability", event.sampling_probability)
    # The sampled mechanism knows itself what an exchange of two records does to the sum.
    inner = _sampled_noise(event.event, ADD_REMOVE if relation == REPLACE_ONE else relation)
    if rate == 0.0:
        return _NOTHING
    if isinstance(inner, Gaussian):
        return SubsampledGaussian(inner.sigma, rate)
    return _around(inner, lambda noise: PoissonSampled(noise, rate))


def _truncated(event: Any, relation: str) -> Mechanism:
    sigma = checks.non_negative("noise_multiplier", event.noise_multiplier)
    rate = checks.probability("sampling_probability", event.sampling_probability)
    size = checks.count("dataset_size", event.dataset_size)
    most = checks.count("truncated_batch_size", event.truncated_batch_size)
    # Without records there is still a neighbour with one.
    if rate == 0.0 or most == 0:
        return _NOTHING
    if most <= size:
        why = "a truncated sample has a pair under add-remove only"
        _only(event, relation, (ADD_REMOVE,), why)
    if sigma == 0.0:
        return _EVERYTHING
    return SubsampledGaussian(sigma, rate, 2.0 if most <= size else 1.0)


def _sampled_without_replacement(event: Any, relation: str) -> Mechanism:
    why = "a sample of fixed size has public sizes: its relation is replace-one"
    _only(event, relation, (REPLACE_ONE,), why)
    source = checks.count("source_dataset_size", event.source_dataset_size)
    size = checks.count("sample_size", event.sample_size)
    inner = _sampled_noise(event.event, relation)
    if size == 0:
        return _NOTHING
    return _around(inner, lambda noise: SampledWithoutReplacement(noise, source, size))


def _sampled_noise(event: Any, relation: str) -> Mechanism:
    """What is run on a sample: noise, or a composition of noise."""
    bad = _not_noise(event)
    if bad is not None:
        raise _refusal(bad, f"on a sample only {', '.join(_NOISE)} and compositions of them run")
    inverse = _inverse_variance(event)
    if inverse is None:
        return _translate(event, relation)
    if inverse == 0:
        return _NOTHING
    return Gaussian(sigma=_noise_of(inverse), sensitivity=float(_distance(relation)))


def _not_noise(event: Any) -> Any:
    """The first event in a composition that is not noise."""
    name = type(event).__name__
    if name == "SelfComposedDpEvent":
        return _not_noise(event.event)
    if name == "ComposedDpEvent":
        found = (_not_noise(one) for one in event.events)
        return next((one for one in found if one is not None), None)
    return None if name in (*_NOISE, "NoOpDpEvent", "NonPrivateDpEvent") else event


def _inverse_variance(event: Any) -> Fraction | None:
    """`Σ σ^-2` of a composition of Gaussians; None for anything else, or without noise."""
    name = type(event).__name__
    if name == "GaussianDpEvent":
        sigma = checks.non_negative("noise_multiplier", event.noise_multiplier)
        return 1 / Fraction(sigma) ** 2 if sigma else None
    if name == "SelfComposedDpEvent":
        inner = _inverse_variance(event.event)
        return None if inner is None else checks.count("count", event.count) * inner
    if name == "ComposedDpEvent":
        parts = [_inverse_variance(one) for one in event.events]
        known = [part for part in parts if part is not None]
        return sum(known, Fraction(0)) if len(known) == len(parts) else None
    return Fraction(0) if name == "NoOpDpEvent" else None


def _noise_of(inverse: Fraction) -> float:
    """A float `sigma` with `sigma^-2 >= inverse`, the largest or next to it."""
    sigma = math.sqrt(1 / inverse)
    while Fraction(sigma) ** 2 * inverse > 1:
        sigma = math.nextafter(sigma, 0.0)
    return sigma


_TRANSLATIONS: dict[str, Callable[[Any, str], Mechanism]] = {
    "NoOpDpEvent": lambda _, __: _NOTHING,
    "NonPrivateDpEvent": lambda _, __: _EVERYTHING,
    "GaussianDpEvent": _gaussian,
    "LaplaceDpEvent": _laplace,
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "MixtureOfGaussiansDpEvent": _mixture,
    "RandomizedResponseDpEvent": _randomized_response,
    "ZCDpEvent": lambda e, relation: Zcdp(e.rho, e.xi, relation=relation),
    "EpsilonDeltaDpEvent": lambda e, relation: ApproximateDp(e.epsilon, e.delta, relation=relation),
    "SelfComposedDpEvent": _self_composed,
    "ComposedDpEvent": _composed,
    "PoissonSampledDpEvent": _poisson_sampled,
    "SampledWithoutReplacementDpEvent": _sampled_without_replacement,
    "TruncatedSubsampledGaussianDpEvent": _truncated,
    "SingleEpochTreeAggregationDpEvent": _tree,
    "RepeatAndSelectDpEvent": _repeat_and_select,
}

_REFUSED = {
    "UnsupportedDpEvent": "the event itself has no description",
    "SampledWithReplacementDpEvent": "a record may be in a sample several times, "
    "and no dominating pair for that is proven here",
}


class PrivacyAccountant(Interface):  # type: ignore[misc]
    """Composes events and answers with proven upper bounds, for any neighbouring relation."""

    def __init__(
        self, neighboring_relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE
    ):
        super().__init__(neighboring_relation)
        self._relation = relation_of(neighboring_relation)
        self._losses = {side: RunningComposition() for side in directions(self._relation)}
        self._everything = False

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        try:
            mechanism = from_dp_event(event, self._relation)
        except UnsupportedError as error:
            return self.CompositionErrorDetails(
                invalid_event=error.culprit, error_message=str(error)
            )
        if do_compose:
            checks.require(count > 0, "count", "positive", count)
            self._everything |= _reveals_everything(mechanism)
            for direction, loss in mechanism.plds(self._relation).items():
                self._losses[direction].compose(count * loss)
        return None

    @property
    def plds(self) -> dict[str, Pld]:
        """The composed loss of each direction."""
        return {direction: loss.pld for direction, loss in self._losses.items()}

    def get_epsilon(self, target_delta: float) -> float:
        """The least `eps` at `target_delta`, in the worst direction, from above."""
        delta = checks.probability("target_delta", target_delta)
        # By their convention nothing makes up for an event without privacy, not even delta = 1.
        if self._everything:
            return math.inf
        return max(loss.epsilon(delta) for loss in self._losses.values())

    def get_delta(self, target_epsilon: float) -> float:
        """The least `delta` at `target_epsilon`, in the worst direction, from above."""
        eps = checks.satisfying("target_epsilon", target_epsilon, lambda e: e >= 0, "non-negative")
        if self._everything:
            return 1.0
        if eps == math.inf:
            return max(loss.pld.mass_at_infinity for loss in self._losses.values())
        return max(loss.delta(eps) for loss in self._losses.values())
