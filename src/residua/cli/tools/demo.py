"""`residua demo`: a ledger, several filters and an adaptive analyst in a minute."""

import random
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from residua.cli import output
from residua.cli.command import Result, command
from residua.errors import ArgumentError, ResiduaError

if TYPE_CHECKING:
    from residua.filters.base import Filter
    from residua.ledger.api.ledger import Ledger
    from residua.ledger.domain.receipts import Receipt


LEDGER_SUFFIXES = ("", ".anchor", "-wal", "-shm", "-journal")
"""Of the files of one ledger."""


def data_of(name: str) -> str:
    """The label of the data of one of the demonstration's budgets."""
    return f"visits, for {name}"


def demo_path(out: Path, filters: Mapping[str, "Filter"]) -> tuple[Path, list[Path]]:
    """The path in `out` for a new ledger, and the files that were in the way.

    The names are demo.db, demo-2.db and so on. The first is taken that is free or has a ledger
    whose budgets are exactly those of a demonstration, with these filters; that one is deleted.
    """
    if out.exists() and not out.is_dir():
        raise ArgumentError(f"out must be a directory, got {str(out)!r}, which is a file")
    kept: list[Path] = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for number in count(1):
            path = out / ("demo.db" if number == 1 else f"demo-{number}.db")
            files = [path.with_name(path.name + end) for end in LEDGER_SUFFIXES]
            there = [file for file in files if file.exists() or file.is_symlink()]
            if not there or _is_demonstration(path, filters):
                break
            kept.append(there[0])
        for old in there:
            old.unlink(missing_ok=True)
        path.touch()
        path.unlink()
    except OSError as error:
        raise ArgumentError(
            f"out must be a writable directory, got {str(out)!r} ({error})"
        ) from None
    return path, kept


def _is_demonstration(path: Path, filters: Mapping[str, "Filter"]) -> bool:
    """Whether a file is a ledger with these budgets and no others; read only."""
    from residua.ledger.api.opening import open_ledger

    if not path.is_file() or path.stat().st_size == 0:
        return False
    try:
        with open_ledger(path, read_only=True) as ledger:
            found = {one.name: (one.filter.to_dict(), one.data) for one in ledger.budgets()}
    except ResiduaError:
        return False
    return found == {name: (each.to_dict(), data_of(name)) for name, each in filters.items()}


app = typer.Typer(add_completion=False, rich_markup_mode=None)

EPS, DELTA = 1.0, 1e-6
"""What every filter promises."""
COUNTS = {"north": 12250, "east": 9850, "south": 11700, "west": 12400}
"""The secret data: visits by region."""
SCALE = 40.0
"""Of the Laplace noise of a rough count."""
SERVED = Path("out/demo.db")
"""The ledger that `make serve` opens."""


class Run(NamedTuple):
    """What one filter let the analyst do."""

    name: str
    filter: "Filter"
    admitted: int
    weeks: int
    refusal: str
    left: str


@command(app)
def demo(out: Path = Path("out"), seed: int = 7, as_json: bool = False) -> Result:
    """Run an adaptive analyst against several filters.

    Every week the analyst counts visits roughly, then again with less noise where the answers are
    close, until the budget refuses. This runs once for each filter; all filters make the same
    promise. The spends go through one ledger, which is independently verified at the end. Then the
    natural filter ("compose what was spent and compare") is shown to overspend.

    Write the ledger to demo.db, replacing an earlier demonstration. If another file has this name,
    keep it and write demo-2.db.

    Options:
      out: Write the ledger and the picture to this directory.
      seed: Random seed for the noise.

    Example:
      residua demo --out out
      residua demo --seed 8 --json
    """
    from residua.adversary.attack import natural_cost
    from residua.adversary.unsound import APPROXIMATE_BUDGET, GAMBLE, STEADY
    from residua.figures.counterexamples import natural_filter_fails
    from residua.ledger.api.opening import open_ledger

    filters = _filters()
    path, kept = demo_path(out, filters)
    steps = len(filters) + 3
    with (
        output.progress("asking", delay=0.2, plain=not as_json) as show,
        open_ledger(path) as ledger,
    ):
        runs = []
        for place, (name, filter) in enumerate(filters.items()):
            show(f"asking, until the {name} filter refuses", place, steps)
            runs.append(_run_analyst(ledger, name, filter, seed))
        show("verifying the ledger", steps - 3, steps)
        report = ledger.verify() if find_spec("flint") else None
        show("breaking the natural filter", steps - 2, steps)
        # Two kinds of approximate-DP queries, and a budget that either way just fits.
        caught = natural_cost([GAMBLE, STEADY], APPROXIMATE_BUDGET, 2)
        show("drawing", steps - 1, steps)
        drawn = output.save_picture(lambda: natural_filter_fails().draw(), out, "natural.png")
    eps = 1.395  # Where the promise is broken.
    promised, reached = APPROXIMATE_BUDGET.delta(eps), caught.pld.delta_bounds(eps)

    def words() -> None:
        output.print_table(
            f"the same analyst, the same promise ({EPS:g}, {DELTA:g})-DP, kept by",
            ("filter", "admitted", "whole weeks", "left"),
            [(run.name, str(run.admitted), str(run.weeks), run.left) for run in runs],
        )
        print(f"{runs[-1].name} answered at the end:\n  {runs[-1].refusal}")
        print(
            "\nthe natural filter composes what was spent and compares; two kinds of query are"
            f" enough\nto break it: delta {promised:.3f} is promised at eps = {eps:.4g}, and"
            f" this analyst reaches {output.below(float(reached.lo), 3)}\n"
        )
        print(caught.strategy)
        print(f"\nledger: {path}{_beside(kept)}")
        print("verified: " + _words(report))
        print(f"picture: {drawn.words}")
        print(f"open it in a browser: {_serving(path)}")

    shown = {
        "eps": EPS,
        "delta": DELTA,
        "filters": [{**run._asdict(), "filter": run.filter.to_dict()} for run in runs],
        "natural": {
            "eps": eps,
            "promised_delta": promised,
            "reached_delta_bounds": output.bounds(reached),
            "strategy": str(caught.strategy),
        },
        "ledger": str(path),
        "verified": report
        and {"ok": report.ok, "proven": report.proven, "undecided": report.undecided},
        "pictures": [drawn.words],
    }
    return Result(shown, words)


def _filters() -> dict[str, "Filter"]:
    """Filters that promise the same."""
    from residua.filters.additive.basic import BasicFilter
    from residua.filters.additive.zcdp import ApproximateZcdpFilter
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


def _run_analyst(ledger: "Ledger", name: str, filter: "Filter", seed: int) -> Run:
    """Let the analyst query a budget until it refuses."""
    ledger.create_budget(name, filter, data=data_of(name))
    noise = random.Random(seed)
    admitted = weeks = 0
    refusal = ""

    def ask(region: str, scale: float) -> float | None:
        nonlocal admitted, refusal
        from residua.mechanisms.noise import Laplace

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


def _serving(path: Path) -> str:
    """How to look at a ledger; make knows one of them."""
    shown = f"residua serve --store {path} --dev"
    return f"make serve, or {shown}" if path == SERVED else shown


def _beside(kept: list[Path]) -> str:
    """Why the ledger has another name."""
    if not kept:
        return ""
    return f" ({', '.join(map(str, kept))} kept: not from a demonstration)"


def _words(report: Any) -> str:
    if report is None:
        return "no, that needs python-flint"
    if report.ok:
        return f"every step is proven ({report.proven}), by code that shares no numerics with it"
    return f"{report.proven} proven, {report.refuted} refuted, {report.undecided} undecided"
