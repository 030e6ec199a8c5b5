"""Commands on mechanisms and their losses: `mechanisms`, `describe`, `delta`, `epsilon`, `order`.

Where the loss had to be discretised there are two PLDs, one above and one below it. The upper end
of an interval is read from the first and the lower end from the second, so its width contains the
error of discretising.
"""

import math
import shutil
import textwrap
from collections.abc import Callable, Sequence
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from residua.cli import descriptions, options, output
from residua.cli.command import Result, command

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from residua.bounds import Interval
    from residua.mechanisms import Mechanism
    from residua.pld.order import Domination, Witness
    from residua.pld.pld import Pld


app = typer.Typer(add_completion=False, rich_markup_mode=None)

Read = Callable[["Pld"], "Interval"]


class Direction(NamedTuple):
    """A direction of the relation, or several of them that lose the same."""

    names: tuple[str, ...]
    above: "Pld"
    below: "Pld"

    def bounds(self, read: Read) -> "Interval":
        """The number that `read` takes off a PLD, with the discretisation in its width."""
        from residua.bounds import Interval

        top = read(self.above)
        low = top if self.below == self.above else read(self.below)
        return Interval(float(low.lo), float(top.hi))

    def numbers(self, name: str, read: str, places: Sequence[float]) -> list["Number"]:
        """The same at several places."""
        return [Number(name, at, self.bounds(methodcaller(read, at))) for at in places]

    @property
    def label(self) -> str:
        return " and ".join(self.names)


def by_direction(mechanism: "Mechanism", relation: str | None) -> dict[str, tuple["Pld", "Pld"]]:
    """The PLDs above and below, by direction."""
    above, below = mechanism.plds(relation), mechanism.plds(relation, side="below")
    return {name: (pld, below[name]) for name, pld in above.items()}


def group_directions(mechanism: "Mechanism", relation: str | None) -> tuple[str, list[Direction]]:
    """The relation that is meant, and its directions; those with equal PLDs are one."""
    grouped: dict[tuple[Pld, Pld], tuple[str, ...]] = {}
    for name, plds in by_direction(mechanism, relation).items():
        grouped[plds] = (*grouped.get(plds, ()), name)
    found = [Direction(names, *plds) for plds, names in grouped.items()]
    return relation or mechanism.supported[0], found


def worst(
    mechanism: "Mechanism", relation: str | None, wanted: str, name: str, value: float
) -> Result:
    """One number of the worse direction at a value, and which direction that is."""
    from residua.bounds import Interval

    relation, every = group_directions(mechanism, relation)
    numbers = [one.bounds(methodcaller(f"{wanted}_bounds", value)) for one in every]
    place = max(range(len(every)), key=lambda i: (numbers[i].hi, numbers[i].lo))
    interval = Interval(max(float(n.lo) for n in numbers), float(numbers[place].hi))
    worse = every[place].names[0] if len(every) > 1 else None
    pld = repr(every[place].above)
    shown: dict[str, Any] = {
        "mechanism": mechanism.to_dict(),
        "relation": relation,
        "direction": worse,
        "pld": pld,
        name: value,
        wanted: output.number(float(interval.hi)),
        f"{wanted}_bounds": output.bounds(interval),
    }
    title = f"{'eps' if wanted == 'epsilon' else wanted} at {name} = {value}"
    title += f", direction {worse} (the worse one), {relation}" if worse else ""
    row = (pld, output.below(float(interval.lo)), output.above(float(interval.hi)))
    return Result(shown, lambda: output.print_table(title, ("queries", "lo", "hi"), [row]))


@command(app, cls=options.QueryCommand)
def delta(
    query: list[str],
    eps: float,
    relation: str | None = None,
) -> Result:
    """Compute the delta of the composed queries at a given eps.

    The least delta for which together they are (eps, delta)-DP, printed as a proven interval:
    the exact value lies between lo and hi, and hi is the safe one. If the two directions of a
    relation differ, the worse one counts.

    Options:
      eps: Compute delta at this eps.

    Example:
      residua delta --gaussian sigma=4,steps=10 --eps 1
      residua delta '{"kind": "subsampled_gaussian", "sigma": 1.0, "sampling_rate": 0.01, "steps": 100}' --eps 1
    """  # noqa: E501
    return worst(descriptions.compose(query), relation, "delta", "eps", eps)


@command(app, cls=options.QueryCommand)
def epsilon(
    query: list[str],
    delta: float,
    relation: str | None = None,
) -> Result:
    """Compute the eps of the composed queries at a given delta.

    The least eps for which together they are (eps, delta)-DP, printed as a proven interval:
    the exact value lies between lo and hi, and hi is the safe one. It is inf if no eps is enough.
    If the two directions of a relation differ, the worse one counts.

    Options:
      delta: Compute eps at this delta.

    Example:
      residua epsilon --laplace scale=2 --pure-dp eps=0.1,steps=5 --delta 1e-6
      residua epsilon '{"kind": "laplace", "scale": 2.0}' '{"kind": "pure_dp", "eps": 0.1}' --delta 1e-6
    """  # noqa: E501
    return worst(descriptions.compose(query), relation, "epsilon", "delta", delta)


DELTAS, RENYI_ORDERS = (1e-3, 1e-6, 1e-9), (2.0, 4.0, 8.0, 32.0)
"""What `describe` shows by default."""


class Number(NamedTuple):
    """One number: which, at what, and the interval that contains it."""

    name: str
    at: float | None
    interval: "Interval"

    @property
    def _width(self) -> float:
        lo, hi = float(self.interval.lo), float(self.interval.hi)
        return float(self.interval.width) if lo < hi else 0.0

    def row(self) -> tuple[str, str, str, str]:
        """What a table shows, rounded outwards."""
        label = self.name if self.at is None else f"{self.name} {self.at:g}"
        lo, hi = float(self.interval.lo), float(self.interval.hi)
        return label, output.below(lo), output.above(hi), output.above(self._width, 2)

    def to_dict(self) -> dict[str, Any]:
        """The interval as JSON data."""
        return {"bounds": output.bounds(self.interval), "width": output.number(self._width)}


@command(app, cls=options.QueryCommand)
def describe(
    query: list[str],
    relation: str | None = None,
    delta: list[float] | None = None,
    eps: list[float] | None = None,
    out: Path | None = None,
) -> Result:
    """Compute what a mechanism costs, and cite the result behind it.

    For each direction of the neighbouring relation, show eps at some deltas, delta at some eps,
    Rényi divergences, and the least zCDP and GDP parameters. The exact values lie between lo and
    hi; if the loss had to be discretised, the interval includes that error. Divergences and
    parameters are inf if any mass, however small, is at infinity.

    Options:
      delta (DELTA): Show eps at this delta; may be repeated.
      eps (EPS): Show delta at this eps; may be repeated.
      out (DIR): Draw the curves and write them to this directory.

    Example:
      residua describe --laplace scale=2
      residua describe --subsampled-gaussian sigma=1,sampling_rate=0.01,steps=100 --relation replace-one
      residua describe --rdp 'orders=2;4;8,epsilons=0.1;0.2;0.4' --delta 1e-6 --out out
    """  # noqa: E501
    from residua import checks
    from residua.pld.residue.gdp_parameter import gdp_parameter_bounds, zcdp_parameter_bounds

    mechanism = descriptions.compose(query)
    deltas = [checks.probability("delta", d) for d in delta or DELTAS]
    wanted = [checks.finite("eps", e) for e in eps or ()]
    relation, directions = group_directions(mechanism, relation)
    epsilons = [one.numbers("eps at delta", "epsilon_bounds", deltas) for one in directions]
    scale = _scale(epsilons)
    numbers = [
        [
            *first,
            *one.numbers("delta at eps", "delta_bounds", wanted or _several(scale)),
            *one.numbers("Rényi, order", "renyi_bounds", RENYI_ORDERS),
            Number("zCDP parameter", None, one.bounds(zcdp_parameter_bounds)),
            Number("GDP parameter", None, one.bounds(gdp_parameter_bounds)),
        ]
        for one, first in zip(directions, epsilons, strict=True)
    ]
    file = f"{mechanism.kind}.png"
    picture = output.save_picture(lambda: _figure(directions, scale), out, file)
    shown = {
        "mechanism": mechanism.to_dict(),
        "pair": mechanism.pair,
        "pairs": list(mechanism.pairs()),
        "reference": mechanism.reference,
        "relation": relation,
        "directions": [_plain(*each) for each in zip(directions, numbers, strict=True)],
        "notes": list(mechanism.notes()),
        "picture": picture.file,
    }

    def words() -> None:
        output.print_fields(
            [
                ("mechanism", mechanism.to_json()),
                *(("pair", pair) for pair in mechanism.pairs()),
                ("reference", mechanism.reference),
                ("relation", relation),
            ]
        )
        for one, found in zip(directions, numbers, strict=True):
            output.print_table(
                f"\n{one.label}: {one.above!r}",
                ("", "lo", "hi", "width"),
                [each.row() for each in found],
            )
        remarks = [("note", note) for note in mechanism.notes()]
        if out is not None:
            remarks.append(("curves", picture.words))
        if remarks:
            output.print_fields(remarks)

    return Result(shown, words)


def _scale(epsilons: list[list[Number]]) -> float:
    """The largest finite eps among those asked for: where the curves are worth looking at."""
    found = [float(number.interval.hi) for numbers in epsilons for number in numbers]
    return max((eps for eps in found if 0.0 < eps < math.inf), default=1.0)


def _several(scale: float) -> list[float]:
    return [float(f"{scale * part / 4:.2g}") for part in range(5)]


def _figure(directions: list["Direction"], scale: float) -> "Figure":
    import numpy as np

    from residua.figures.plots import curves

    return curves(
        {one.label: one.above for one in directions},
        np.linspace(0.0, 1.25 * scale, 161),
        {one.label: one.below for one in directions if one.below != one.above},
    )


def _plain(one: "Direction", found: list[Number]) -> dict[str, Any]:
    def rows(name: str, at: str) -> list[dict[str, Any]]:
        return [{at: each.at, **each.to_dict()} for each in found if each.name == name]

    zcdp, gdp = found[-2:]
    return {
        "names": list(one.names),
        "pld": repr(one.above),
        "epsilon": rows("eps at delta", "delta"),
        "delta": rows("delta at eps", "eps"),
        "renyi": rows("Rényi, order", "order"),
        "zcdp": zcdp.to_dict(),
        "gdp": gdp.to_dict(),
    }


MEANING = {
    "LESS": "the first never loses more privacy than the second",
    "GREATER": "the first always loses at least as much privacy as the second",
    "EQUAL": "both lose exactly the same privacy",
    "INCOMPARABLE": "each loses more than the other somewhere",
    "UNDECIDED": "neither order could be proven or refuted; treat this as a no",
}
VERDICTS = {
    ("YES", "NO"): "LESS",
    ("NO", "YES"): "GREATER",
    ("YES", "YES"): "EQUAL",
    ("NO", "NO"): "INCOMPARABLE",
}


@command(app, cls=options.QueryCommand)
def order(
    first: str,
    second: str,
    relation: str | None = None,
) -> Result:
    """Compare two queries in the Blackwell order.

    Either side may be a JSON list of queries, which are composed, for example to ask whether a day
    is within a budget.

    The verdict is LESS, GREATER, EQUAL, INCOMPARABLE or UNDECIDED, and holds in every direction of
    the relation. If an order fails, a witness shows it: a point x and the gap between the
    hockey-stick curves there.

    Operands:
      first (FIRST): A query, or a JSON list of queries.
      second (SECOND): A query, or a JSON list of queries.

    Example:
      residua order --pure-dp eps=0.5 --laplace scale=2
      residua order '[{"kind": "laplace", "scale": 4.0}, {"kind": "gaussian", "sigma": 6.0}]' --gdp mu=0.5
    """  # noqa: E501
    from residua.mechanisms import Composed

    one, two = descriptions.parse_composed(first), descriptions.parse_composed(second)
    relation = relation or Composed((one, two)).supported[0]
    below, above = _dominated(one, two, relation), _dominated(two, one, relation)
    verdict = VERDICTS.get((below.verdict.value, above.verdict.value), "UNDECIDED")
    shown = [repr(mechanism.pld(relation=relation)) for mechanism in (one, two)]
    rows = [("first", shown[0]), ("second", shown[1]), ("verdict", verdict)]
    for name, witness in (
        ("first exceeds second", below.witness),
        ("second exceeds first", above.witness),
    ):
        if witness is not None:
            rows.append((name, f"by {witness.gap:.3g} at x = {witness.x:.6g}"))

    def words() -> None:
        print(MEANING[verdict] + "\n")
        output.print_fields(rows)

    data = {
        "first": shown[0],
        "second": shown[1],
        "relation": relation,
        "verdict": verdict,
        "not_below": _witness(below.witness),
        "not_above": _witness(above.witness),
    }
    return Result(data, words)


def _dominated(low: "Mechanism", high: "Mechanism", relation: str) -> "Domination":
    """Whether `low` loses no more than `high`, in every direction.

    Proven of what is above the one and below the other; refuted the other way round.
    """
    from residua.bounds import Verdict
    from residua.pld.order import Domination
    from residua.pld.order.compare import dominated

    if low == high:
        return Domination(Verdict.YES)
    proven = True
    lows, highs = (by_direction(m, relation).values() for m in (low, high))
    for (low_above, low_below), (high_above, high_below) in zip(lows, highs, strict=True):
        if dominated(low_above, high_below).proven:
            continue
        proven = False
        refuted = dominated(low_below, high_above)
        if refuted.verdict is Verdict.NO:
            return refuted
    return Domination(Verdict.YES if proven else Verdict.UNDECIDED)


def _witness(witness: "Witness | None") -> dict[str, float | str] | None:
    if witness is None:
        return None
    return {"x": output.number(witness.x), "gap": output.number(witness.gap)}


# -- the kinds of mechanism --------------------------------------------------------------------


@command(app)
def mechanisms(
    kind: str | None = None,
) -> Result:
    """List the mechanisms and their parameters.

    For each mechanism, show its parameters, the dominating pair that gives its privacy loss, the
    reference for that pair, and the neighbouring relations that are supported.

    Operands:
      kind (KIND): Show this kind in detail.

    Example:
      residua mechanisms
      residua mechanisms laplace
    """
    from residua.mechanisms import KINDS

    chosen = list(KINDS.values()) if kind is None else [descriptions.kind_named(kind)]
    shown = {"mechanisms": [_kind_as_data(cls) for cls in chosen]}
    return Result(shown, lambda: _print_all(chosen) if kind is None else _print_one(chosen[0]))


def _print_all(chosen: list[type["Mechanism"]]) -> None:
    wide = max(len(cls.kind) for cls in chosen) + 2
    columns = max(shutil.get_terminal_size().columns, wide + 40)
    for cls in chosen:
        lines = [
            ", ".join(str(p) for p in descriptions.parameters(cls)),
            cls.pair,
            cls.reference,
            ", ".join(cls.relations),
        ]
        for place, line in enumerate(lines):
            name = cls.kind if place == 0 else ""
            print(
                textwrap.fill(
                    line,
                    columns,
                    initial_indent=f"{name:<{wide}}",
                    subsequent_indent=" " * (wide + 2),
                )
            )
        print()
    print("residua mechanisms KIND shows one in detail; residua describe computes its loss")


def _print_one(cls: type["Mechanism"]) -> None:
    print(descriptions.summary(cls))
    rows = [
        (p.name, p.type, "required" if p.required else p.shown)
        for p in descriptions.parameters(cls)
    ]
    output.print_table(f"\n{cls.kind}", ("parameter", "type", "default"), rows)
    output.print_fields(
        [
            ("pair", cls.pair),
            ("reference", cls.reference),
            ("relations", ", ".join(cls.relations)),
            ("json", descriptions.shape(cls)),
            ("flag", descriptions.usage(cls)),
        ]
    )


def _kind_as_data(cls: type["Mechanism"]) -> dict[str, Any]:
    parameters = []
    for p in descriptions.parameters(cls):
        default = {} if p.required else {"default": p.default}
        parameters.append({"name": p.name, "type": p.type, "required": p.required, **default})
    return {
        "kind": cls.kind,
        "version": cls.version,
        "summary": descriptions.summary(cls),
        "parameters": parameters,
        "pair": cls.pair,
        "reference": cls.reference,
        "relations": list(cls.relations),
    }
