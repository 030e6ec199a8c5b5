"""`python -m benchmarks.utility.menu`: one menu of 25 kinds, with its own prices, on the suite.

The kinds are those of the mixed workload, three sorts of noise in eight sizes, and a large
randomized response; the steady workloads ask for some of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean

import residua as rz
from residua.filters.query import Query

BUDGETS = ((1.0, 1e-6), (3.0, 1e-6), (8.0, 1e-5))
WORKLOADS = (
    "pure 0.05",
    "pure 0.1",
    "pure 0.5",
    "Laplace 10",
    "Gaussian 20",
    "mixed",
    "half planned",
)


def menu() -> list[Query]:
    """Twenty-four kinds in sizes from 0.01 to 0.2, and `R_0.5`."""
    from residua.planning.suite import named

    return [*named("mixed", 1.0, 1e-6).kinds, rz.PureDp(0.5)]


def measured() -> Iterator[tuple[float, float, dict[str, float]]]:
    """For each budget what share of the optimum the menu admits of each workload."""
    from residua.planning.suite import named

    for eps, delta in BUDGETS:
        ratios = {}
        for name in WORKLOADS:
            office = rz.MenuFilter(eps, delta, menu())
            found = rz.compare_filters(eps, delta, named(name, eps, delta), [office])
            ratios[name] = found.rows[0].ratios()[0] or 0.0
        yield eps, delta, ratios


def main() -> None:
    for eps, delta, ratios in measured():
        for name, ratio in ratios.items():
            print(f"({eps:g}, {delta:g})  {name:14}  {ratio:.2f}")
        print(f"({eps:g}, {delta:g})  mean            {mean(ratios.values()):.3f}", flush=True)


if __name__ == "__main__":
    main()
