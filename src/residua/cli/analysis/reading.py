"""Numbers of a mechanism: for each direction, or for the worse one.

Where the loss had to be discretised there are two PLDs, one above and one below it. The upper end
of an interval is read from the first and the lower end from the second, so its width holds
everything.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from residua.cli import output

if TYPE_CHECKING:
    from residua.bounds import Interval
    from residua.mechanisms import Mechanism
    from residua.pld.pld import Pld

__all__ = ["Direction", "by_direction", "directions", "print_worst"]

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


def by_direction(mechanism: "Mechanism", relation: str | None) -> dict[str, tuple["Pld", "Pld"]]:
    """The PLDs above and below, by direction."""
    above, below = mechanism.plds(relation), mechanism.plds(relation, side="below")
    return {name: (pld, below[name]) for name, pld in above.items()}


def directions(mechanism: "Mechanism", relation: str | None) -> tuple[str, list[Direction]]:
    """The relation that is meant, and its directions; those with equal PLDs are one."""
    grouped: dict[tuple[Pld, Pld], tuple[str, ...]] = {}
    for name, plds in by_direction(mechanism, relation).items():
        grouped[plds] = (*grouped.get(plds, ()), name)
    found = [Direction(names, *plds) for plds, names in grouped.items()]
    return relation or mechanism.supported[0], found


def print_worst(
    mechanism: "Mechanism",
    relation: str | None,
    read: Read,
    wanted: str,
    given: tuple[str, float],
    as_json: bool,
) -> None:
    """Print one number of the worse direction, and say which that is."""
    from residua.bounds import Interval

    relation, every = directions(mechanism, relation)
    numbers = [one.bounds(read) for one in every]
    place = max(range(len(every)), key=lambda i: (numbers[i].hi, numbers[i].lo))
    interval = Interval(max(float(n.lo) for n in numbers), float(numbers[place].hi))
    worse = every[place].names[0] if len(every) > 1 else None
    name, value = given
    if as_json:
        result: dict[str, Any] = {
            "mechanism": mechanism.to_dict(),
            "relation": relation,
            "direction": worse,
            "pld": repr(every[place].above),
            name: value,
            wanted: output.number(float(interval.hi)),
            f"{wanted}_bounds": output.bounds(interval),
        }
        output.print_json(result)
        return
    title = f"{'eps' if wanted == 'epsilon' else wanted} at {name} = {value}"
    output.print_table(
        title + (f", direction {worse} (the worse one), {relation}" if worse else ""),
        ("queries", "lo", "hi"),
        [
            (
                repr(every[place].above),
                output.below(float(interval.lo)),
                output.above(float(interval.hi)),
            )
        ],
    )
