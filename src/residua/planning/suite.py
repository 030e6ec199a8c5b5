"""The built-in suite of workloads for the yardstick.

Eight plain ones: single kinds of query, sizes drawn at random, a plan that is kept only half-way,
blocks of DP-SGD. Three from practice: a dashboard's weekly report, an analyst exploring, a DP-SGD
run that changes its noise. What is drawn at random is drawn once, from a fixed seed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from random import Random

from residua import checks
from residua.mechanisms.black_boxes.pure_dp import PureDp
from residua.mechanisms.composition.self_composed import SelfComposed
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.noise.gaussian import Gaussian
from residua.mechanisms.noise.laplace import Laplace
from residua.mechanisms.sampled.subsampled_gaussian import SubsampledGaussian
from residua.planning.optimum import optimum
from residua.planning.workload import Run, Workload

_SIZES = (0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1, 0.2)
_DRAWN = 600


def suite(eps: float, delta: float) -> tuple[Workload, ...]:
    """All workloads; one of them depends on what `(eps, delta)` has room for."""
    return tuple(make(eps, delta) for make in _MADE.values())


def named(name: str, eps: float, delta: float) -> Workload:
    """The workload of the suite with this name."""
    return _MADE[checks.one_of("workload", name, tuple(_MADE))](eps, delta)


def names() -> tuple[str, ...]:
    """The names of the suite's workloads."""
    return tuple(_MADE)


def _always(name: str, mechanism: Mechanism) -> Callable[[float, float], Workload]:
    made = Workload(name, (Run(mechanism),), repeat=True)
    return lambda eps, delta: made


@lru_cache(maxsize=1)
def _mixed() -> Workload:
    """Three kinds of noise in eight sizes, at random; one of each was expected."""
    kinds = [
        made
        for size in _SIZES
        for made in (PureDp(size), Laplace(round(1 / size, 3)), Gaussian(sigma=round(1 / size, 3)))
    ]
    draw = Random(7).random
    asked = [Run(kinds[int(draw() * len(kinds))]) for _ in range(_DRAWN)]
    return Workload("mixed", tuple(asked), True, tuple(Run(kind) for kind in kinds))


def _half_planned(eps: float, delta: float) -> Workload:
    """As planned for half of what fits, then queries of twice the size."""
    small = Run(PureDp(0.05))
    half = optimum(eps, delta, Workload("planned", (small,), repeat=True)) // 2
    rest = Run(PureDp(0.1), 10**6)
    asked = (Run(small.query, half), rest) if half else (rest,)
    return Workload("half planned", asked, expected=(small,))


def _weekly_report() -> Workload:
    """Five counts and a histogram a week, and every fourth week a finer count."""
    week = (Run(Laplace(40.0), 5), Run(Gaussian(sigma=40.0)))
    return Workload("weekly report", (*week, *week, *week, *week, Run(Laplace(10.0))), True)


@lru_cache(maxsize=1)
def _explorer() -> Workload:
    """Bursts of similar queries, mostly coarse; the mix was expected, not the order."""
    kinds = (
        Run(Laplace(50.0), 6),
        Run(PureDp(0.02), 4),
        Run(Gaussian(sigma=30.0), 3),
        Run(Laplace(20.0), 3),
        Run(Gaussian(sigma=15.0)),
        Run(PureDp(0.1)),
    )
    bag = [run.query for run in kinds for _ in range(run.times)]
    draw = Random(3).random
    asked: list[Run] = []
    while len(asked) < _DRAWN // 3:
        burst = 2
        while draw() > 0.4:
            burst += 1
        asked.append(Run(bag[int(draw() * len(bag))], burst))
    return Workload("explorer", tuple(asked), True, kinds)


def _block(sigma: float) -> Mechanism:
    """Ten steps of DP-SGD with a hundredth of the data in each batch."""
    return SelfComposed(SubsampledGaussian(sigma, 0.01), 10)


def _training() -> Workload:
    """DP-SGD that moves between four noise levels; a constant one was expected."""
    asked = tuple(Run(_block(sigma), 5) for sigma in (1.3, 1.1, 1.0, 0.9))
    return Workload("DP-SGD, noise changes", asked, True, (Run(_block(1.0)),))


_MADE: dict[str, Callable[[float, float], Workload]] = {
    "pure 0.05": _always("pure 0.05", PureDp(0.05)),
    "pure 0.1": _always("pure 0.1", PureDp(0.1)),
    "pure 0.5": _always("pure 0.5", PureDp(0.5)),
    "Laplace 10": _always("Laplace 10", Laplace(10.0)),
    "Gaussian 20": _always("Gaussian 20", Gaussian(sigma=20.0)),
    "mixed": lambda eps, delta: _mixed(),
    "half planned": _half_planned,
    "DP-SGD": _always("DP-SGD", _block(1.0)),
    "weekly report": lambda eps, delta: _weekly_report(),
    "explorer": lambda eps, delta: _explorer(),
    "DP-SGD, noise changes": lambda eps, delta: _training(),
}
