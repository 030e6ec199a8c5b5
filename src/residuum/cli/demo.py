"""`residuum demo`: a day of queries, their proven cost, and the curves in a picture."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from residuum.cli import output, pictures, queries

if TYPE_CHECKING:
    from residuum.bounds import Interval
    from residuum.pld.value import Pld

app = typer.Typer(add_completion=False, rich_markup_mode=None)

DELTA = 1e-5
BUDGET = '{"kind": "approximate_dp", "eps": 2.0, "delta": 1e-5}'
DAY = (
    ("three noisy histograms", '{"kind": "gaussian", "sigma": 6.0, "count": 3}'),
    ("a noisy count", '{"kind": "laplace", "scale": 4.0}'),
    ("five randomized answers", '{"kind": "pure_dp", "eps": 0.1, "count": 5}'),
    ("a black box", '{"kind": "approximate_dp", "eps": 0.2, "delta": 1e-7}'),
)


class Step(NamedTuple):
    """One query of the day, and the composition of all queries up to it."""

    name: str
    alone: "Pld"
    total: "Pld"


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("out"),
    as_json: output.AsJson = False,
) -> None:
    """Compose a few queries, print their cost, draw the curves.

    Every number is a proven interval: the exact value lies between lo and hi.

    \b
    Example:
      residuum demo --out out
    """
    steps = _steps()
    total = steps[-1].total
    budget = queries.parse(BUDGET).pld()
    fits = bool(total <= budget)
    picture, trouble = _draw(steps, out)
    if as_json:
        output.print_json(
            {
                "delta": DELTA,
                "queries": [
                    {
                        "name": step.name,
                        "pld": repr(step.alone),
                        "epsilon_bounds": output.bounds(step.alone.epsilon_bounds(DELTA)),
                        "total_epsilon_bounds": output.bounds(step.total.epsilon_bounds(DELTA)),
                    }
                    for step in steps
                ],
                "total": repr(total),
                "budget": repr(budget),
                "fits_budget": fits,
                "picture": None if picture is None else str(picture),
            }
        )
        return
    output.print_table(
        f"eps at delta = {DELTA}, each proven to lie between lo and hi",
        ("query", "alone, lo", "alone, hi", "so far, lo", "so far, hi"),
        [
            (
                step.name,
                *_ends(step.alone.epsilon_bounds(DELTA)),
                *_ends(step.total.epsilon_bounds(DELTA)),
            )
            for step in steps
        ],
    )
    output.print_table(
        "delta of all of them together",
        ("eps", "lo", "hi"),
        [(str(eps), *_ends(total.delta_bounds(eps))) for eps in (0.5, 1.0, 1.5, 2.0)],
    )
    print(f"all together: {total!r}")
    print(f"the budget:   {budget!r}")
    print(f"within the budget: {'yes, proven' if fits else 'not proven, so no'}")
    print(trouble if picture is None else f"the curves: {picture}")


def _steps() -> list[Step]:
    steps: list[Step] = []
    for name, text in DAY:
        alone = queries.parse(text).pld()
        steps.append(Step(name, alone, steps[-1].total + alone if steps else alone))
    return steps


def _draw(steps: list[Step], out: Path) -> tuple[Path | None, str]:
    """The picture's path, or why there is none: the numbers stand without it."""
    from residuum.figures.curves import curves

    plds = {**{s.name: s.alone for s in steps}, "all together": steps[-1].total}
    return pictures.save(lambda: curves(plds), out / "curves.png")


def _ends(interval: "Interval") -> tuple[str, str]:
    return output.below(float(interval.lo), 7), output.above(float(interval.hi), 7)
