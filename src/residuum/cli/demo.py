"""`residuum demo`: an analyst who chooses each query after the last answer, and a filter."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from residuum.cli import output, pictures

if TYPE_CHECKING:
    from residuum.filters.decision import Decision
    from residuum.filters.gdp_residue import GdpResidueFilter
    from residuum.pld.value import Pld

app = typer.Typer(add_completion=False, rich_markup_mode=None)

MU = 0.5
DELTA = 1e-5
COUNTS = {"north": 1210, "east": 985, "south": 1170, "west": 1240}
"""The secret data: visits by region."""


class Step(NamedTuple):
    """What the analyst wanted to know, what the filter said, and the answer if there was one."""

    about: str
    scale: float
    decision: "Decision"
    answer: float | None


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("out"),
    seed: Annotated[int, typer.Option(help="Of the noise.")] = 7,
    as_json: output.AsJson = False,
) -> None:
    """An adaptive analyst asks, a filter keeps the budget.

    The analyst looks for the busiest region: rough counts first, then again with less noise where
    it looks promising, until the filter refuses and says what would fit. Whatever the answers and
    whatever is asked next, everything together stays below the budget: that is proven.

    \b
    Example:
      residuum demo --out out
      residuum demo --seed 8 --json
    """
    from residuum.filters.gdp_residue import GdpResidueFilter
    from residuum.pld.constructors import identity

    office = GdpResidueFilter(mu=MU)
    steps = list(_analyst(office, random.Random(seed)))
    spent = sum((_loss(s) for s in steps if s.decision.admitted), identity())
    eps = office.guarantee.epsilon_bounds(DELTA)
    picture, trouble = _draw(office, spent, out)
    if as_json:
        output.print_json(
            {
                "filter": office.to_dict(),
                "steps": [
                    {
                        "about": step.about,
                        "query": repr(step.decision.query),
                        "admitted": step.decision.admitted,
                        "cost": step.decision.cost,
                        "remaining": repr(step.decision.remaining),
                        "reason": step.decision.reason,
                        "answer": step.answer,
                    }
                    for step in steps
                ],
                "guarantee": repr(office.guarantee),
                "delta": DELTA,
                "guarantee_epsilon_bounds": output.bounds(eps),
                "picture": None if picture is None else str(picture),
            }
        )
        return
    output.print_table(
        f"a budget of G_mu, mu = {MU}, kept by a GDP residue filter",
        ("asked", "noise", "answer", "takes of mu²", "left of mu"),
        [
            (
                step.about,
                f"Laplace, scale {step.scale:g}",
                "refused" if step.answer is None else f"{step.answer:.0f}",
                "" if step.decision.cost is None else output.above(step.decision.cost, 4),
                output.below(float(step.decision.remaining.gaussian.variance) ** 0.5, 4),
            )
            for step in steps
        ],
    )
    for step in steps:
        if not step.decision.admitted:
            print(step.decision.reason)
    print(
        f"\nwhatever is asked, all of it together is {office.guarantee!r}:"
        f" ({output.above(float(eps.hi), 5)}, {DELTA:g})-DP"
    )
    print(trouble if picture is None else f"the budget, and what was spent of it: {picture}")


def _analyst(office: "GdpResidueFilter", noise: random.Random) -> Iterator[Step]:
    """Rough counts of every region, then better ones of the two that lead, then the winner's."""

    from residuum.mechanisms.laplace import Laplace

    def ask(region: str, query: Laplace) -> Step:
        decision = office.request(query)
        sample = noise.expovariate(1.0) - noise.expovariate(1.0)
        answer = COUNTS[region] + query.scale * sample if decision.admitted else None
        return Step(f"visits, {region}", query.scale, decision, answer)

    seen: dict[str, float] = {}
    for region in COUNTS:
        step = ask(region, Laplace(scale=40.0))
        seen[region] = step.answer or 0.0
        yield step
    leaders = sorted(seen, key=lambda region: -seen[region])[:2]
    for region in leaders:
        step = ask(region, Laplace(scale=15.0))
        seen[region] = step.answer or seen[region]
        yield step
    winner = max(leaders, key=lambda region: seen[region])
    step = ask(winner, Laplace(scale=1.0))
    yield step
    if not step.decision.admitted:
        # The refusal says what would fit; the analyst takes it at its word.
        fitting = step.decision.largest
        if isinstance(fitting, Laplace):
            yield ask(winner, fitting)


def _loss(step: Step) -> "Pld":
    from residuum.filters.query import loss_of

    return loss_of(step.decision.query)


def _draw(office: "GdpResidueFilter", spent: "Pld", out: Path) -> tuple[Path | None, str]:
    """The picture's path, or why there is none: the numbers stand without it."""
    from residuum.figures.curves import curves

    plds = {"the budget": office.guarantee, "spent, in hindsight": spent}
    return pictures.save(lambda: curves(plds), out / "curves.png")
