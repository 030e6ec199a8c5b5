"""Convert the ledger's answers to JSON data and back.

The same data is what the service sends, what commands print with `--json`, and what a client turns
into the ledger's own values again.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from residua.errors import ResiduaError, ServiceError
from residua.filters import budgets as amounts
from residua.filters.balance import Balance, Detail
from residua.filters.codec import from_dict as filter_from_dict
from residua.ledger.api.views import Budget, Promise
from residua.ledger.domain.receipts import (
    Answer,
    Hold,
    Receipt,
    Reservation,
    plain,
)
from residua.mechanisms.codec import from_dict
from residua.mechanisms.mechanism import Mechanism
from residua.pld.constructors import approximate_dp
from residua.pld.pld import Pld
from residua.records import FIELDS, Record, canonical, read

_NULLS = ("key", "admitted", "mechanism", "reason")
_COMMON = ("v", "ledger", "budget", "seq", "prev", "type", "time", "by")
BUDGET_FIELDS = (
    "relation", "unit", "data", "parent", "partition", "window", "generation", "seq", "head",
    "retired",
)  # fmt: skip
"""Fields of a budget that are JSON as they are."""
_RECEIPT_FIELDS = ("seq", "key", "replayed", "head")
_AMOUNTS = {
    "approximate_dp_budget": amounts.ApproximateDpBudget,
    "renyi_budget": amounts.RenyiBudget,
    "renyi_curve_budget": amounts.RenyiCurveBudget,
    "zcdp_budget": amounts.ZcdpBudget,
}


# -- out ------------------------------------------------------------------------------------


def decision_to_dict(decision: Answer | Receipt | Reservation) -> dict[str, Any]:
    """The answer of a check, a receipt or a reservation as data."""
    snapshots, is_check = decision.remainder, isinstance(decision, Answer)
    moment, largest = "left now", None
    if not decision.admitted:
        largest = snapshots.largest if is_check else snapshots.largest_soon
    elif not is_check:
        is_hold = isinstance(decision, Reservation)
        moment = "left beside this" if is_hold else "left after this"
    durable = () if is_check else _RECEIPT_FIELDS
    shown = {
        "admitted": decision.admitted,
        "reason": decision.reason,
        "remaining": snapshots.remaining_data,
        "remaining_is": moment,
        **{name: getattr(decision, name) for name in durable},
        "binding": decision.binding,
        "largest": largest.to_dict() if isinstance(largest, Mechanism) else None,
    }
    if not isinstance(decision, Answer):
        links = decision.budgets.items()
        shown["budgets"] = {name: {"seq": seq, "head": head} for name, (seq, head) in links}
    if isinstance(decision, Reservation):
        shown |= {"id": decision.id, "expires": decision.expires}
    return shown


def budget_to_dict(budget: Budget) -> dict[str, Any]:
    """A budget as data; a budget that came from a service, as it came."""
    if isinstance(budget, ServedBudget):
        return dict(budget._said)
    promise = budget.guarantee
    return {
        "name": budget.name,
        "filter": budget.filter.to_dict(),
        **{name: getattr(budget, name) for name in BUDGET_FIELDS},
        "state": json.loads(budget.filter.state_to_json(budget.state)),
        "remaining": plain(budget.remaining, budget.remaining_words),
        "capacity": plain(budget.capacity, budget.capacity_words),
        "balance": None if budget.balance is None else budget.balance.to_dict(),
        "guarantee": {"text": promise.text, "pld": plain(promise.pld)},
        "holds": list(budget.holds),
    }


def record_to_dict(record: Record) -> dict[str, Any]:
    """A record with its hash; what every reader asks for is there, if only as null."""
    return {**dict.fromkeys(_NULLS), **record.body, "hash": record.hash}


def plain_data(value: Any) -> Any:
    """Anything that the ledger reports, as JSON data."""
    if isinstance(value, Promise):
        return value.text
    if isinstance(value, Pld | Mechanism):
        return plain(value)
    if isinstance(value, Budget):
        return budget_to_dict(value)
    if isinstance(value, Balance):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(name): plain_data(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    if dataclasses.is_dataclass(value):
        return {each.name: plain_data(getattr(value, each.name)) for each in fields(value)}
    finite = isinstance(value, float) and math.isfinite(value)
    return value if finite or value is None or isinstance(value, bool | int | str) else str(value)


# -- back -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Said:
    """A service's statement about the budgets, in place of their snapshots."""

    left: Any
    fits: Any = None
    balance: None = None
    """A service works it out where it shows a budget, and not for every answer."""

    @cached_property
    def remaining(self) -> Any:
        """What was left."""
        return value_of(self.left)

    @property
    def remaining_data(self) -> Any:
        """The same as the service sent it."""
        return self.left

    @cached_property
    def largest(self) -> Mechanism | None:
        """What would have fitted."""
        return None if self.fits is None else from_dict(self.fits)

    @property
    def largest_soon(self) -> Mechanism | None:
        """The same."""
        return self.largest


@dataclass(frozen=True)
class ServedBalance(Balance):
    """A balance as a service shows it: in its words, also where a guarantee has no description."""

    _said: Mapping[str, Any] = dataclasses.field(repr=False, compare=False, kw_only=True)

    @property
    def text(self) -> str:
        return str(self._said["text"])

    def to_dict(self) -> dict[str, Any]:
        return dict(self._said)


@dataclass(frozen=True)
class ServedBudget(Budget):
    """A budget as a service shows it."""

    _said: Mapping[str, Any] = dataclasses.field(repr=False, compare=False, kw_only=True)

    @cached_property
    def remaining(self) -> Any:
        return value_of(self._said["remaining"])

    @property
    def remaining_words(self) -> str:
        left = self._said["remaining"]
        return "" if left is None else str(left["text"])

    @cached_property
    def balance(self) -> Balance | None:
        said = self._said["balance"]
        if said is None:
            return None
        # What promises more than this budget does is not known here; this is on the safe side.
        promise = approximate_dp(0.0, 1.0) if self.parent else self.filter.guarantee
        return balance_from(said, promise)

    @cached_property
    def guarantee(self) -> Promise:
        promise = self._said["guarantee"]
        pld = value_of(promise["pld"])
        return Promise(pld if isinstance(pld, Pld) else self.filter.guarantee, promise["text"])


def answer_from(data: Any) -> Answer:
    """The answer of a check from data."""
    given = _Reading(data)
    left = Said(given["remaining"], given["largest"])
    return Answer(given["admitted"], given["reason"], given["binding"], remainder=left)


def receipt_from(data: Any) -> Receipt:
    """A durable decision."""
    return Receipt(**_receipt(_Reading(data)))


def reservation_from(data: Any, desk: Any) -> Reservation:
    """A reservation, which `desk` commits or cancels."""
    given = _Reading(data)
    return Reservation(**_receipt(given), id=given["id"], expires=given["expires"], ledger=desk)


def _receipt(given: _Reading) -> dict[str, Any]:
    links = {name: (link["seq"], link["head"]) for name, link in given["budgets"].items()}
    fields = {name: given[name] for name in ("admitted", "reason", "binding", *_RECEIPT_FIELDS)}
    # An older service does not send the largest query that fits.
    left = Said(given["remaining"], given.get("largest"))
    return {**fields, "budgets": links, "remainder": left}


def hold_from(data: Any) -> Hold:
    """An open reservation."""
    given = _Reading(data)
    names = [field.name for field in dataclasses.fields(Hold)]
    return Hold(**{**{name: given[name] for name in names}, "budgets": tuple(given["budgets"])})


def budget_from(data: Any) -> Budget:
    """A budget as it stood."""
    given = _Reading(data)
    filter = filter_from_dict(given["filter"])
    return ServedBudget(
        **{name: given[name] for name in ("name", *BUDGET_FIELDS)},
        filter=filter,
        state=filter.state_from_json(given["state"]),
        holds=tuple(given["holds"]),
        _said=data,
    )


def record_from(data: Any) -> Record:
    """A record; its hash must agree."""
    given = _Reading(data)
    fields = FIELDS.get(given["type"], frozenset())
    found = read(canonical({name: given[name] for name in (*_COMMON, *fields)}))
    if found.hash != given["hash"]:
        raise ServiceError(f"record {found.budget!r} {found.seq} does not hash to what was said")
    return found


def balance_from(data: Any, guarantee: Pld) -> Balance:
    """A balance; `guarantee` stands for one that has no description."""
    given = _Reading(data)
    said = value_of(given["guarantee"])
    return ServedBalance(
        share=given["share"],
        guarantee=said if isinstance(said, Pld) else guarantee,
        largest_eps=given["largest_eps"],
        more_like_last=given["more_like_last"],
        counting_ended=given["counting_ended"],
        details=tuple(Detail(**one) for one in given["details"]),
        _said=data,
    )


def value_of(data: Any) -> Any:
    """What is left, from what `plain` made of it; text where it has no description."""
    if data is None or isinstance(data, str):
        return data
    if not isinstance(data.get("kind"), str):
        return {name: value_of(each) for name, each in data.items()}
    fields = {name: each for name, each in data.items() if name != "text"}
    kind = fields["kind"]
    try:
        if kind in _AMOUNTS:
            del fields["kind"]
            return _AMOUNTS[kind](
                **{n: tuple(v) if isinstance(v, list) else v for n, v in fields.items()}
            )
        return from_dict(fields).pld()
    except (ResiduaError, TypeError):
        return data.get("text")


class _Reading(dict[str, Any]):
    """Fields of an answer; one that is missing means that something else answered."""

    def __init__(self, data: Any):
        if not isinstance(data, Mapping):
            raise ServiceError("the answer did not come from a budget service")
        super().__init__(data)

    def __missing__(self, name: str) -> Any:
        raise ServiceError(f"the answer lacks {name!r}: the service has another version")
