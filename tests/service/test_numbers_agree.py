"""Whatever was spent or is held, all that is shown of one budget at one moment agrees.

The page, the JSON of the service and of the commands, and the commands' text are read by what they
print, over every kind of filter that can be stored.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import residua as rz
from cli.running import run, run_json
from effort import tries
from filters.catalogue import CATALOGUE, DESCRIBED
from residua import mechanisms as m
from residua.filters import balance as balances
from residua.filters.query import as_mechanism
from residua.mechanisms.codec import from_dict
from residua.service.api.values import value_of
from service.running import Service, serving

KINDS = [name for name in DESCRIBED if name != "natural"]
"""The natural filter keeps no amounts: it says in words what is left."""
RELATION = "add-remove"
SIX = Context(prec=6, rounding=ROUND_FLOOR)

sizes = st.integers(1, 250_000).map(lambda n: n / 1e6)
FEW = st.sampled_from([0.05, 0.123457, 0.2])
"""For filters that lay out tables for what they are asked first."""
TURNED: dict[str, Callable[[float], m.Mechanism]] = {
    "pure_dp": lambda size: m.PureDp(eps=size, relation=RELATION),
    "laplace": lambda size: m.Laplace(scale=1.0 / size),
    "gaussian": lambda size: m.Gaussian(sigma=1.0 / size),
    "gdp": lambda size: m.Gdp(mu=size, relation=RELATION),
    "zcdp": lambda size: m.Zcdp(rho=size * size, relation=RELATION),
}
"""Queries by their size."""
WITH_RHO = ("renyi", "renyi_curve", "zcdp", "approximate_zcdp", "renyi_commit")
"""Elsewhere a bound in `rho` takes long to weigh."""


def turned(kind: str) -> list[Callable[[float], m.Mechanism]]:
    """The queries that are asked of a filter."""
    return [make for name, make in TURNED.items() if name != "zcdp" or kind in WITH_RHO]


def steps(kind: str) -> st.SearchStrategy[list[tuple[str, m.Mechanism]]]:
    some = FEW if kind in ("plan", "menu", "auto") else sizes
    query = st.builds(lambda make, size: make(size), st.sampled_from(turned(kind)), some)
    return st.lists(st.tuples(st.sampled_from(["spend", "spend", "reserve"]), query), max_size=4)


SAME_UNIT = {
    "pure_dp": r"(?:\((?:pure )?eps |pure_dp\()(NUMBER)",
    "zcdp": r"\(rho (NUMBER)",
}
"""Where the words for what is left have the unit of a query's own parameter."""


@contextmanager
def fresh() -> Iterator[tuple[Service, httpx.Client]]:
    """A service without budgets, and a browser that is logged in."""
    with (
        tempfile.TemporaryDirectory() as home,
        # On a busy machine workers, which stand back for everyone else, may need long.
        serving(f"sqlite:///{home}/b.db", Path(home) / "anchor", compute_within=120.0) as service,
        httpx.Client(base_url=service.url, timeout=200) as visitor,
    ):
        visitor.post("/login", data={"token": service.tokens["admin"]})
        yield service, visitor


@pytest.mark.parametrize("kind", KINDS)
def test_one_budget(kind: str) -> None:
    numbers = itertools.count(100)
    with fresh() as (service, visitor), service.client(timeout=200.0) as client:

        @settings(max_examples=tries(3))
        @given(steps(kind))
        def agrees(asked: list[tuple[str, m.Mechanism]]) -> None:
            name = f"web-{next(numbers)}"
            client.create_budget(name, CATALOGUE[kind].make())
            for verb, query in asked:
                getattr(client, verb)(name, query)
            shown = everything_agrees(service, visitor, name)
            own_state_is_shown(shown)
            what_is_left_passes(client, kind, name, shown)
            refusals_agree(client, kind, name)

        agrees()


@pytest.mark.parametrize("kind", ["pure", "basic", "zcdp", "renyi", "gdp_residue", "auto"])
def test_a_quota_under_a_cap(kind: str) -> None:
    """What is left of the quota is what the cap still allows, in every place."""
    numbers = itertools.count(100)
    with fresh() as (service, visitor), service.client(timeout=200.0) as client:

        @settings(max_examples=tries(2))
        @given(steps(kind), steps(kind))
        def agrees(
            above: list[tuple[str, m.Mechanism]], asked: list[tuple[str, m.Mechanism]]
        ) -> None:
            number = next(numbers)
            cap, quota = f"cap-{number}", f"quota-{number}"
            client.create_budget(cap, CATALOGUE[kind].make())
            client.create_budget(quota, CATALOGUE[kind].make(), parent=cap)
            for name, given_ in ((quota, asked), (cap, above)):
                for verb, query in given_:
                    getattr(client, verb)(name, query)
            shown = everything_agrees(service, visitor, quota)
            everything_agrees(service, visitor, cap)
            what_is_left_passes(client, kind, quota, shown)
            refusals_agree(client, kind, quota)

        agrees()


def test_another_kind_of_cap_is_shown_in_its_own_words() -> None:
    """A Gaussian quota under a pure cap has `R_eps` left, not `mu` 0."""
    with fresh() as (service, visitor), service.client(timeout=200.0) as client:
        client.create_budget("cap", rz.PureFilter(1.0))
        client.create_budget("web", rz.GdpResidueFilter(1.0), parent="cap")
        client.spend("cap", m.PureDp(eps=0.8, relation=RELATION))
        assert client.check("web", m.PureDp(eps=0.2, relation=RELATION)).admitted
        shown = service.http("GET", "/v1/budgets/web").json()
        balance = shown["balance"]
        assert balance["details"] == [] and balance["largest_eps"] == 0.2
        assert 0.0 < balance["share"] < 1.0
        text, percent, words = amount_and_share(visitor, "web")
        assert text == f"{percent} % left now" and "; largest query eps 0.2; " in words
        everything_agrees(service, visitor, "web")


def everything_agrees(service: Service, visitor: httpx.Client, name: str) -> dict[str, Any]:
    """All that is shown of a budget, as JSON, after comparing it with everything else."""
    shown: dict[str, Any] = service.http("GET", f"/v1/budgets/{name}").json()
    at = ("--store", service.url, "--token", service.tokens["admin"])
    assert run_json("budget", "show", name, *at) == shown
    status = {one["name"]: one for one in run_json("status", *at)["budgets"]}
    assert status[name] == shown

    balance = shown["balance"]
    with service.client(timeout=200.0) as client:
        served = client.budget(name).balance
    assert served is not None and served.to_dict() == balance, "in Python"
    for one in balance["details"]:
        assert 0.0 <= one["left"] <= one["capacity"]
        exact = Fraction(repr(one["left"])) / Fraction(repr(one["capacity"] or 1.0))
        assert 0 <= exact - Fraction(repr(one["share"])) <= exact / 10**5
    live = [one["share"] for one in balance["details"] if one["live"] and one["capacity"]]
    assert not live or min(live) <= balance["share"] <= max(live)

    text, share, words = amount_and_share(visitor, name)
    assert share == math.floor(100 * Fraction(repr(balance["share"])))
    assert words == balance["text"]
    assert text == f"{balances.share_words(served)} left now"
    rows = [
        line.split(maxsplit=1) for line in run("budget", "show", name, *at).splitlines() if line
    ]
    assert dict(rows)["balance"] == balance["text"]
    assert not {"remaining", "capacity"} & {row[0] for row in rows}, "other units beside the share"
    details = [row[1] for row in rows if row[0] == "details"]
    assert details == list(balances.detail_words(served.details))
    listed = run("budget", "list", *at).splitlines()
    assert any(line.startswith(name) and line.endswith(balance["text"]) for line in listed)
    said = run("status", *at).splitlines()
    assert any(line.startswith(f"budget {name} ") and balance["text"] in line for line in said)
    return shown


def amount_and_share(visitor: httpx.Client, name: str) -> tuple[str, int, str]:
    """What the page says is left, the percentage of its gauge and the words below it."""
    page = visitor.get(f"/budgets/{name}").text
    if "working out what is left" in page:
        page = visitor.get(f"/budgets/{name}/left").text
    amount = re.search(r'<p class="amount">(.*?)</p>', page, re.DOTALL)
    assert amount is not None
    words = " ".join(unescape(re.sub(r"<[^>]*>", "", amount[1])).split())
    spoken = re.search(r'aria-label="(less than 1|\d+) percent left', page)
    assert spoken is not None
    seen = re.search(r'<span aria-hidden="true">((?:< |&lt; )?\d+) %(.*?)</span>', page)
    assert seen is not None
    percent = 0 if spoken[1] == "less than 1" else int(spoken[1])
    assert percent == (0 if "<" in unescape(seen[1]) else int(seen[1]))
    width = re.search(r'<rect class="fill[^"]*" width="([\d.]+)"', page)
    assert width is not None and abs(float(width[1]) - percent) <= 1.0
    balance = re.search(r'<p class="quiet balance">(.*?)</p>', page)
    assert balance is not None
    assert unescape(balance[1]).startswith(f"{unescape(seen[1])} %{unescape(seen[2])} left; ")
    return words, percent, unescape(balance[1])


def own_state_is_shown(shown: dict[str, Any]) -> None:
    """Sums: what is shown is the exact amount in the state, rounded down to six digits."""
    left = shown["state"].get("left")
    exact = isinstance(left, list) and all(isinstance(one, str) for one in left)
    if exact and not shown["holds"]:
        for text, one in zip(left, shown["balance"]["details"], strict=True):
            whole = Fraction(text)
            down = SIX.divide(Decimal(whole.numerator), Decimal(whole.denominator))
            assert Decimal(repr(one["left"])) == down


def what_is_left_passes(client: rz.Client, kind: str, name: str, shown: dict[str, Any]) -> None:
    """Asking for exactly what `remaining` reports is admitted, and so is the largest query."""
    balance = shown["balance"]
    eps, more = balance["largest_eps"], balance["more_like_last"]
    if eps:
        assert client.check(name, m.PureDp(eps=eps, relation=RELATION)).admitted
        above = client.check(name, m.PureDp(eps=eps * 1.0001, relation=RELATION))
        assert not above.admitted or eps >= 1.0
        assert above.balance is None, "it is read where a budget is shown"
    last = [one for one in client.history(name) if one.type in ("spend", "commit") and one.admitted]
    assert (more is None) == (last == [])
    if last:
        query = from_dict(last[-1].body["mechanism"])
        assert client.check(name, query).admitted == (more > 0)
    whole = CATALOGUE[kind].whole
    # Beside holds a plan has something else left than a part of itself, which no proof covers.
    beside = kind == "plan" and shown["holds"]
    if whole is None or beside or not balance["largest_eps"]:
        return
    query = as_mechanism(whole(value_of(shown["remaining"])))
    answer = client.check(name, query, assume_budget_relation=True)
    assert answer.admitted, (shown["remaining"], answer.reason)


def refusals_agree(client: rz.Client, kind: str, name: str) -> None:
    """What a refusal recommends is admitted, and is not more than it says is left."""
    for query in (make(7.0) for make in turned(kind)):
        refused = client.check(name, query)
        assert not refused.admitted and refused.reason.count("would be refused: ") == 1
        fits = refused.largest
        if fits is None:
            continue
        assert client.check(name, fits).admitted, refused.reason
        left = refused.reason.split("; ")[-2]
        assert " left" in left
        pattern = SAME_UNIT.get(query.kind, "$^").replace("NUMBER", r"\d[\d.e+-]*")
        found = re.search(pattern, left)
        # What is shown there of `auto` is one component's; another one may admit a little more.
        if found and kind != "auto":
            (size,) = json.loads(fits.to_json()).keys() & {"eps", "rho"}
            assert Decimal(repr(getattr(fits, size))) <= Decimal(found[1]), refused.reason
