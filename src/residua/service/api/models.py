"""Models of requests and answers, which validate and describe both.

Requests take no unknown fields and no values of another type. What a mechanism or a filter may
hold is the codecs' business (`mechanisms/codec.py`, `filters/codec.py`): the service passes it on
as it is, so that errors are the library's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field

from residua.records import LONGEST_HOLD

LONGEST_NAME = LONGEST_KEY = 200
"""Characters."""

LAPLACE = {"kind": "laplace", "scale": 2.0, "sensitivity": 1.0}

PRINTABLE = r"^[^\x00-\x1f\x7f]+$"
ADDRESSABLE = r"^(\.{3,}|\.{0,2}[^./\x00-\x1f\x7f][^/\x00-\x1f\x7f]*)$"
"""What the path of a URL can contain: no slash, and neither `.` nor `..`, which browsers fold."""

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, pattern=PRINTABLE)]
Key = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST_KEY,
        pattern=PRINTABLE,
        description="The caller's own id for this request. Sent again, it returns the same "
        "answer, and nothing is spent twice. Without one, a new key is made.",
    ),
]
Reason = Annotated[str, Field(min_length=1, max_length=1000, pattern=PRINTABLE)]
Described = Annotated[dict[str, Any], Field(min_length=1)]


class Request(BaseModel):
    """Base of what comes in."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True
    )


class NewBudget(Request):
    """A budget to create."""

    name: Annotated[
        str, Field(min_length=1, max_length=LONGEST_NAME, pattern=ADDRESSABLE, examples=["web"])
    ]
    filter: Annotated[Described, Field(examples=[{"kind": "gdp_residue", "mu": 1.0}])]
    """A filter as JSON."""
    relation: Annotated[str | None, Field(examples=["add-remove"])] = None
    """The parent's, or add-remove, by default."""
    unit: Annotated[Name | None, Field(examples=["person"])] = None
    """The parent's, or person, by default."""
    parent: Name | None = None
    """The budget of which this one is a quota or partition."""
    partition: Name | None = None
    """The label of a disjoint part of the parent's data."""
    data: Name | None = None
    """A label for the data set."""
    window: Annotated[float | None, Field(ge=1)] = None
    """Seconds, at least 1, after which a new generation begins."""
    shares_data: bool = False
    """Allow a second root budget on the same data label."""


class Retirement(Request):
    """Why a budget is closed."""

    reason: Annotated[Reason, Field(examples=["study ended"])]


class Ask(Request):
    """A query for a budget."""

    mechanism: Annotated[Described, Field(examples=[LAPLACE, {"kind": "gaussian", "sigma": 4.0}])]
    """A mechanism as JSON, the same as everywhere."""
    key: Annotated[Key | None, Field(examples=["q-17"])] = None
    also: Annotated[list[Name], Field(max_length=64)] = Field(default_factory=list)
    """Other budgets that are charged as well; all of them or none."""
    assume_budget_relation: bool = False
    """Take a black box that declares no neighbouring relation to be of the budget's. This is
    recorded."""


class Reserve(Ask):
    """A query that is to be held budget for."""

    ttl: Annotated[float, Field(gt=0, le=LONGEST_HOLD)] = 3600.0
    """Seconds until the hold expires."""


class Commit(Request):
    """A hold whose mechanism is about to start."""

    key: Annotated[Key | None, Field(examples=["q-17-run"])] = None


class Cancel(Request):
    """A hold whose mechanism will not start."""

    reason: Annotated[Reason, Field(examples=["query was withdrawn"])] = "cancelled"


class Plan(Request):
    """A query to be repeated."""

    mechanisms: Annotated[list[Described], Field(min_length=1, max_length=64, examples=[[LAPLACE]])]
    n: Annotated[int, Field(ge=1, le=10**9)] = 1
    """For how many more rounds to fit the noise."""
    most: Annotated[int, Field(ge=0, le=10**6)] = 10000
    """Where counting ends."""


_HEAD = "fd50c61ff87edb72ad58ee102349945d310fac7e3976a1be12d8b09886b1c482"
_BEFORE = "db8a09b9792d8fd47676d47d8e7df1954a54494eaff727188f60ac1733eec0f1"
_WHOLE = {"kind": "gaussian", "sigma": 1.0, "sensitivity": 1.0, "text": "mu² 1 (mu 1)"}
_LEFT = {**_WHOLE, "sensitivity": 0.970412173915536, "text": "mu² 0.941699 (mu 0.970412)"}
_PROMISE = {**_WHOLE, "text": "gaussian(mu=1.0)"}
_STATE = {"kind": "gdp_residue", "left": ["0.941699787283476572"], "of": "00dbce7cda98ab79"}

EXAMPLES: dict[str, Any] = {
    "admitted": True, "after": _STATE, "age": 12.5, "assumed": False,
    "before": {**_STATE, "left": ["1"]}, "budget": "web", "by": "query-engine",
    "capacity": _WHOLE, "component": "gdp_residue", "expires": "2026-11-16T12:43:09.448Z",
    "filter": {"kind": "gdp_residue", "mu": 1.0}, "finished": "2026-11-16T11:45:00+00:00",
    "generation": 0, "group": [{"budget": "web", "prev": _BEFORE, "seq": 1}],
    "guarantee": _PROMISE, "hash": _HEAD, "head": _HEAD,
    "hockey_stick": {"eps": [0.0, 6.17393504667095], "delta": [0.3829249225480298, 1e-09]},
    "holds": [], "how_many": 15, "id": "421948568af34151bd03291b07586236", "key": "q-17",
    "largest_eps": 0.782575,
    "least_noise": [{"kind": "laplace", "scale": 1.80098, "sensitivity": 1.0}],
    "ledger": "df958be28a154114a1eaee93c7c2d343", "left": 0.941699, "live": True,
    "made": "2026-11-16T11:43:09.448Z",
    "mechanism": {"kind": "laplace", "scale": 4.0, "sensitivity": 1.0}, "more_like_last": 15,
    "n": 3, "name": "web", "ok": True, "permissions": ["check", "plan", "read"], "pld": _PROMISE,
    "prev": _BEFORE, "principal": "ana", "proven": 260,
    "reason": "admitted: Laplace(scale=4.0) costs mu² 0.058301", "relation": "add-remove",
    "remaining": _LEFT,
    "request": "b731237c96590d3ed9ab42c818437af71e2576d87cbd1710691c75ee7e9297f6",
    "role": "analyst", "rounds": 15, "scope": ["web", "team-a-*"], "seq": 1, "share": 0.941699,
    "state": _STATE, "status": "ok", "tables": {}, "time": "2026-11-16T11:43:09.448Z",
    "token": "f12a7f2e162b",
    "tradeoff": {"alpha": [0.0, 0.5, 1.0], "beta": [1.0, 0.15865525393145424, 0.0]},
    "type": "spend", "unit": "person", "v": 1, "version": "0.1.0",
}  # fmt: skip
"""Examples of fields by name; those of the same name mean the same."""


class Answer(BaseModel):
    """Base of what goes out."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    example: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Fields whose examples are not those of others of the same name."""


def example(model: type[Answer]) -> dict[str, Any]:
    """An answer of a model, from the examples of its fields."""
    made = {name: _example(name, field.annotation) for name, field in model.model_fields.items()}
    return {**made, **model.example}


def _example(name: str, annotation: Any) -> Any:
    """An example of a field; of counters 0, of flags false, and of what may be missing null."""
    if isinstance(annotation, type) and issubclass(annotation, Answer):
        return example(annotation)
    kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
    if kinds and isinstance(kinds[-1], type) and issubclass(kinds[-1], Answer):
        found = example(kinds[-1])
        return {list: [found], dict: {"web": found}}.get(get_origin(annotation), found)
    return EXAMPLES.get(name, annotation() if annotation in (int, bool) else None)


class Detail(Answer):
    """What is left in one unit of a filter, or of a component of a union."""

    example = {"unit": "mu²", "capacity": 1.0}

    component: str
    unit: str
    left: float
    """Rounded down to six digits."""
    capacity: float
    share: float
    """`left` divided by `capacity`, rounded down."""
    live: bool
    """Whether the component can still admit queries."""


class Balanced(Answer):
    """What is left of a budget, the same for every filter: as far as holds and parents allow."""

    example = {
        "text": "94 % left; largest query eps 0.782575; 15 more like the last admitted one;"
        " guarantee mu 1",
    }

    share: Annotated[float, Field(ge=0, le=1)]
    """The share of the capacity that is left, rounded down; of several units that are all needed
    the smallest, of the components of a union the largest."""
    largest_eps: float
    """The largest `eps` with an `eps`-DP query (`pure_dp`) that is admitted now, rounded down; 0 if
    none is."""
    more_like_last: int | None
    """How many more copies of the last admitted query fit; null before the first one."""
    counting_ended: bool
    """Whether counting ended at `more_like_last`: more may fit."""
    guarantee: dict[str, Any]
    details: list[Detail]
    """What is left by unit; empty where a filter has no unit, or a parent in other units allows
    less."""
    text: str
    """The same in words."""


class Decided(Answer):
    """A budget's answer to a query, before anything is spent."""

    example = {
        "admitted": False,
        "reason": "would be refused: Laplace(scale=0.5) needs mu² 3.24326 (mu 1.80091);"
        " 100 % left (mu² 1); Laplace(scale=1.03571) would fit",
        "remaining": _WHOLE,
        "remaining_is": "left now",
        "binding": "web",
        "largest": {"kind": "laplace", "scale": 1.03571, "sensitivity": 1.0},
    }

    admitted: bool
    reason: str
    """What was asked, what is left, what would fit."""
    remaining: dict[str, Any] | None
    """What is left now, before the query, rounded down; asking for exactly that passes."""
    remaining_is: Literal["left now"]
    """When `remaining` is true: before the query."""
    binding: str | None
    """The budget that refuses."""
    largest: dict[str, Any] | None
    """Where refused: the query of this kind that would have passed."""


class Link(Answer):
    """The head of a budget's chain."""

    seq: int
    head: str


class Receipted(Answer):
    """A recorded decision. A receipt permits one run, and a replayed one none."""

    example = {"remaining_is": "left after this"}

    admitted: bool
    reason: str
    remaining: dict[str, Any] | None
    """What was left after it, rounded down."""
    remaining_is: Literal["left after this", "left beside this", "left now"]
    """When `remaining` is true: after a spend, beside a reservation, or as before where it was
    refused."""
    seq: int
    key: str
    replayed: bool
    head: str
    binding: str | None
    largest: dict[str, Any] | None
    """Where refused: the query of this kind that would have passed, unless that takes long to work
    out."""
    budgets: dict[str, Link]


class Reserved(Receipted):
    """A hold, where it was admitted."""

    example = {"remaining_is": "left beside this"}

    id: str | None
    expires: str | None


class Held(Answer):
    """An open hold."""

    example = {"budgets": ["web"], "mechanism": json.dumps(EXAMPLES["mechanism"])}

    id: str
    budgets: list[str]
    mechanism: str
    """The query as JSON."""
    by: str
    made: str
    expires: str
    age: float
    """Seconds since it was made."""
    overdue: bool


class Holds(Answer):
    """All open holds."""

    items: list[Held]


class Promised(Answer):
    """A guarantee."""

    example = {"text": "one person under add-remove: gaussian(mu=1.0)"}

    text: str
    """For what, and under which condition."""
    pld: dict[str, Any] | None


class Budgeted(Answer):
    """A budget and what is left of it."""

    name: str
    filter: dict[str, Any]
    relation: str
    unit: str
    data: str | None
    parent: str | None
    partition: str | None
    window: float | None
    generation: int
    seq: int
    head: str
    retired: bool
    state: dict[str, Any]
    remaining: dict[str, Any] | None
    capacity: dict[str, Any] | None
    balance: Balanced | None
    """What is left; null if retired."""
    guarantee: Promised
    holds: list[str]
    """The ids of open reservations."""


class Budgets(Answer):
    """Budgets in scope, by name."""

    items: list[Budgeted]
    next: str | None
    """`after` of the next page."""


class Entry(Answer):
    """A record as it was written, and its hash; other fields depend on the type."""

    example = {
        name: EXAMPLES.get(name)
        for name in ("request", "relation", "assumed", "group", "binding", "tables", "holds",
                     "before", "after")
    }  # fmt: skip

    model_config = ConfigDict(extra="allow")
    v: int
    ledger: str
    budget: str
    seq: int
    prev: str
    type: str
    time: str
    by: str
    key: str | None
    admitted: bool | None
    mechanism: dict[str, Any] | None
    reason: str | None
    hash: str


class History(Answer):
    """Records of a budget in order."""

    items: list[Entry]
    next: int | None
    """`after` of the next page."""


class Curve(Answer):
    """One PLD as points, on the safe side of it."""

    hockey_stick: dict[str, list[float]]
    tradeoff: dict[str, list[float]]


class Curves(Answer):
    """A budget as curves."""

    budget: str
    seq: int
    capacity: Curve | None
    spent: Curve | None
    remaining: Curve | None
    guarantee: Curve | None


class Planned(Answer):
    """How many more would fit, and with how little noise."""

    how_many: int
    rounds: int
    counting_ended: bool
    """Whether there may be more."""
    n: int
    least_noise: list[dict[str, Any]] | None
    remaining: dict[str, Any] | None


class Me(Answer):
    """The caller."""

    principal: str
    role: str
    scope: list[str] | None
    token: str | None
    permissions: list[str]


class Health(Answer):
    """The process answers."""

    status: str
    version: str


class Verification(Answer):
    """The result of the last verification."""

    running: bool
    finished: str | None
    ok: bool | None
    proven: int | None
    refuted: int | None
    undecided: int | None
    said: str | None


class ProblemDetails(BaseModel):
    """RFC 9457."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:residua:problem:unknown-budget",
                    "title": "No budget has that name",
                    "status": 404,
                    "detail": "no budget is called 'wen'",
                    "instance": "urn:residua:request:5f0c9d1e2a3b4c5d",
                }
            ]
        }
    )
    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
