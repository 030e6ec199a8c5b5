"""`residua plan`, `recommend` and `compare`: how much fits a budget, and under which filter."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from residua.cli import descriptions, options, output, stores
from residua.cli.command import Result, command
from residua.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from residua.filters import Filter
    from residua.filters.amounts import State
    from residua.planning import Workload
    from residua.planning.how_many import Progress


app = typer.Typer(add_completion=False, rich_markup_mode=None)


@command(app, cls=options.QueryCommand)
def plan(
    query: list[str],
    filter: str | None = None,
    state: str | None = None,
    budget: str | None = None,
    eps: float | None = None,
    delta: float | None = None,
    n: int = 1,
    most: int = 10**6,
    out: Path | None = None,
    relation: str | None = None,
    store: str = stores.DEFAULT,
    token: str | None = None,
) -> Result:
    """Count the queries that fit, and find the least noise.

    Several queries are asked in turn, again and again. The count is the number of queries that are
    admitted before the first refusal. The noise is the least with which n more fit (n rounds of
    several queries, all scaled by the same factor), rounded up and checked. Nothing is spent.

    --eps and --delta without --filter mean the automatic filter. --budget takes the filter and what
    is left from a budget in the store; its parents and open reservations may allow fewer.

    Operands:
      query (QUERY): Queries as JSON or by flags; several are asked in turn.

    Options:
      filter (FILTER): The filter, as JSON or in short: 'zcdp rho=0.1'.
      state (JSON): The state of the filter (default: nothing was spent).
      budget (NAME): Plan for what is left of this budget in the store.
      n: Find the noise for this many more queries, or rounds of them.
      most: Stop counting here.
      out (DIR): Draw how many more of each kind fit, and write the picture to this directory.

    Example:
      residua plan --filter '{"kind": "gdp_residue", "mu": 1.0}' --laplace scale=2
      residua plan --filter 'basic eps=1,delta=1e-6' --laplace scale=20 --pure-dp eps=0.01 -n 52
      residua plan --eps 1 --delta 1e-6 --laplace scale=20
      residua plan --budget web --laplace scale=20
    """
    from residua.filters.query import as_mechanism
    from residua.planning import count_more, least_noise

    asked = descriptions.parse_list(query)
    if budget is not None:
        replaced = {"filter": filter, "eps": eps, "delta": delta, "state": state}
        replaced["relation"] = relation
        given = [f"--{name} {value}" for name, value in replaced.items() if value is not None]
        if given:
            raise ArgumentError(
                "--budget replaces --filter, --eps, --delta, --state and --relation, got"
                f" {', '.join(given)} beside --budget {budget}"
            )
        with stores.read_store(store, token) as ledger:
            found = ledger.budget(budget)
        chosen, start, relation = found.filter, found.state, found.relation
    else:
        needed = "give --filter, --budget, or --eps with or without --delta"
        chosen = descriptions.chosen_filter(filter, eps, delta, needed)
        start = chosen.initial() if state is None else chosen.state_from_json(state)
    with output.progress("counting"):
        count, ended = count_more(chosen, asked, state=start, most=most, relation=relation)
    with output.progress("fitting the noise"):
        least = least_noise(chosen, asked, n, state=start, relation=relation)
    with output.progress("drawing") as report:

        def draw() -> "Figure":
            return _frontier(chosen, start, relation, report)

        picture = output.save_picture(draw, out, "frontier.png")
    left = chosen.left_words(start)
    shown = {
        "filter": chosen.to_dict(),
        "left": left,
        "queries": [one.to_dict() for one in asked],
        "how_many": count,
        "rounds": count // len(asked),
        "counting_ended": ended,
        "n": n,
        "least_noise": None if least is None else [as_mechanism(one).to_dict() for one in least],
        "picture": picture.file,
    }
    fitting = f"at least {count}" if ended else str(count)
    if len(asked) > 1:
        fitting += f" ({count // len(asked)} whole rounds of {len(asked)})"
    rows = [("filter", chosen.to_json()), ("left", left)]
    rows += [("query", one.to_json()) for one in asked]
    rows.append(("how many more fit", fitting))
    name = f"least noise for {n} more" + (" rounds" if len(asked) > 1 else "")
    if least is None:
        rows.append((name, "none: no amount of noise is enough"))
    else:
        rows += [(name, as_mechanism(one).to_json()) for one in least]
    if out is not None:
        rows.append(("picture", picture.words))
    return Result(shown, rows)


def _frontier(
    filter: "Filter", start: "State", relation: str | None, report: "Progress"
) -> "Figure":
    """The frontier of what is left, beside that of a fresh filter where something was spent."""
    from residua.figures.plots import frontier as draw
    from residua.planning.how_many import frontier

    fresh = filter.initial()
    found = {"left": frontier(filter, state=start, relation=relation, progress=report)}
    if start != fresh:
        before = frontier(filter, state=fresh, relation=relation, progress=report)
        found = {"at the start": before, **found}
    return draw(found)


@command(app, cls=options.QueryCommand)
def recommend(
    query: list[str] | None = None,
    eps: float | None = None,
    delta: float | None = None,
    workload: str | None = None,
    n: int | None = None,
    filter: list[str] | None = None,
    relation: str | None = None,
) -> Result:
    """Recommend a filter and the noise for a workload, and say why.

    Every filter is measured on the workload within (eps, delta), as in residua compare. The
    recommended filter is the one that admits most; of equals, the one that needs the least
    knowledge in advance. With -n, or for a finite workload, all queries must be answered: if they
    do not fit, compute the least noise with which they do, scaling all by one factor.

    Operands:
      query (QUERY): The workload: queries asked in turn without end.

    Options:
      workload (FILE): Read the workload from this file.
      n: Answer this many rounds of the workload in full.
      filter (KIND): Choose from this kind only; may be repeated.

    Example:
      residua recommend --eps 1 --delta 1e-6 --laplace scale=20 --filter basic --filter renyi
      residua recommend --eps 1 --delta 1e-6 --gaussian sigma=20 -n 52 --filter gdp --filter plan
    """
    from residua.planning import recommend as find

    eps, delta = descriptions.both_of(eps, delta)
    if bool(query) == (workload is not None):
        got = "both" if query else "neither"
        raise ArgumentError(f"give queries or --workload, got {got}")
    asked = _workload("workload", query) if query else workload or ""
    with output.progress("measuring") as report:
        found = find(
            eps, delta, asked, n=n, filters=filter or None, relation=relation, progress=report
        )
    kind = found.filter.kind
    if found.described is None:
        shown = f"{kind} (of losses under {relation}, to be made in Python)"
    else:
        text = found.filter.to_json()
        shown = text if len(text) <= 300 else f"{kind} (--json shows all of it)"
    rows = [("filter", shown), ("reason", found.reason)]
    if found.noise != 1.0:
        scaled = dict.fromkeys(f"{run.query!r}" for run in found.queries)
        rows += [("query", one) for one in list(scaled)[:12]]

    def words() -> None:
        output.print_fields(rows)
        print(f"\n{found.comparison.table()}")

    return Result(found.to_dict(), words)


@command(app, cls=options.QueryCommand)
def compare(
    query: list[str] | None = None,
    eps: float | None = None,
    delta: float | None = None,
    workload: str | None = None,
    filter: list[str] | None = None,
    seed: int | None = None,
    count: int | None = None,
    family: str | None = None,
    shape: str | None = None,
    out: Path | None = None,
    relation: str | None = None,
) -> Result:
    """Compare filters: how much of a workload each admits.

    Every filter is set up for (eps, delta), and the workload is requested in order until the first
    refusal. Ratios are to the non-adaptive optimum: the most queries of the workload that are
    within (eps, delta) when all of them are known in advance. They are rounded down.

    Without a workload, the filters are compared on a suite of random workloads. The table has the
    mean ratio of each filter with its 95 % confidence interval, the 10th percentile and the
    minimum, over the workloads with an optimum of at least 10; the mean over the others; and the
    mean of each family.

    A workload file is JSON: {"name": ..., "queries": [...], "repeat": true}. A query is a mechanism
    or {"mechanism": ..., "repeat": 3}; with "repeat" the whole list starts again when it ends.

    Operands:
      query (QUERY): The workload: queries asked in turn without end.

    Options:
      workload (FILE): Read the workload from this file (default: suite, random workloads).
      filter (FILTER): Compare this kind, or this filter as JSON; repeatable (default: all kinds).
      seed: Random seed of the suite (default: 1).
      count: Number of random workloads (default: 60).
      family: Use only this family: pure, laplace, gaussian, subsampled or mixed.
      shape: Use only this shape: constant, bursts, drifting, 'small then large', 'large then
          small' or alternating.
      out (DIR): Draw the ratios and write the picture to this directory.

    Example:
      residua compare --eps 1 --delta 1e-6 --seed 7 --count 12 --filter pure --filter gdp_residue
      residua compare --eps 1 --delta 1e-6 --family laplace --shape bursts --count 5
      residua compare --eps 1 --delta 1e-6 --laplace scale=20 --filter basic --filter renyi
    """
    from residua.planning import compare_filters

    if eps is None and delta is None and query and len(query) == 2:
        order = shlex.join(("residua", "order", *query))
        raise ArgumentError(
            f"--eps and --delta must be given, got neither; to order two queries, run {order}"
        )
    eps, delta = descriptions.both_of(eps, delta)
    if query and workload is not None:
        raise ArgumentError(f"give a workload or queries, got both: {workload} and queries")
    asked: Workload | str = workload or "suite"
    if query:
        short = len(query) == 1 and len(query[0]) <= 40
        asked = _workload(query[0] if short else "workload", query)
    with output.progress("comparing") as report:
        found = compare_filters(
            eps,
            delta,
            asked,
            _candidates(filter),
            seed=seed,
            count=count,
            family=family,
            shape=shape,
            relation=relation,
            progress=report,
        )

    def draw() -> "Figure":
        from residua.figures.plots import draw_comparison

        return draw_comparison(found)

    picture = output.save_picture(draw, out, "comparison.png")

    def words() -> None:
        print(f"admitted / non-adaptive optimum within ({eps:g}, {delta:g})\n")
        print(found.table())
        if out is not None:
            print(picture.trouble or f"\npicture: {picture.file}")

    return Result({**found.to_dict(), "picture": picture.file}, words)


def _workload(name: str, query: list[str]) -> "Workload":
    """Queries that are asked in turn without end."""
    from residua.planning.workload import Run, Workload

    return Workload(name, tuple(Run(one) for one in descriptions.parse_list(query)), repeat=True)


def _candidates(given: list[str] | None) -> Any:
    if not given:
        return None
    return [descriptions.parse_filter(one) if set(one) & set("{= ") else one for one in given]
