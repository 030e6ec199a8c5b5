"""Opacus: our accountant behind its privacy engine, and training that a filter lets run.

A step of DP-SGD as Opacus runs it is Gaussian noise on a Poisson sample of the records, clipped to
norm `max_grad_norm`; neighbours have one record more or less. Importing this module registers the
accountant: `PrivacyEngine(accountant="residuum")`.

An accountant adds up what was run. Where noise, sampling or the number of epochs are chosen as
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

from residuum import checks
from residuum.errors import ArgumentError, ArgumentTypeError, BudgetError, UnsupportedError
from residuum.filters.decision import Decision
from residuum.filters.filter import Filter
from residuum.mechanisms.mechanism import Mechanism
from residuum.mechanisms.relations import ADD_REMOVE
from residuum.mechanisms.self_composed import SelfComposed
from residuum.mechanisms.subsampled_gaussian import SubsampledGaussian
from residuum.pld.constructors import identity

NAME = "residuum"
_OPTIMIZERS = ("DPOptimizer", "DPPerLayerOptimizer", "DPOptimizerFastGradientClipping")
"""Those that add noise of `noise_multiplier` times what one record can contribute."""


def steps_of(noise_multiplier: float, sample_rate: float, steps: int = 1) -> Mechanism:
    """The mechanism of so many steps of DP-SGD with Poisson sampling."""
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

    def get_epsilon(self, delta: float, *args: Any, **kwargs: Any) -> float:
        """The least `eps` at `delta` for all steps so far, in the worse direction, from above."""
        level = checks.probability("delta", delta)
        totals = {"remove": identity(), "add": identity()}
        for sigma, rate, steps in self.history:
            if rate == 0.0:
                continue
            if sigma == 0.0:
                return math.inf
            for direction, loss in steps_of(sigma, rate, steps).plds(ADD_REMOVE).items():
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
    """Make `PrivacyEngine(accountant="residuum")` work; importing this module does it already."""
    register_accountant(NAME, Accountant, force=True)


class BudgetedTraining:
    """Training by epochs, each admitted by a filter before it starts.

    `make_private` first, then

        training = BudgetedTraining(engine, optimizer, data_loader, filter)
        while training.request(noise_multiplier=1.0, sample_rate=0.05).admitted:
            for inputs, targets in training.batches():
                ...

    Noise and sampling may be chosen anew for each epoch, from anything that training has shown and
    anything public; not from raw data, a held-out part of it included. The whole run is within the
    filter's guarantee. A step that was not admitted raises `BudgetError` before it changes the
    model; steps that were admitted and not run are spent.
    """

    def __init__(self, engine: Any, optimizer: Any, data_loader: Any, filter: Filter):
        if not isinstance(filter, Filter):
            raise ArgumentTypeError(f"filter must be a filter, got {checks.shown(filter)}")
        if not isinstance(optimizer, DPOptimizer):
            raise ArgumentTypeError(
                f"optimizer must be the one of make_private, got {checks.shown(optimizer)}"
            )
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
        self.filter = filter
        self.optimizer = optimizer
        self.data_loader = data_loader
        self.accountant = engine.accountant
        self._left = 0
        self._admitted: tuple[float, float] | None = None
        optimizer.attach_step_hook(self._before_step)

    def request(
        self,
        *,
        noise_multiplier: float | None = None,
        sample_rate: float | None = None,
        steps: int | None = None,
    ) -> Decision:
        """Ask the filter for an epoch; if it is admitted, noise and sampling are set for it.

        What is not given stays as it is; without `steps`, as many as see each record once on
        average. What was left of an earlier epoch is given up, not given back.
        """
        sampler = self.data_loader.batch_sampler
        given = self.optimizer.noise_multiplier if noise_multiplier is None else noise_multiplier
        sigma = checks.positive("noise_multiplier", given)
        rate = checks.probability(
            "sample_rate", sampler.sample_rate if sample_rate is None else sample_rate
        )
        checks.require(rate > 0.0, "sample_rate", "in (0, 1]", rate)
        count = int(1.0 / rate) if steps is None else checks.count("steps", steps)
        checks.require(count > 0, "steps", "positive", count)
        self._left = 0
        decision = self.filter.request(steps_of(sigma, rate, count), relation=ADD_REMOVE)
        if decision.admitted:
            self.optimizer.noise_multiplier = sigma
            self.optimizer.expected_batch_size = max(1, int(len(self.data_loader.dataset) * rate))
            sampler.sample_rate, sampler.steps = rate, count
            self.data_loader.sample_rate = rate
            self._left, self._admitted = count, (sigma, rate)
        return decision

    @property
    def steps_left(self) -> int:
        """How many admitted steps have not run yet."""
        return self._left

    def batches(self) -> Iterator[Any]:
        """The batches of the epoch that was admitted last."""
        if self._left == 0:
            raise BudgetError("no epoch is admitted: request one first")
        self.data_loader.batch_sampler.steps = self._left
        yield from self.data_loader

    def _before_step(self, optimizer: Any) -> None:
        """Runs after clipping and noise, before the model changes."""
        rate = float(self.data_loader.batch_sampler.sample_rate)
        if self._left == 0:
            raise BudgetError("a step was not admitted: request another epoch first")
        if optimizer.accumulated_iterations != 1:
            raise ArgumentError(
                "batches must not be accumulated: a record could be in several of them, got "
                f"{optimizer.accumulated_iterations}"
            )
        now = float(optimizer.noise_multiplier), rate
        if now != self._admitted:
            raise BudgetError(
                f"noise and sampling must be as admitted, {self._admitted!r}, got {now!r}"
            )
        self._left -= 1
        self.accountant.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=rate)


register()

__all__ = ["Accountant", "BudgetedTraining", "register", "steps_of"]
