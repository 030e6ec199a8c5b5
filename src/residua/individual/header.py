"""The header of a state of subjects' budgets: its filter, its privacy unit and its key types.

It is stored beside the state as JSON and compared whenever a state is opened, so that a state is
only charged under the filter it was created with.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from residua import checks
from residua.errors import ArgumentError
from residua.filters.codec import from_json
from residua.individual.cost_model import IndividualFilter, individual_filter, units_of
from residua.individual.pricing import Units

FORMAT = 1
"""The version of the header, which is stored with a state."""
SUBJECT = "subject"
SUBJECT_EPOCH = "subject-epoch"
KEY_TYPES = ("int64", "string")


@dataclass(frozen=True)
class Header:
    """The settings of a state. Key types are None until the first table sets them."""

    filter: IndividualFilter
    unknown: str
    epochs: bool
    unit: str
    subject_type: str | None = None
    epoch_type: str | None = None

    @property
    def units(self) -> Units:
        return units_of(self.filter)

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns."""
        return ("subject", "epoch") if self.epochs else ("subject",)

    @property
    def key_types(self) -> tuple[str | None, ...]:
        return (self.subject_type, self.epoch_type) if self.epochs else (self.subject_type,)

    @property
    def all_or_none(self) -> bool:
        """Whether a subject takes part with all its epochs or not at all."""
        return self.epochs and self.unit == SUBJECT

    def with_types(self, types: tuple[str, ...]) -> Header:
        """The header with the key types of the first table."""
        epoch = types[1] if self.epochs else None
        return dataclasses.replace(self, subject_type=types[0], epoch_type=epoch)

    def to_dict(self) -> dict[str, Any]:
        made = {"format": FORMAT, "digits": self.units.digits}
        return {**vars(self), **made, "filter": self.filter.to_dict()}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), sort_keys=True)

    @classmethod
    def from_dict(cls, given: Any, where: str) -> Header:
        if not isinstance(given, dict) or given.get("format") != FORMAT:
            found = given.get("format") if isinstance(given, dict) else given
            raise ArgumentError(
                f"{where} must hold a state of format {FORMAT}, got {checks.shown(found)}"
            )
        made = make_header(
            from_json(given["filter"]), given["unknown"], given["epochs"], given["unit"]
        )
        types = (given["subject_type"], given["epoch_type"])
        for kind in types:
            checks.require(kind in (None, *KEY_TYPES), "key type", " or ".join(KEY_TYPES), kind)
        made = dataclasses.replace(made, subject_type=types[0], epoch_type=types[1])
        checks.require(made.units.digits == given["digits"], "digits", "as before", given["digits"])
        return made

    def check_same(self, requested: Header, where: str) -> None:
        """Raise unless this stored header has the settings that are requested."""
        for name in ("filter", "unknown", "epochs", "unit"):
            kept, wanted = getattr(self, name), getattr(requested, name)
            if kept != wanted:
                raise ArgumentError(f"{name} of the state in {where} is {kept!r}, got {wanted!r}")


def make_header(
    filter: Any, unknown: Any, epochs: Any, unit: Any, relation: Any = "add-remove"
) -> Header:
    """Check the settings of a new state, and make its header."""
    chosen = individual_filter(filter)
    checks.one_of("unknown", unknown, ("start", "exclude"))
    has_epochs = checks.flag("epochs", epochs)
    if unit is None:
        unit = SUBJECT_EPOCH if has_epochs else SUBJECT
    checks.one_of("unit", unit, (SUBJECT, SUBJECT_EPOCH))
    if unit == SUBJECT_EPOCH and not has_epochs:
        raise ArgumentError(f"unit {unit!r} needs epochs=True, got epochs={epochs!r}")
    if relation != "add-remove":
        raise ArgumentError(
            "relation must be add-remove, the only relation under which a subject's own loss"
            f" says what its presence reveals, got {checks.shown(relation)}"
        )
    return Header(chosen, unknown, has_epochs, unit)
