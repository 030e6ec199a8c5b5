"""`python -m benchmarks.utility.menu`: one menu of 25 kinds, with its own prices, on the suite.

The menu is told nothing of the workloads: twelve randomized responses, nine Gaussians and four
Laplaces of sizes a square root of two (or two) apart. What is not listed pays what the table asks.
"""

from __future__ import annotations

from statistics import mean

import residuum as rz

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


def menu() -> list[rz.mechanisms.Mechanism]:
    kinds = rz.mechanisms
    return [
        *(kinds.PureDp(float(f"{0.0125 * 2 ** (k / 2):.4g}")) for k in range(12)),
        *(kinds.Gaussian(float(f"{80 / 2 ** (k / 2):.4g}")) for k in range(9)),
        *(kinds.Laplace(scale) for scale in (5.0, 10.0, 20.0, 40.0)),
    ]


def main() -> None:
    from residuum.planning.suite import named

    for eps, delta in BUDGETS:
        ratios = []
        for name in WORKLOADS:
            office = rz.MenuFilter(eps, delta, menu())
            found = rz.compare_filters(eps, delta, named(name, eps, delta), [office])
            ratios.append(found.rows[0].ratios()[0] or 0.0)
            print(f"({eps:g}, {delta:g})  {name:14}  {ratios[-1]:.2f}", flush=True)
        print(f"({eps:g}, {delta:g})  mean            {mean(ratios):.3f}", flush=True)


if __name__ == "__main__":
    main()
