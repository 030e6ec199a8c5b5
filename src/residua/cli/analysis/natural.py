"""`residua natural`: what the natural filter costs, and when it is free."""

import math
from typing import Annotated

import typer

from residua.cli import flags, output, pictures, queries
from residua.cli.progress import patience
from residua.errors import ArgumentError

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Rounds = Annotated[int, typer.Option(help="How many queries may be asked.")]


@app.callback()
def natural() -> None:
    """The natural filter: what it costs, when it is free.

    It admits while the exact composition of what was spent stays below the budget. Against an
    analyst who looks at answers before asking, that does not keep the budget in general.

    \b
    Example:
      residua natural cost --budget 'approximate_dp eps=1.395,delta=0.509' --rounds 2 --approximate-dp eps=0.0847,delta=0.478 --approximate-dp eps=1.404,delta=0.0208
      residua natural free --rounds 3 --pure-dp eps=1 --pure-dp eps=1.2 --json
    """  # noqa: E501


@app.command(cls=flags.QueryCommand)
def cost(
    query: Annotated[
        list[str], typer.Argument(metavar="QUERY", help="The queries that may be asked.")
    ],
    budget: Annotated[str, typer.Option(help="The budget: a query, or a list of them.")],
    rounds: Rounds,
    accuracy: Annotated[
        float, typer.Option(help="Of queries with continuous losses, in eps.")
    ] = 0.01,
    coarse: Annotated[
        float | None, typer.Option(help="Merge atoms within this share, both ways.")
    ] = None,
    draw: pictures.Draw = None,
    relation: flags.Relation = None,
    as_json: output.AsJson = False,
) -> None:
    """What the natural filter over these queries really costs.

    The worst case is exact where masses are rational, and else between two proven sides. Where it
    exceeds the budget, the point, the gap and the adversary that attains it are shown, and drawn
    with --draw.

    \b
    Example:
      residua natural cost --budget 'gdp mu=1' --rounds 2 --pure-dp eps=0.5 --pure-dp eps=0.8
    """
    from residua.adversary.natural.cost import natural_cost

    losses = [queries.parse(text).pld(relation=relation) for text in query]
    promised = queries.parse_side(budget).pld(relation=relation)
    with patience("states") as tell:
        found = natural_cost(
            losses,
            promised,
            rounds,
            accuracy=accuracy,
            coarse=coarse,
            progress=lambda done, whole: tell("", done, whole),
        )
    at = found.witness
    drawn, trouble = pictures.tree(found.strategy, draw)
    if as_json:
        output.print_json(
            {
                "budget": repr(promised),
                "rounds": rounds,
                "states": found.worst.states,
                "exact": found.worst.exact,
                "pld": repr(found.pld),
                "within_budget": found.verdict.value,
                "violation": found.violation,
                "witness": None if at is None else output.number(at),
                "promised": None if at is None else float(promised.hockey_stick(at)),
                "real": None if at is None else output.bounds(found.worst.hockey_stick_bounds(at)),
                "strategy": None if found.strategy is None else found.strategy.to_dict(),
                "picture": None if drawn is None else str(drawn),
            }
        )
        return
    rows = [("budget", repr(promised)), ("worst case", repr(found.pld))]
    rows.append(("within the budget", _word(found.verdict.value)))
    if at is not None:
        real = found.worst.hockey_stick_bounds(at)
        sides = output.below(float(real.lo), 6), output.above(float(real.hi), 6)
        rows += [
            ("at eps", f"{math.log(at):.6g}"),
            ("delta promised", f"{float(promised.hockey_stick(at)):.6g}"),
            ("delta real", " to ".join(sides)),
        ]
    output.print_fields(rows)
    if found.strategy is not None:
        print(f"\n{found.strategy}")
    pictures.tell(draw, drawn, trouble)


@app.command(cls=flags.QueryCommand)
def free(
    query: Annotated[
        list[str], typer.Argument(metavar="QUERY", help="The queries that may be asked.")
    ],
    rounds: Annotated[
        int | None, typer.Option(help="How many queries may be asked. Without it, any number.")
    ] = None,
    relation: flags.Relation = None,
    as_json: output.AsJson = False,
) -> None:
    """Whether the natural filter is free for every budget.

    If not, a query L and two futures A and C show it: asking L and then A or C, whichever suits the
    answer, exceeds the budget that each of the two fits.

    \b
    Example:
      residua natural free --rounds 3 --pure-dp eps=1 --pure-dp eps=1.2
      residua natural free --gaussian sigma=2 --gaussian sigma=5
    """
    from residua.adversary.freeness import is_universally_free

    mechanisms = [queries.parse(text) for text in query]
    with patience("comparing"):
        found = is_universally_free([m.pld(relation=relation) for m in mechanisms], rounds)
    if as_json:
        triple = None if found.triple is None else [repr(pld) for pld in found.triple]
        gap = None if found.gap is None else {"x": found.gap.x, "gap": found.gap.gap}
        output.print_json(
            {
                "queries": [m.to_dict() for m in mechanisms],
                "rounds": rounds,
                "free": found.free,
                "verdict": found.verdict.value,
                "reason": found.reason,
                "triple": triple,
                "gap": gap,
            }
        )
        return
    rows = [("free for every budget", _word(found.verdict.value))]
    if found.reason:
        rows.append(("because", found.reason))
    if found.triple is not None and found.gap is not None:
        rows += list(zip(("L", "A", "C"), map(repr, found.triple), strict=True))
        rows.append(("gap", f"{output.below(found.gap.gap, 4)} at x = {found.gap.x:.6g}"))
    output.print_fields(rows)


@app.command()
def guarantee(
    eps: Annotated[float, typer.Option(help="The eps of the budget.")],
    delta: Annotated[float, typer.Option(help="The delta of the budget.")],
    rounds: Rounds,
    target_delta: Annotated[
        float | None, typer.Option(help="The delta to guarantee. Without it, ten times delta.")
    ] = None,
    points: Annotated[
        str | None,
        typer.Option(
            help="Where to cut losses: paper, remark, or sizes like 0.1,0.5,2."
            " Without it, the best that are found."
        ),
    ] = None,
    as_json: output.AsJson = False,
) -> None:
    """What the natural (eps, delta) filter really guarantees.

    For arbitrary symmetric queries, chosen adaptively: the least eps that is proven.

    \b
    Example:
      residua natural guarantee --eps 1 --delta 1e-6 --rounds 10
      residua natural guarantee --eps 0.1 --delta 1e-6 --rounds 20 --target-delta 1e-4 --points remark
    """  # noqa: E501
    from residua.adversary.natural.guarantee import natural_guarantee

    with patience("searching"):
        found = natural_guarantee(eps, delta, rounds, target_delta, _sizes(points))
    if as_json:
        given = {"eps": eps, "delta": delta, "rounds": rounds}
        real = {"eps": found.eps, "delta": found.delta, "method": found.method}
        output.print_json({"budget": given, "guarantee": real})
        return
    rows = [("budget", f"eps {eps:g}, delta {delta:g}")]
    if not (found.delta < 1.0 and found.eps < math.inf):
        of = "" if target_delta is not None else ", and ten times delta is 1 or more"
        why = f"at delta 1 everything may be lost{of}; --target-delta asks for another"
        if found.delta < 1.0:
            why = f"no finite eps is proven at delta {found.delta!r}"
        output.print_fields([*rows, ("guaranteed", f"nothing: {why}")])
        return
    output.print_fields(
        [
            *rows,
            ("guaranteed eps", output.above(found.eps, 6)),
            ("at delta", repr(found.delta)),
            ("by", found.method),
        ]
    )


def _sizes(text: str | None) -> list[float] | str | None:
    """Points as given on the command line."""
    if text is None or text in ("paper", "remark"):
        return text
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentError(
            f"points must be paper, remark or sizes with commas between, got {text!r}"
        ) from None


def _word(verdict: str) -> str:
    return {"YES": "yes, proven", "NO": "no, proven"}.get(verdict, "undecided, so no")
