"""What a question is charged: the noise that was asked for, by the cheapest sound description.

`eps` gives Laplace noise with that much pure differential privacy. `accuracy` gives the noise with
that 95 % half-width, Laplace or Gaussian, and `scale` noise of that scale. Without any of these a
question costs a twentieth of the largest `eps` that the budget would admit now.

Of several descriptions and kinds of noise the ledger gets the one after which the largest share of
the table's budget is left. The choice depends on the budget and the question alone, which are
public.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from residua import checks
from residua.data.noise import (
    GAUSSIAN,
    KINDS,
    LAPLACE,
    Noise,
    descriptions,
    for_accuracy,
    for_eps,
    of_scale,
    threshold,
)
from residua.data.plans import Plan
from residua.errors import ArgumentError
from residua.filters.balance import share_of
from residua.filters.noise import private_side
from residua.ledger.domain.receipts import Answer
from residua.mechanisms.black_boxes import PureDp
from residua.mechanisms.mechanism import Mechanism
from residua.provable.forms import LARGEST_SIZE as LARGEST_EPS

DEFAULT_SHARE = 0.05
"""The share of the largest `eps` that a question costs where nothing is said."""


@dataclass(frozen=True)
class Wish:
    """How much noise a caller wants."""

    eps: float | None = None
    accuracy: float | None = None
    scale: float | None = None
    noise: str | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("eps", "accuracy", "scale") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ArgumentError(f"give only one of eps, accuracy and scale, got {given}")
        for name in given:
            checks.set_fields(self, **{name: checks.positive(name, getattr(self, name))})
        if self.noise is not None:
            checks.one_of("noise", self.noise, KINDS)
        if self.delta is not None:
            checks.set_fields(self, delta=checks.probability("delta", self.delta))
            checks.require(0.0 < self.delta < 1.0, "delta", "between 0 and 1", self.delta)
        if self.noise == GAUSSIAN and self.accuracy is None and self.scale is None:
            raise ArgumentError("noise='gaussian' needs accuracy or scale: it is not eps-DP")

    @property
    def is_open(self) -> bool:
        """Whether nothing was said, so that any answer will do."""
        return self == Wish(delta=self.delta)

    def to_list(self) -> list[Any]:
        """The same as JSON data."""
        return [self.eps, self.accuracy, self.scale, self.noise, self.delta]


@dataclass(frozen=True)
class Charge:
    """The noise of a plan, the description that is charged for it, and what the ledger says."""

    noise: Sequence[Noise]
    mechanism: Mechanism
    check: Answer
    threshold: int | None = None
    """The noisy number of units at which an unknown group is released."""


def choose(ledger: Any, budget: str, plan: Plan, wish: Wish) -> Charge:
    """The noise for a plan, charged to `budget` as cheaply as it can be proven."""
    home = ledger.budget(plan.question.table.budget)
    best: tuple[tuple[bool, float], Charge] | None = None
    wrong: ArgumentError | None = None
    if plan.question.has_unknown_keys != (wish.delta is not None):
        raise ArgumentError(
            "delta must be given if, and only if, a column without declared keys is grouped by:"
            " it is charged for the groups that appear"
        )
    for noise in _noises(ledger, budget, plan, wish):
        least = None if wish.delta is None else threshold(noise[0], plan.groups, wish.delta)
        for mechanism in descriptions(plan, noise, wish.delta):
            try:
                check = ledger.check(budget, mechanism)
            except ArgumentError as error:  # it has no proof under a filter that is charged
                wrong = wrong or error
                continue
            left = -1.0
            if check.admitted:
                decision = home.filter.decide(home.state, mechanism, relation=home.relation)
                if decision.admitted:
                    left = share_of(home.filter, decision.state, home.relation)
            rank = (check.admitted, left)
            if best is None or rank > best[0]:
                best = rank, Charge(noise, mechanism, check, least)
    if best is None:
        assert wrong is not None
        raise wrong
    return best[1]


def _noises(ledger: Any, budget: str, plan: Plan, wish: Wish) -> Iterator[Sequence[Noise]]:
    kinds = KINDS if wish.noise is None and wish.delta is None else (wish.noise or LAPLACE,)
    if wish.accuracy is not None:
        for kind in kinds:
            yield for_accuracy(plan, wish.accuracy, kind)
    elif wish.scale is not None:
        yield of_scale(plan, wish.scale, wish.noise or LAPLACE)
    else:
        yield for_eps(plan, _default_eps(ledger, budget) if wish.eps is None else wish.eps)


def _default_eps(ledger: Any, budget: str) -> float:
    """A share of the largest `eps` that is admitted now, rounded down to three digits."""
    largest = ledger.check(budget, PureDp(LARGEST_EPS)).largest
    if not isinstance(largest, PureDp) or largest.eps <= 0.0:
        raise ArgumentError(
            f"eps must be given: the budget {budget!r} has nothing left of which to take a share"
        )
    return private_side(DEFAULT_SHARE * largest.eps, 3, False)
