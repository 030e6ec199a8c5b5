"""`residua natural`: what the natural filter costs, what it guarantees, and when it is free."""

import math
from pathlib import Path

import typer

from residua.cli import descriptions, options, output
from residua.cli.analysis.adversary import DEFAULT_ACCURACY, reached_plain, with_strategy
from residua.cli.command import Result, command, subgroup
from residua.errors import ArgumentError

app = typer.Typer(add_completion=False, rich_markup_mode=None)
group = subgroup(app, "natural")


@group.callback()
def natural() -> None:
    """Say what the natural filter costs, and when it is free.

    The natural filter admits queries while the exact composition of what was spent stays below the
    budget. In general this does not keep the budget against an analyst who looks at each answer
    before choosing the next query.

    Example:
      residua natural cost --budget 'approximate_dp eps=1.395,delta=0.509' --rounds 2 --approximate-dp eps=0.0847,delta=0.478 --approximate-dp eps=1.404,delta=0.0208
      residua natural free --rounds 3 --pure-dp eps=1 --pure-dp eps=1.2 --json
    """  # noqa: E501


@command(group, cls=options.QueryCommand)
def cost(
    query: list[str],
    budget: str,
    rounds: int,
    accuracy: float = DEFAULT_ACCURACY,
    coarse: float | None = None,
    draw: Path | None = None,
    relation: str | None = None,
) -> Result:
    """Compute what the natural filter over these queries really costs.

    The worst case is exact if all masses are rational; otherwise it lies between two proven bounds.
    If it exceeds the budget, the point, the gap and the adversary that attains it are shown. --draw
    also draws the adversary.

    Operands:
      query (QUERY): The queries that may be asked.

    Options:
      budget: The budget: a query, or a list of them.
      coarse: Merge atoms, with a relative error of at most this in each round.

    Example:
      residua natural cost --budget 'gdp mu=1' --rounds 2 --pure-dp eps=0.5 --pure-dp eps=0.8
    """
    from residua.adversary.attack import natural_cost

    losses = [descriptions.parse_mechanism(text).pld(relation=relation) for text in query]
    promised = descriptions.parse_composed(budget).pld(relation=relation)
    with output.progress("states") as report:
        found = natural_cost(
            losses,
            promised,
            rounds,
            accuracy=accuracy,
            coarse=coarse,
            progress=lambda done, whole: report("", done, whole),
        )
    at = found.witness
    shown = {
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
    }
    rows = [("budget", repr(promised)), ("worst case", repr(found.pld))]
    rows.append(("within the budget", _verdict_in_words(found.verdict.value)))
    if at is not None:
        real = found.worst.hockey_stick_bounds(at)
        sides = output.below(float(real.lo), 6), output.above(float(real.hi), 6)
        rows += [
            ("at eps", f"{math.log(at):.6g}"),
            ("delta promised", f"{float(promised.hockey_stick(at)):.6g}"),
            ("delta real", " to ".join(sides)),
        ]
    return with_strategy(shown, rows, found.strategy, draw)


@command(group, cls=options.QueryCommand)
def free(
    query: list[str],
    rounds: int | None = None,
    relation: str | None = None,
) -> Result:
    """Decide whether the natural filter is free for every budget.

    If not, a counterexample is shown: a query L and two futures A and C. L and A fit a budget, and
    so do L and C, but asking L and then choosing A or C by the answer exceeds it.

    Operands:
      query (QUERY): The queries that may be asked.

    Options:
      rounds: Number of queries that may be asked (default: any number).

    Example:
      residua natural free --rounds 3 --pure-dp eps=1 --pure-dp eps=1.2
      residua natural free --gaussian sigma=2 --gaussian sigma=5
    """
    from residua.adversary.freeness import is_universally_free

    mechanisms = [descriptions.parse_mechanism(text) for text in query]
    with output.progress("comparing"):
        found = is_universally_free([m.pld(relation=relation) for m in mechanisms], rounds)
    shown = {
        "queries": [m.to_dict() for m in mechanisms],
        "rounds": rounds,
        "free": found.free,
        "verdict": found.verdict.value,
        "reason": found.reason,
        "triple": None if found.triple is None else [repr(pld) for pld in found.triple],
        "gap": None if found.gap is None else {"x": found.gap.x, "gap": found.gap.gap},
    }
    rows = [("free for every budget", _verdict_in_words(found.verdict.value))]
    if found.reason:
        rows.append(("because", found.reason))
    if found.triple is not None and found.gap is not None:
        rows += list(zip(("L", "A", "C"), map(repr, found.triple), strict=True))
        rows.append(("gap", f"{output.below(found.gap.gap, 4)} at x = {found.gap.x:.6g}"))
    return Result(shown, rows)


@command(group)
def guarantee(
    eps: float,
    delta: float,
    rounds: int | None = None,
    target_delta: float | None = None,
) -> Result:
    """Compute what the natural (eps, delta) filter really guarantees.

    The result is the least eps that is proven for arbitrary queries, chosen adaptively.

    Options:
      rounds: Number of queries that may be asked (default: any number).
      target_delta: The delta to guarantee (default: ten times --delta).

    Example:
      residua natural guarantee --eps 1 --delta 1e-6
      residua natural guarantee --eps 0.1 --delta 1e-6 --rounds 3 --target-delta 1e-4
    """
    from residua.adversary.natural_guarantee import natural_guarantee

    with output.progress("searching"):
        found = natural_guarantee(eps, delta, rounds, target_delta)
    shown = {
        "budget": {"eps": eps, "delta": delta, "rounds": rounds},
        "guarantee": {
            "eps": output.number(found.eps),
            "delta": found.delta,
            "method": found.method,
        },
    }
    rows = [("budget", f"eps {eps:g}, delta {delta:g}")]
    if found.delta < 1.0 and found.eps < math.inf:
        rows.append(("guaranteed eps", output.above(found.eps, 6)))
        rows += [("at delta", repr(found.delta)), ("by", found.method)]
    elif found.delta < 1.0:
        why = f"no finite eps is proven at delta {found.delta!r}"
        rows.append(("guaranteed", f"nothing: {why}"))
    else:
        of = "" if target_delta is not None else ", and ten times delta is 1 or more"
        why = f"at delta 1 everything may be lost{of}; --target-delta asks for another"
        rows.append(("guaranteed", f"nothing: {why}"))
    return Result(shown, rows)


@command(group, "attack")
def attack_natural(
    rounds: int,
    eps: float | None = None,
    delta: float | None = None,
    budget: str | None = None,
) -> Result:
    """Play the strongest known adversary against the natural filter.

    It asks many small queries, looks at their answers, and then asks the large query that is best
    for these and just fits. The delta that it reaches is proven from below. The budget is (eps,
    delta), or any other by --budget; for that, --eps is where delta is compared.

    Options:
      budget: The budget, if not (eps, delta): a query, or a list of them.
      delta (FLOAT): The delta of the budget, without --budget.
      eps (FLOAT): The eps of the budget, or with --budget where delta is compared.

    Example:
      residua natural attack --eps 1 --delta 1e-6 --rounds 10
      residua natural attack --budget 'gdp mu=1' --eps 3 --rounds 5
    """
    from residua.adversary.strongest import natural_attack
    from residua.pld.constructors import approximate_dp

    if budget is not None:
        if delta is not None:
            raise ArgumentError("--delta must come without --budget, which has its own delta")
        promised = descriptions.parse_composed(budget).pld()
    elif eps is None or delta is None:
        raise ArgumentError("--eps and --delta must be given unless there is a --budget")
    else:
        promised = approximate_dp(eps, delta)
    with output.progress("blocks of queries") as report:
        found = natural_attack(
            promised, rounds, eps, progress=lambda done, whole: report("", done, whole)
        )
    last = found.blocks[-1]
    shown = {
        "budget": repr(promised),
        **reached_plain(found),
        "small_query": {"eps": found.size, "most": last.copies},
        "blocks": [
            {"small_queries": block.copies, "last_queries": [repr(e) for e in block.endings[1:]]}
            for block in found.blocks
        ],
    }
    rows = [
        ("budget", repr(promised)),
        ("at eps", f"{found.eps:g}"),
        ("delta promised", output.above(found.promised, 6)),
        ("delta reached", f"{output.below(found.delta, 6)} at least"),
        ("ratio", f"{output.below(found.ratio, 4)} at least"),
        ("asked", f"at most {last.copies} x pure_dp({found.size:.6g}), and then one that fits"),
        ("rounds", f"{found.rounds}: the small ones in {len(found.blocks)}, and the last"),
    ]
    return Result(shown, rows)


def _verdict_in_words(verdict: str) -> str:
    return {"YES": "yes, proven", "NO": "no, proven"}.get(verdict, "undecided, so no")
