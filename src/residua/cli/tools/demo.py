"""`residua demo`: the whole office in a minute: a ledger, several filters, an adaptive analyst."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from residua.cli import output, pictures
from residua.cli.progress import patience
from residua.cli.tools.demo_path import data_of, room

if TYPE_CHECKING:
    from residua.adversary.natural.cost import NaturalCost
    from residua.filters.base import Filter
    from residua.ledger.api.ledger import Ledger
    from residua.ledger.domain.receipts import Receipt

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EPS, DELTA = 1.0, 1e-6
COUNTS = {"north": 12250, "east": 9850, "south": 11700, "west": 12400}
"""The secret data: visits by region."""
SCALE = 40.0
MADE = Path("out/demo.db")
"""What `make serve` opens."""


class Run(NamedTuple):
    """What one filter let the analyst do."""

    name: str
    filter: "Filter"
    admitted: int
    weeks: int
    refusal: str
    left: str


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the ledger and the pictures go.")] = Path("out"),
    seed: Annotated[int, typer.Option(help="Of the noise.")] = 7,
    as_json: output.AsJson = False,
) -> None:
    """An adaptive analyst, several filters, one ledger.

    Every week the analyst counts visits roughly, then again with less noise where it looks
    promising, until the budget refuses; once for each filter, all of which promise the same. The
    spends go through a ledger in one file, which is verified at the end by arithmetic of its own.
    Beside it, the natural filter ("compose what was spent and compare") is caught overspending.
    The ledger is demo.db, in place of an earlier demonstration's; where that file is anything else,
    it is left alone and the ledger is demo-2.db.

    \b
    Example:
      residua demo --out out
      residua demo --seed 8 --json
    """
    from residua.ledger.api.opening import open_ledger

    filters = _filters()
    path, kept = room(out, filters)
    steps = len(filters) + 3
    with (
        patience("asking", delay=0.2, plain=not as_json) as tell,
        open_ledger(path) as ledger,
    ):
        runs = []
        for place, (name, filter) in enumerate(filters.items()):
            tell(f"asking, until the {name} filter refuses", place, steps)
            runs.append(_asked(ledger, name, filter, seed))
        tell("verifying the ledger", steps - 3, steps)
        report = _verified(ledger)
        tell("breaking the natural filter", steps - 2, steps)
        caught = _caught()
        tell("drawing", steps - 1, steps)
        drawn = _drawn(out)
    if as_json:
        output.print_json(_plain(runs, caught, report, path, drawn))
        return
    output.print_table(
        f"the same analyst, the same promise ({EPS:g}, {DELTA:g})-DP, kept by",
        ("filter", "admitted", "whole weeks", "left"),
        [(run.name, str(run.admitted), str(run.weeks), run.left) for run in runs],
    )
    last = runs[-1]
    print(f"{last.name} said at the end:\n  {last.refusal}")
    promise, real = caught.budget.delta(caught.eps), caught.cost.pld.delta_bounds(caught.eps).lo
    print(
        "\nthe natural filter composes what was spent and compares; two kinds of query are enough"
        f"\nto break it: delta {promise:.3f} is promised at eps = {caught.eps:.4g}, and"
        f" this analyst reaches {output.below(float(real), 3)}\n"
    )
    print(caught.cost.strategy)
    print(f"\nledger: {path}{_beside(kept)}")
    print("verified: " + (_words(report) if report is not None else "no, that needs python-flint"))
    for each in drawn:
        print(f"picture: {each}")
    print(f"open it in a browser: {_serving(path)}")


def _filters() -> dict[str, "Filter"]:
    """Filters that promise the same."""
    from residua.filters.additive.approximate_zcdp import ApproximateZcdpFilter
    from residua.filters.additive.basic import BasicFilter
    from residua.filters.potential.renyi_commit import RenyiCommitFilter
    from residua.filters.residue.gdp_residue import GdpResidueFilter
    from residua.filters.union.auto import AutoFilter
    from residua.planning.candidates import gaussian_budget

    return {
        "basic": BasicFilter(EPS, DELTA),
        "zCDP": ApproximateZcdpFilter(EPS, DELTA),
        "Rényi": RenyiCommitFilter(EPS, DELTA),
        "GDP residue": GdpResidueFilter(gaussian_budget(EPS, DELTA)),
        "automatic": AutoFilter(EPS, DELTA),
    }


def _asked(ledger: "Ledger", name: str, filter: "Filter", seed: int) -> Run:
    """Let the analyst loose on a budget."""
    ledger.create_budget(name, filter, data=data_of(name))
    noise = random.Random(seed)
    admitted = weeks = 0
    refusal = ""

    def ask(region: str, scale: float) -> float | None:
        nonlocal admitted, refusal
        from residua.mechanisms.noise.laplace import Laplace

        receipt: Receipt = ledger.spend(name, Laplace(scale=scale))
        if not receipt.admitted:
            refusal = receipt.reason
            return None
        admitted += 1
        return COUNTS[region] + scale * (noise.expovariate(1.0) - noise.expovariate(1.0))

    for _ in _weeks(ask):
        weeks += 1
    left = ledger.budget(name).remaining_words
    return Run(name, filter, admitted, weeks, refusal, left)


def _weeks(ask: Callable[[str, float], float | None]) -> Iterator[None]:
    """Rough counts of every region, then of the two that lead, with less noise while it is close.

    What is asked, and what it costs, depends on the answers. One item a whole week; it ends with
    the first refusal.
    """
    while True:
        seen: dict[str, float] = {}
        scale, regions = SCALE, list(COUNTS)
        while regions:
            for region in regions:
                answer = ask(region, scale)
                if answer is None:
                    return
                seen[region] = answer
            first, second = sorted(seen, key=seen.__getitem__)[:-3:-1]
            close = seen[first] - seen[second] < 3.0 * scale and scale > SCALE / 4
            scale, regions = scale / 2, [first, second] if close else []
        yield


class Caught(NamedTuple):
    """The natural filter, and what it cost."""

    budget: Any
    eps: float
    cost: "NaturalCost"


def _caught() -> Caught:
    """Two kinds of approximate-DP queries, and a budget that either way just fits."""
    from residua.adversary.natural.cost import natural_cost
    from residua.pld.constructors import approximate_dp

    budget = approximate_dp(1.395, 0.509)
    cost = natural_cost([approximate_dp(0.0847, 0.478), approximate_dp(1.404, 0.0208)], budget, 2)
    return Caught(budget, 1.395, cost)


def _verified(ledger: "Ledger") -> Any:
    try:
        import flint  # noqa: F401
    except ModuleNotFoundError:
        return None
    return ledger.verify()


def _serving(path: Path) -> str:
    """How to look at a ledger; make knows one of them."""
    shown = f"residua serve --store {path} --dev"
    return f"make serve, or {shown}" if path == MADE else shown


def _beside(kept: list[Path]) -> str:
    """Why the ledger has another name."""
    if not kept:
        return ""
    return f" ({', '.join(map(str, kept))} left alone: no demonstration made it)"


def _words(report: Any) -> str:
    if report.ok:
        return f"every step is proven ({report.proven}), by code that shares no numerics with it"
    return f"{report.proven} proven, {report.refuted} refuted, {report.undecided} undecided"


def _drawn(out: Path) -> list[str]:
    """The pictures, or why there are none."""
    from residua.figures.counterexamples import natural_filter_fails

    picture, trouble = pictures.save(lambda: natural_filter_fails().draw(), out / "natural.png")
    return [trouble if picture is None else str(picture)]


def _plain(
    runs: list[Run], caught: Caught, report: Any, path: Path, drawn: list[str]
) -> dict[str, Any]:
    from residua.cli.output import bounds

    return {
        "eps": EPS,
        "delta": DELTA,
        "filters": [
            {
                "name": run.name,
                "filter": run.filter.to_dict(),
                "admitted": run.admitted,
                "weeks": run.weeks,
                "refusal": run.refusal,
                "left": run.left,
            }
            for run in runs
        ],
        "natural": {
            "eps": caught.eps,
            "promised_delta": caught.budget.delta(caught.eps),
            "reached_delta_bounds": bounds(caught.cost.pld.delta_bounds(caught.eps)),
            "strategy": str(caught.cost.strategy),
        },
        "ledger": str(path),
        "verified": None
        if report is None
        else {"ok": report.ok, "proven": report.proven, "undecided": report.undecided},
        "pictures": drawn,
    }
