"""Opacus: our accountant behind its privacy engine, and training that a filter lets run.

A step of DP-SGD as Opacus runs it is Gaussian noise on a sum of gradients over a Poisson sample of
the records, each clipped to norm `max_grad_norm`, and the result divided by `expected_batch_size`.

**The number of records decides the relation.** `make_private` takes the sampling rate and the
divisor from it: at rate 0.1, 200 records are divided by 20 and 199 by 19, so the size of the noise
tells one from the other. Such a step has the loss of a subsampled Gaussian only where neighbours
have equally many records (replace-one), and that is the relation of the accountant. With one
record more or less (add-remove) rate, divisor and number of steps must be public, as
`BudgetedTraining` requires.

Importing this module registers the accountant: `PrivacyEngine(accountant="residua")`. An
accountant adds up what was run. Where noise, sampling or the number of epochs are chosen as
training goes, from what it has shown so far, adding up afterwards promises nothing about a budget;
a filter does. `BudgetedTraining` asks it before each epoch and lets no other step run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from opacus.accountants import IAccountant
from opacus.accountants.registry import register_accountant
from opacus.data_loader import DPDataLoader
from opacus.optimizers import DPOptimizer

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError, BudgetError, UnsupportedError
from residua.filters.base import Filter
from residua.filters.decision import Decision
from residua.mechanisms import relations
from residua.mechanisms.composition import SelfComposed
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.relations import ADD_REMOVE, REPLACE_ONE
from residua.mechanisms.sampled import SubsampledGaussian
from residua.pld.constructors import identity

NAME = "residua"
_OPTIMIZERS = ("DPOptimizer", "DPPerLayerOptimizer", "DPOptimizerFastGradientClipping")
"""Those that add noise of `noise_multiplier` times what one record can contribute."""


def steps_of(noise_multiplier: float, sample_rate: float, steps: int = 1) -> Mechanism:
    """The mechanism of `steps` steps of DP-SGD with Poisson sampling."""
    one = SubsampledGaussian(noise_multiplier, sample_rate)
    return one if steps == 1 else SelfComposed(one, steps)


class Accountant(IAccountant):  # type: ignore[misc]
    """Opacus's accountant interface on our core: proven upper bounds, nothing discretised."""

    def __init__(self) -> None:
        self.history: list[tuple[float, float, int]] = []

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Count one more step."""
        sigma = checks.non_negative("noise_multiplier", noise_multiplier)
        rate = checks.probability("sample_rate", sample_rate)
        if self.history and self.history[-1][:2] == (sigma, rate):
            self.history[-1] = (sigma, rate, self.history[-1][2] + 1)
        else:
            self.history.append((sigma, rate, 1))

    def get_epsilon(self, delta: float, relation: str = REPLACE_ONE) -> float:
        """The least `eps` at `delta` for all steps so far, in the worse direction, from above.

        Under `replace-one`, the number of records is the same on both sides, so it may decide
        sampling rate and divisor as in `make_private`. `add-remove` holds only where it decides
        neither: for steps that `BudgetedTraining` admitted.
        """
        level = checks.probability("delta", delta)
        directions = relations.directions(relations.relation(relation))
        totals = {direction: identity() for direction in directions}
        for sigma, rate, steps in self.history:
            if rate == 0.0:
                continue
            if sigma == 0.0:
                return math.inf
            for direction, loss in steps_of(sigma, rate, steps).plds(relation).items():
                totals[direction] += loss
        return max(float(loss.epsilon(level)) for loss in totals.values())

    def __len__(self) -> int:
        """The number of steps so far."""
        return sum(steps for _, _, steps in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """The name under which it is registered."""
        return NAME


def register() -> None:
    """Make `PrivacyEngine(accountant="residua")` work; importing this module does it already."""
    register_accountant(NAME, Accountant, force=True)


class BudgetedTraining:
    """Training by epochs, each admitted by a filter before it starts.

    `make_private` first, then

        training = BudgetedTraining(engine, optimizer, data_loader, filter)
        epoch = {"noise_multiplier": 1.0, "sample_rate": 0.05, "expected_batch_size": 100}
        while training.spend(**epoch).admitted:
            for inputs, targets in training.batches():
                ...

    These values may be chosen again for each epoch, from anything that training has shown and
    anything public; not from raw data, and not from the number of records. The whole run is within
    the filter's guarantee under add-remove. A step that was not admitted raises `BudgetError`
    before it changes the model; steps that were admitted and not run are spent.
    """

    def __init__(self, engine: Any, optimizer: Any, data_loader: Any, filter: Filter):
        checks.instance("filter", filter, Filter, "a filter")
        checks.instance("optimizer", optimizer, DPOptimizer, "the optimizer of make_private")
        kind = type(optimizer).__name__
        if kind not in _OPTIMIZERS:
            raise UnsupportedError(
                f"optimizer must be one of {', '.join(_OPTIMIZERS)}, got {kind}", optimizer
            )
        if not isinstance(data_loader, DPDataLoader) or data_loader.distributed:
            raise UnsupportedError(
                "data_loader must sample as Poisson does, in one process (make_private with "
                f"poisson_sampling=True), got {type(data_loader).__name__}",
                data_loader,
            )
        if getattr(data_loader.collate_fn, "rand_on_empty", False):
            raise UnsupportedError(
                "data_loader must give an empty batch for an empty sample, got "
                "rand_on_empty=True: the first record would replace a random one",
                data_loader,
            )
        self.filter = filter
        self.optimizer = optimizer
        self.data_loader = data_loader
        self.accountant = engine.accountant
        self._left = 0
        self._admitted: tuple[float, float, float] | None = None
        optimizer.attach_step_hook(self._before_step)

    def spend(
        self,
        *,
        noise_multiplier: float | None = None,
        sample_rate: float | None = None,
        expected_batch_size: float | None = None,
        steps: int | None = None,
    ) -> Decision:
        """Ask the filter for an epoch; if it is admitted, noise and sampling are set for it.

        What `make_private` has set depends on the number of records, which is private, so the
        first three must be given. What was left of an earlier epoch is lost.

        Args:
            noise_multiplier: the noise of each step, in units of `max_grad_norm`.
            sample_rate: with which probability a step takes each record.
            expected_batch_size: by which Opacus divides sums of gradients. A public guess of the
                number of records times the rate will do; it only scales the learning rate.
            steps: how many steps the epoch has, `1 / sample_rate` by default.

        Returns:
            The filter's decision.
        """
        sampler = self.data_loader.batch_sampler
        sigma = checks.positive("noise_multiplier", _public("noise_multiplier", noise_multiplier))
        rate = checks.probability("sample_rate", _public("sample_rate", sample_rate))
        checks.require(rate > 0.0, "sample_rate", "in (0, 1]", rate)
        divisor = checks.positive(
            "expected_batch_size", _public("expected_batch_size", expected_batch_size)
        )
        count = int(1.0 / rate) if steps is None else checks.count("steps", steps)
        checks.require(count > 0, "steps", "positive", count)
        self._left = 0
        decision = self.filter.spend(steps_of(sigma, rate, count), relation=ADD_REMOVE)
        if decision.admitted:
            self.optimizer.noise_multiplier = sigma
            self.optimizer.expected_batch_size = divisor
            sampler.sample_rate, sampler.steps = rate, count
            self.data_loader.sample_rate = rate
            self._left, self._admitted = count, (sigma, rate, divisor)
        return decision

    @property
    def steps_left(self) -> int:
        """How many admitted steps have not run yet."""
        return self._left

    def batches(self) -> Iterator[Any]:
        """The batches of the epoch that was admitted last."""
        if self._left == 0:
            raise BudgetError("no epoch has been admitted; call spend() first")
        self.data_loader.batch_sampler.steps = self._left
        yield from self.data_loader

    def _before_step(self, optimizer: Any) -> None:
        """Runs after clipping and noise, before the model changes."""
        rate = float(self.data_loader.batch_sampler.sample_rate)
        if self._left == 0:
            raise BudgetError("this step was not admitted; call spend() for another epoch first")
        if optimizer.accumulated_iterations != 1:
            raise ArgumentError(
                "batches must not be accumulated: a record could be in several of them, got "
                f"{optimizer.accumulated_iterations}"
            )
        # Adaptive clipping on fast gradients adds this much noise and reports the other.
        noise = float(getattr(optimizer, "_adjusted_noise_multiplier", optimizer.noise_multiplier))
        now = noise, rate, float(optimizer.expected_batch_size)
        if now != self._admitted:
            raise BudgetError(
                "noise, sampling and expected batch size must be as admitted, "
                f"{self._admitted!r}, got {now!r}"
            )
        self._left -= 1
        self.accountant.step(noise_multiplier=noise, sample_rate=rate)


def _public(name: str, value: float | None) -> float:
    """A value that was given; Opacus's own may come from the private number of records."""
    if value is None:
        raise ArgumentTypeError(
            f"{name} must be given, got None: make_private may take it from the number of records, "
            "and one record more or less would show"
        )
    return value


register()
