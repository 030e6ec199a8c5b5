"""Measurement with one budget per device and week: `python -m examples.attribution`.

Advertisers ask how many of the devices that saw their campaign bought something in the last
weeks. A query touches few devices (the campaign's) and few weeks (its window), and adds Laplace
noise to a sum. Three ways to keep the same promise, `G_mu` for every device in every week:

* one budget for everything: each query charges it, whoever is touched;
* one budget a week: a query charges the weeks of its window;
* one budget per device and week: a query charges the devices that it touches, in those weeks, and
  counts only those that can still pay. An exhausted week of a device counts as empty data; its
  other weeks go on, each charged on its own.

A query of the first two kinds is answered or refused. Of the third all are answered, and the
figure shows how much of the truth each still counts. That share is known to this simulation only:
in a deployment it would be as private as the data.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import residua as rz

Floats = NDArray[np.float64]

WINDOW = 4
GOOD = 0.95
"""A query counts as answered if so much of what it asks about is still counted."""


class Workload:
    """Campaigns of very different sizes, each seen by devices of its own choice."""

    def __init__(self, devices: int, weeks: int, queries: int, seed: int):
        self.rng = np.random.default_rng(seed)
        self.devices, self.weeks, self.queries = devices, weeks, queries
        sizes = devices * 0.1 / np.sqrt(np.arange(1, 41))
        self.campaigns = [self.rng.choice(devices, int(size), replace=False) for size in sizes]

    def query(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The devices and weeks of one query, as rows."""
        now = WINDOW - 1 + number * (self.weeks - WINDOW + 1) // self.queries
        campaign = self.campaigns[self.rng.integers(len(self.campaigns))]
        weeks = np.arange(now - WINDOW + 1, now + 1)
        return np.repeat(campaign, WINDOW), np.tile(weeks, campaign.size)


def shared_budgets(work: Workload, mu: float, noise: rz.Mechanism) -> tuple[int, int]:
    """Queries answered with one budget, and with one a week."""
    whole = rz.GdpResidueFilter(mu=mu)
    weekly = [rz.GdpResidueFilter(mu=mu) for _ in range(work.weeks)]
    answered = [0, 0]
    for number in range(work.queries):
        answered[0] += whole.spend(noise).admitted
        now = WINDOW - 1 + number * (work.weeks - WINDOW + 1) // work.queries
        window = weekly[now - WINDOW + 1 : now + 1]
        if all(budget.check(noise).admitted for budget in window):
            answered[1] += 1
            for budget in window:
                budget.spend(noise)
    return answered[0], answered[1]


def individual_budgets(work: Workload, mu: float, noise: rz.Mechanism, address: str) -> Floats:
    """The share of each query's device-weeks that could still pay."""
    shares = np.empty(work.queries)
    with rz.individual.create(address, filter=rz.GdpResidueFilter(mu=mu), epochs=True) as state:
        for number in range(work.queries):
            devices, weeks = work.query(number)
            losses = pa.table({"subject": devices, "epoch": weeks})
            spent = state.spend(losses, mechanism=noise, spend_id=f"query-{number}")
            shares[number] = spent.active.num_rows / losses.num_rows
    return shares


def figure(shares: Floats, answered: dict[str, int], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, (left, right) = plt.subplots(
        1, 2, figsize=(8.4, 3.6), layout="constrained", width_ratios=(3, 2)
    )
    left.plot(np.arange(1, shares.size + 1), shares, ".", ms=3, color="#1f5f8b")
    left.axvline(answered["one budget"], color="#888888", ls=":", lw=1)
    left.annotate(
        "one budget is spent",
        (answered["one budget"], 0.05),
        xytext=(4, 0),
        textcoords="offset points",
    )
    left.set(xlabel="query", ylabel="share of its data still counted", ylim=(0.0, 1.02))
    left.set_title("One budget per device and week")
    names = list(answered)
    bars = right.barh(names[::-1], [answered[name] for name in names[::-1]], color="#1f5f8b")
    right.bar_label(bars, padding=3)
    right.set_xlim(0, 1.15 * max(answered.values()))
    right.set_title(f"Queries answered of {shares.size}")
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=150)
    plt.close(fig)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.attribution", description=__doc__)
    parser.add_argument("--devices", type=int, default=8_000)
    parser.add_argument("--weeks", type=int, default=10)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--mu", type=float, default=1.0, help="budget of a device in a week")
    parser.add_argument("--scale", type=float, default=5.0, help="of the Laplace noise")
    parser.add_argument("--state", default="memory:", help="where budgets are kept, as in create()")
    parser.add_argument("--out", type=Path, default=Path("out/attribution.png"), help="the figure")
    given = parser.parse_args()
    work = Workload(given.devices, given.weeks, given.queries, 1)
    noise = rz.Laplace(scale=given.scale)
    one, weekly = shared_budgets(work, given.mu, noise)
    shares = individual_budgets(work, given.mu, noise, given.state)
    good = int(np.count_nonzero(shares >= GOOD))
    answered = {"one budget": one, "one a week": weekly, "one per device and week": good}
    for name, count in answered.items():
        print(f"{name}: {count} of {given.queries} queries answered ({count / one:.1f} x)")
    print(
        f"(with devices: those that count {GOOD:.0%} of their data; on average {shares.mean():.1%})"
    )
    figure(shares, answered, given.out)
    print(f"everyone's guarantee in all: mu = {given.mu:g} a week; the figure is {given.out}")


if __name__ == "__main__":
    main()
