"""`residua describe`: what a mechanism costs, in every direction and every way of counting."""

import math
from collections.abc import Sequence
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from residua.cli import flags, output, pictures, queries
from residua.cli.analysis import reading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from residua.bounds import Interval
    from residua.cli.analysis.reading import Direction

app = typer.Typer(add_completion=False, rich_markup_mode=None)

DELTAS = (1e-3, 1e-6, 1e-9)
ORDERS = (2.0, 4.0, 8.0, 32.0)


class Number(NamedTuple):
    """One number: which, at what, and the interval that contains it."""

    name: str
    at: float | None
    interval: "Interval"

    @property
    def label(self) -> str:
        return self.name if self.at is None else f"{self.name} {self.at:g}"


@app.command(cls=flags.QueryCommand)
def describe(
    query: flags.Queries,
    relation: flags.Relation = None,
    delta: Annotated[
        list[float] | None,
        typer.Option(help="A delta at which to show eps; may be repeated."),
    ] = None,
    eps: Annotated[
        list[float] | None,
        typer.Option(help="An eps at which to show delta; may be repeated."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Draw the curves into this directory.")
    ] = None,
    as_json: output.AsJson = False,
) -> None:
    """Work out what a mechanism costs, and how that is known.

    For each direction of the neighbouring relation: eps at some deltas, the delta curve at some
    eps, Rényi divergences, and the least zCDP and GDP parameters. The exact values lie between lo
    and hi; where the loss had to be discretised, that is in the width too. Divergences and
    parameters are inf as soon as some mass is at infinity, be it ever so small.

    \b
    Example:
      residua describe --laplace scale=2
      residua describe --subsampled-gaussian sigma=1,sampling_rate=0.01,steps=100 --relation replace-one
      residua describe --rdp 'orders=2;4;8,epsilons=0.1;0.2;0.4' --delta 1e-6 --out out
    """  # noqa: E501
    from residua import checks

    mechanism = queries.compose(query)
    deltas = [checks.probability("delta", d) for d in delta or DELTAS]
    wanted = [checks.finite("eps", e) for e in eps or ()]
    relation, directions = reading.directions(mechanism, relation)
    epsilons = [_read(one, "eps at delta", "epsilon_bounds", deltas) for one in directions]
    scale = _scale(epsilons)
    numbers = [
        [
            *first,
            *_read(one, "delta at eps", "delta_bounds", wanted or _several(scale)),
            *_read(one, "Rényi, order", "renyi_bounds", ORDERS),
            *_parameters(one),
        ]
        for one, first in zip(directions, epsilons, strict=True)
    ]
    picture, trouble = None, ""
    if out is not None:
        path = out / f"{mechanism.kind}.png"
        picture, trouble = pictures.save(lambda: _figure(directions, scale), path)
    if as_json:
        output.print_json(
            {
                "mechanism": mechanism.to_dict(),
                "pair": mechanism.pair,
                "pairs": list(mechanism.pairs()),
                "reference": mechanism.reference,
                "relation": relation,
                "directions": [
                    _as_json(one, found) for one, found in zip(directions, numbers, strict=True)
                ],
                "notes": list(mechanism.notes()),
                "picture": None if picture is None else str(picture),
            }
        )
        return
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
            f"\n{_label(one)}: {one.above!r}",
            ("", "lo", "hi", "width"),
            [(n.label, *_shown(n.interval)) for n in found],
        )
    remarks = [("note", note) for note in mechanism.notes()]
    if out is not None:
        remarks.append(("curves", trouble if picture is None else str(picture)))
    if remarks:
        output.print_fields(remarks)


def _read(one: "Direction", name: str, read: str, places: Sequence[float]) -> list[Number]:
    return [Number(name, at, one.bounds(methodcaller(read, at))) for at in places]


def _parameters(one: "Direction") -> list[Number]:
    """The least `rho` and the least `mu` that cover the loss."""
    from residua.pld.residue.gdp_parameter import gdp_parameter_bounds
    from residua.pld.residue.zcdp_parameter import zcdp_parameter_bounds

    return [
        Number("zCDP parameter", None, one.bounds(zcdp_parameter_bounds)),
        Number("GDP parameter", None, one.bounds(gdp_parameter_bounds)),
    ]


def _scale(epsilons: list[list[Number]]) -> float:
    """The largest finite eps among those asked for: where the curves are worth looking at."""
    found = [float(number.interval.hi) for numbers in epsilons for number in numbers]
    return max((eps for eps in found if 0.0 < eps < math.inf), default=1.0)


def _several(scale: float) -> list[float]:
    return [float(f"{scale * part / 4:.2g}") for part in range(5)]


def _figure(directions: list["Direction"], scale: float) -> "Figure":
    import numpy as np

    from residua.figures.curves import curves

    return curves(
        {_label(one): one.above for one in directions},
        np.linspace(0.0, 1.25 * scale, 161),
        {_label(one): one.below for one in directions if one.below != one.above},
    )


def _label(one: "Direction") -> str:
    return " and ".join(one.names)


def _shown(interval: "Interval") -> tuple[str, str, str]:
    lo, hi = float(interval.lo), float(interval.hi)
    return output.below(lo), output.above(hi), output.above(_width(interval), 2)


def _width(interval: "Interval") -> float:
    return float(interval.width) if float(interval.lo) < float(interval.hi) else 0.0


def _as_json(one: "Direction", found: list[Number]) -> dict[str, Any]:
    def rows(name: str, at: str) -> list[dict[str, Any]]:
        return [
            {
                at: n.at,
                "bounds": output.bounds(n.interval),
                "width": output.number(_width(n.interval)),
            }
            for n in found
            if n.name == name
        ]

    def alone(name: str) -> dict[str, Any]:
        number = next(n for n in found if n.name == name)
        width = output.number(_width(number.interval))
        return {"bounds": output.bounds(number.interval), "width": width}

    return {
        "names": list(one.names),
        "pld": repr(one.above),
        "epsilon": rows("eps at delta", "delta"),
        "delta": rows("delta at eps", "eps"),
        "renyi": rows("Rényi, order", "order"),
        "zcdp": alone("zCDP parameter"),
        "gdp": alone("GDP parameter"),
    }
