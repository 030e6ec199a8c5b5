"""`python -m benchmarks.utility.menu`: one menu of 25 kinds, with its own prices, on the suite.

Twelve randomized responses, nine Gaussians and four Laplaces of round sizes, those of the steady
workloads among them. What is not listed pays what the table asks.
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

PURE = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7)
GAUSSIAN = (5.0, 7.0, 10.0, 14.0, 20.0, 28.0, 40.0, 57.0, 80.0)
LAPLACE = (2.0, 5.0, 10.0, 20.0)


def menu() -> list[rz.mechanisms.Mechanism]:
    kinds = rz.mechanisms
    return [
        *(kinds.PureDp(eps) for eps in PURE),
        *(kinds.Gaussian(sigma) for sigma in GAUSSIAN),
        *(kinds.Laplace(scale) for scale in LAPLACE),
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
