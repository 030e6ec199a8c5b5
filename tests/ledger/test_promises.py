"""The promises of a ledger, each with a test that names it, on both stores."""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import residua as rz
from effort import tries
from residua import mechanisms
from residua.filters.potential.renyi_commit import Commit
from residua.ledger.domain import clock, rules
from residua.ledger.domain.described_query import describe_query
from residua.ledger.domain.receipts import BudgetSnapshots
from residua.mechanisms import (
    ApproximateDp,
    Composed,
    ExponentialMechanism,
    FromAtoms,
    Gaussian,
    Laplace,
    Mechanism,
    PureDp,
    RandomizedResponse,
    SampledWithoutReplacement,
    SelfComposed,
    SubsampledGaussian,
    Zcdp,
)
from residua.work_limit import OPERATIONS, measure_work

Open = Callable[..., rz.Ledger]


def left(ledger: rz.Ledger, name: str) -> Fraction:
    (amount,) = ledger.budget(name).state.left  # type: ignore[attr-defined]
    return Fraction(amount)


# -- a refusal is a value --------------------------------------------------------------------


def test_a_refusal_is_a_value_spends_nothing_and_does_not_end_the_budget(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    assert ledger.spend("b", rz.pure_dp(0.4)).admitted
    refused = ledger.spend("b", rz.pure_dp(0.7))
    assert not refused.admitted and not refused
    assert left(ledger, "b") == Fraction(6, 10)
    assert ledger.spend("b", rz.pure_dp(0.6)).admitted
    assert [r.admitted for r in ledger.history("b")] == [None, True, False, True]


def test_a_refusal_says_what_was_asked_what_is_left_what_binds_and_what_would_fit(
    ledger: rz.Ledger,
) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.spend("b", rz.pure_dp(0.4))
    refused = ledger.spend("b", PureDp(0.7))
    for part in ("PureDp(eps=0.7", "needs eps 0.7", "60 % left (eps 0.6)", "PureDp(eps=0.6", "fit"):
        assert part in refused.reason
    assert refused.binding == "b"
    assert refused.largest is not None
    assert ledger.spend("b", refused.largest).admitted


def test_a_refusal_names_the_budget_that_binds_and_advises_for_all_that_are_charged(
    ledger: rz.Ledger,
) -> None:
    ledger.create_budget("cap", rz.PureFilter(1.0))
    ledger.create_budget("quota", rz.PureFilter(0.5), parent="cap")
    ledger.spend("cap", PureDp(0.7))
    refused = ledger.spend("quota", PureDp(0.9))
    assert refused.binding == "quota"
    assert refused.reason == (
        "budget 'quota': refused: PureDp(eps=0.9) needs eps 0.9;"
        " 100 % left in this budget (eps 0.5); PureDp(eps=0.3) would fit"
    )
    ledger.create_budget("big", rz.PureFilter(2.0))
    both = ledger.check(["big", "quota"], PureDp(2.5))
    assert both.reason.startswith("budget 'big': ")
    assert both.reason.endswith("100 % left in this budget (eps 2); PureDp(eps=0.3) would fit")
    other = ledger.check(["big", "quota"], PureDp(0.1, relation="replace-one"))
    assert other.reason.startswith("budget 'big': would be refused: pure_dp declares replace-one")


def test_a_hold_says_where_more_may_be_held_than_it_costs(ledger: rz.Ledger) -> None:
    ledger.create_budget("fixed", rz.PureFilter(1.0))
    ledger.create_budget("ordered", rz.GdpResidueFilter(1.0))
    for name, more in (("fixed", False), ("ordered", True)):
        hold = ledger.reserve(name, Laplace(10.0))
        assert ("costs" in hold.reason) and (
            hold.reason.endswith(" when it is committed; until then more may be held") is more
        )
        balance = ledger.budget(name).balance
        assert balance is not None and balance.share < 1.0 and balance.details[0].left < 1.0
        assert "held" not in hold.commit().reason


def test_a_refusal_beside_holds_says_what_is_left_beside_them(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.reserve("b", PureDp(0.5))
    for ask in (ledger.spend, ledger.reserve):
        refused = ask("b", PureDp(0.75))
        said = "does not fit; 50 % left beside an open hold (eps 0.5); PureDp(eps=0.5) would fit"
        assert refused.reason == f"refused: PureDp(eps=0.75) {said}"
    ledger.reserve("b", PureDp(0.25))
    refused = ledger.spend("b", PureDp(3.0))
    said = "needs eps 3; 25 % left beside 2 open holds (eps 0.25); PureDp(eps=0.25) would fit"
    assert refused.reason == f"refused: PureDp(eps=3.0) {said}"


_AMOUNTS = st.floats(0.05, 2.0).map(lambda x: round(x, 3))
_FILTERS = _AMOUNTS.flatmap(
    lambda x: st.sampled_from(
        [rz.PureFilter(x), rz.GdpFilter(x), rz.GdpResidueFilter(x), rz.BasicFilter(x, 1e-6)]
    )
)
_QUERIES = _AMOUNTS.flatmap(
    lambda x: st.sampled_from([PureDp(x), Laplace(0.3 / x), ApproximateDp(x, 1e-9), PureDp(9.0)])
)


@settings(max_examples=tries(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    filters=st.lists(_FILTERS, min_size=3, max_size=3),
    steps=st.lists(
        st.tuples(st.sampled_from(["spend", "reserve"]), st.integers(1, 7), _QUERIES), max_size=6
    ),
    named=st.integers(1, 7),
    last=_QUERIES,
)
def test_what_a_refusal_says_would_fit_is_admitted_when_it_is_asked_for(
    filters: list[rz.Filter], steps: list[tuple[str, int, Mechanism]], named: int, last: Mechanism
) -> None:
    """Whatever is spent and held, for groups and quotas; a little more is refused.

    That unless hardly anything is left: costs that are proven upper bounds are loose there.
    """
    names = ("cap", "quota", "other")
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory() as home,
        rz.open_ledger(f"{home}/l.db") as ledger,
    ):
        patch.setattr(rules, "SEARCH_LIMIT", OPERATIONS)
        for name, filter in zip(names, filters, strict=True):
            ledger.create_budget(name, filter, parent="cap" if name == "quota" else None)
        for verb, of, query in [*steps, ("spend", named, last), ("reserve", named, last)]:
            budgets = [name for i, name in enumerate(names) if of >> i & 1]
            answer = getattr(ledger, verb)(budgets, query)
            if answer.admitted:
                continue
            assert " left" in answer.reason
            if len(answer.budgets) > 1:
                assert answer.reason.startswith(f"budget {answer.binding!r}: ")
            advice = answer.reason.rpartition("; ")[2]
            if "would fit" not in advice:
                assert advice == "nothing of this kind fits"
                assert verb == "reserve" or answer.largest is None
                continue
            fits = eval(advice.removesuffix(" would fit"), vars(mechanisms))
            name = "scale" if isinstance(fits, Laplace) else "eps"
            more = getattr(fits, name) * (1 - 1e-4 if name == "scale" else 1 + 1e-4)
            loss = fits.pld().renyi(math.inf) if name == "scale" else fits.eps
            if loss > 1e-3:
                assert not getattr(ledger, verb)(budgets, replace(fits, **{name: more})).admitted
            assert getattr(ledger, verb)(budgets, fits).admitted, answer.reason


# -- what is left ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "filter",
    [
        rz.PureFilter(1.0),
        rz.BasicFilter(1.0, 1e-6),
        rz.GdpFilter(1.0),
        rz.GdpResidueFilter(1.0),
        rz.ApproximateGdpResidueFilter(1.0, 1e-6),
    ],
    ids=lambda f: f.kind,
)
def test_asking_for_exactly_what_is_left_always_passes(
    ledger: rz.Ledger, filter: rz.Filter
) -> None:
    ledger.create_budget("b", filter)
    for query in (Laplace(20.0), PureDp(0.05), PureDp(0.0625)):
        receipt = ledger.spend("b", query)
        assert receipt.admitted
    rest = receipt.remaining
    asked = rest if isinstance(rest, rz.Pld) else rest.pld
    assert ledger.check("b", asked).admitted
    assert ledger.spend("b", asked).admitted


def test_ten_times_a_tenth_fits_one_and_nothing_more(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.BasicFilter(1.0, 0.0))
    receipts = [ledger.spend("b", rz.pure_dp(0.1)) for _ in range(11)]
    assert [r.admitted for r in receipts] == [True] * 10 + [False]
    assert not ledger.spend("b", rz.pure_dp(1e-9)).admitted


# -- write-ahead -----------------------------------------------------------------------------


def test_a_spend_is_seen_by_others_before_it_is_acknowledged(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.GdpResidueFilter(1.0))
    receipt = ledger.spend("b", Laplace(20.0), key="k")
    other = open_()
    assert other.budget("b").head == receipt.head == other.history("b")[-1].hash
    assert other.budget("b").remaining == receipt.remaining


def test_nothing_that_was_committed_comes_back(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.spend("b", rz.pure_dp(0.25))
    hold = ledger.reserve("b", rz.pure_dp(0.25))
    assert hold.commit().admitted
    with pytest.raises(rz.UnknownHold, match="committed"):
        hold.cancel("changed my mind")
    ledger.reserve("b", rz.pure_dp(0.25)).cancel("not needed")
    ledger.retire("b", "done")
    assert left(ledger, "b") == Fraction(1, 2)


def test_check_writes_nothing(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    assert ledger.check("b", rz.pure_dp(1.0)).admitted
    answer = ledger.check("b", rz.pure_dp(1.5))
    assert not answer.admitted and answer.largest == PureDp(1.0)
    assert len(ledger.history("b")) == 1


# -- keys ------------------------------------------------------------------------------------


def test_a_repeated_key_returns_the_same_receipt_and_spends_once(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.GdpResidueFilter(1.0))
    first = ledger.spend("b", Laplace(20.0), key="k")
    ledger.spend("b", Laplace(10.0))
    again = open_().spend("b", Laplace(20.0), key="k")
    assert again.replayed and not first.replayed
    assert (again.seq, again.head, again.key, again.reason, again.admitted, again.budgets) == (
        first.seq, first.head, first.key, first.reason, first.admitted, first.budgets,
    )  # fmt: skip
    assert again.remaining == first.remaining
    assert len(ledger.history("b")) == 3


def test_the_same_key_with_another_request_is_an_error(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.create_budget("c", rz.PureFilter(1.0))
    ledger.spend("b", rz.pure_dp(0.1), key="k")
    for ask in (
        lambda: ledger.spend("b", rz.pure_dp(0.2), key="k"),
        lambda: ledger.spend("c", rz.pure_dp(0.1), key="k"),
        lambda: ledger.spend(["b", "c"], rz.pure_dp(0.1), key="k"),
        lambda: ledger.reserve("b", rz.pure_dp(0.1), key="k"),
    ):
        with pytest.raises(rz.KeyReused):
            ask()
    assert len(ledger.history("b")) == 2 and len(ledger.history("c")) == 1


def test_refusals_are_sticky_for_their_key(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    hold = ledger.reserve("b", rz.pure_dp(0.9))
    assert not ledger.spend("b", rz.pure_dp(0.2), key="k").admitted
    hold.cancel("not needed")
    again = ledger.spend("b", rz.pure_dp(0.2), key="k")
    assert again.replayed and not again.admitted
    assert ledger.spend("b", rz.pure_dp(0.2), key="another").admitted


def test_errors_are_not_sticky(ledger: rz.Ledger) -> None:
    with pytest.raises(rz.UnknownBudget):
        ledger.spend("b", rz.pure_dp(0.2), key="k")
    ledger.create_budget("b", rz.PureFilter(1.0))
    with pytest.raises(rz.ArgumentError):
        ledger.spend("b", Zcdp(0.01), key="k")
    assert ledger.spend("b", rz.pure_dp(0.2), key="k").admitted


def test_keys_belong_to_the_principal(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    alice, bob = ledger.as_principal("alice"), ledger.as_principal("bob")
    assert not alice.spend("b", rz.pure_dp(0.1), key="k").replayed
    assert not bob.spend("b", rz.pure_dp(0.2), key="k").replayed
    assert alice.spend("b", rz.pure_dp(0.1), key="k").replayed
    assert [r.body["by"] for r in ledger.history("b")] == ["local", "alice", "bob"]


def test_without_a_key_every_call_is_a_request_of_its_own(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    first, second = ledger.spend("b", rz.pure_dp(0.1)), ledger.spend("b", rz.pure_dp(0.1))
    assert first.key != second.key and not second.replayed


def test_a_commit_that_is_asked_again_permits_no_second_run(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    hold = ledger.reserve("b", rz.pure_dp(0.25), key="hold")
    first = hold.commit()
    again = hold.commit()
    assert first.admitted and not first.replayed and again.replayed
    assert (again.seq, again.head) == (first.seq, first.head)
    assert left(ledger, "b") == Fraction(3, 4)
    held_again = ledger.reserve("b", rz.pure_dp(0.25), key="hold")
    assert held_again.replayed and held_again.id == hold.id


# -- several budgets -------------------------------------------------------------------------


def test_several_budgets_are_all_charged_or_none(ledger: rz.Ledger) -> None:
    ledger.create_budget("large", rz.PureFilter(1.0))
    ledger.create_budget("small", rz.GdpResidueFilter(0.3))
    both = ledger.spend(["large", "small"], rz.pure_dp(0.1))
    assert both.admitted and set(both.budgets) == {"large", "small"}
    before = left(ledger, "large"), left(ledger, "small")
    refused = ledger.spend(["large", "small"], rz.pure_dp(0.5))
    assert not refused.admitted and refused.binding == "small"
    assert "budget 'small'" in refused.reason
    assert not ledger.reserve(["large", "small"], rz.pure_dp(0.5)).admitted
    assert (left(ledger, "large"), left(ledger, "small")) == before
    assert [r.admitted for r in ledger.history("large")] == [None, True, False, False]


def test_a_group_links_all_heads(ledger: rz.Ledger) -> None:
    for name in ("b", "a"):
        ledger.create_budget(name, rz.PureFilter(1.0))
    before = {name: ledger.budget(name).head for name in ("a", "b")}
    receipt = ledger.spend(["b", "a"], rz.pure_dp(0.1))
    for name in ("a", "b"):
        record = ledger.history(name)[-1]
        assert record.body["group"] == [
            {"budget": each, "seq": 1, "prev": before[each]} for each in ("a", "b")
        ]
        assert receipt.budgets[name] == (record.seq, record.hash)
    assert receipt.head == ledger.budget("a").head, "the first by name"
    assert set(receipt.remaining) == {"a", "b"}


def test_holds_on_several_budgets_are_committed_and_cancelled_together(ledger: rz.Ledger) -> None:
    for name in ("a", "b"):
        ledger.create_budget(name, rz.PureFilter(1.0))
    first = ledger.reserve(["a", "b"], rz.pure_dp(0.3))
    second = ledger.reserve(["a", "b"], rz.pure_dp(0.3))
    assert first.commit().admitted
    assert left(ledger, "a") == left(ledger, "b") == Fraction(7, 10)
    second.cancel("not needed")
    assert ledger.budget("a").holds == ledger.budget("b").holds == ()
    assert [r.type for r in ledger.history("b")] == ["create", "hold", "hold", "commit", "cancel"]


# -- relations -------------------------------------------------------------------------------


def test_a_query_that_declares_another_relation_is_refused(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    refused = ledger.spend("b", PureDp(0.1, relation="replace-one"))
    assert not refused.admitted and refused.reason == (
        "refused: pure_dp declares replace-one, but the budget's relation is add-remove; nothing of"
        " this kind fits"
    )
    sampled = SampledWithoutReplacement(Laplace(10.0), 1000, 10)
    assert "add-remove" in ledger.spend("b", sampled).reason
    ledger.create_budget("r", rz.PureFilter(1.0), relation="replace-one")
    assert ledger.spend("r", PureDp(0.1, relation="replace-one")).admitted


@pytest.mark.parametrize("declared", [{"relation": "replace-one"}, {"unit": "event"}])
def test_nothing_is_recommended_for_another_relation_or_unit(
    ledger: rz.Ledger, declared: dict[str, str]
) -> None:
    ledger.create_budget("b", rz.GdpResidueFilter(mu=1.0))
    ledger.create_budget("also", rz.PureFilter(1.0), **declared)
    ledger.reserve("b", PureDp(0.1))
    query = PureDp(0.01, **declared)
    for budgets in ("b", ["b", "also"]):
        for ask in (ledger.check, ledger.spend, ledger.reserve):
            refused = ask(budgets, query)
            assert not refused.admitted and refused.binding == "b"
            assert refused.largest is None and refused.remainder.largest_soon is None
    replayed = [ledger.spend("b", query, key="k").largest for _ in range(2)]
    assert replayed == [None, None]


def test_a_query_that_declares_another_unit_is_refused(ledger: rz.Ledger) -> None:
    ledger.create_budget("people", rz.RenyiCommitFilter(1.0, 1e-3, 8.0))
    ledger.create_budget("events", rz.PureFilter(1.0), unit="event")
    declared = PureDp(0.1, unit="event")
    nested = Composed((PureDp(0.1), SelfComposed(declared, 2)))
    written = {"kind": "pure_dp", "eps": 0.1, "unit": "event"}
    for query in (declared, nested, written, json.dumps(written), Commit([declared])):
        refused = ledger.spend("people", query)
        assert not refused.admitted and refused.binding == "people"
        assert refused.reason == (
            "refused: pure_dp declares the unit 'event', but the budget's is 'person'; nothing of"
            " this kind fits"
        )
    assert not ledger.reserve("people", declared).admitted
    assert ledger.check(["events", "people"], declared).binding == "people"
    for query in (declared, nested, written):
        assert ledger.spend("events", query).admitted
    assert ledger.spend("people", PureDp(0.1, unit="person")).admitted
    assert ledger.history("events")[1].body["mechanism"] == written
    assert ledger.verify().ok


def test_a_batch_that_is_committed_takes_the_relation_of_the_budget(ledger: rz.Ledger) -> None:
    filter, sampled = rz.RenyiCommitFilter(1.0, 1e-3, 8.0), SubsampledGaussian(2.0, 0.05)
    choice = ExponentialMechanism(1.0, monotonic=True)
    for relation, fits in (("add-remove", True), ("replace-one", False)):
        ledger.create_budget(relation, filter, relation=relation)
        assert ledger.spend(relation, Commit([choice])).admitted is fits
    with pytest.raises(rz.ArgumentError, match="verified"):
        ledger.spend("replace-one", Commit([sampled] * 150))
    refused = ledger.spend("replace-one", Commit([PureDp(0.01, relation="add-remove")] * 2))
    assert not refused.admitted and "declares add-remove" in refused.reason
    assert ledger.spend("replace-one", Commit([RandomizedResponse(eps=0.1)] * 2)).admitted
    assert ledger.verify().ok
    ledger.create_budget("b", filter)
    with pytest.raises(rz.ArgumentError, match="symmetric"):
        ledger.spend("b", Commit([sampled.pld()]))
    with pytest.raises(rz.ArgumentError, match="assume_budget_relation"):
        ledger.spend("b", Commit([Zcdp(0.01)]))


def test_a_black_box_without_a_relation_needs_it_assumed_and_that_is_recorded(
    ledger: rz.Ledger,
) -> None:
    ledger.create_budget("b", rz.ZcdpFilter(1.0))
    with pytest.raises(rz.ArgumentError, match="assume_budget_relation"):
        ledger.spend("b", Zcdp(0.1))
    assert ledger.spend("b", Zcdp(0.1), assume_budget_relation=True).admitted
    assert ledger.spend("b", Zcdp(0.1, relation="add-remove")).admitted
    assert [r.body.get("assumed") for r in ledger.history("b")] == [None, True, False]


def test_a_bare_pld_must_be_symmetric(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.GdpResidueFilter(1.0))
    with pytest.raises(rz.ArgumentError, match="symmetric"):
        ledger.spend("b", rz.subsampled_gaussian(2.0, 0.1))
    atoms = FromAtoms((0.2, -0.1), (0.4, 0.6), relation="add-remove")
    assert ledger.spend("b", atoms).admitted in (True, False)
    assert ledger.spend("b", rz.gaussian(mu=0.1)).admitted
    assert (
        dict(ledger.history("b")[-1].mechanism or {})
        == Gaussian(sigma=1.0, sensitivity=0.1).to_dict()
    )


def test_the_budgets_relation_is_what_the_query_is_charged_under(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.GdpFilter(1.0), relation="replace-one")
    sampled = Gaussian(sigma=4.0)
    ledger.spend("b", sampled)
    expected = rz.GdpFilter(1.0).request(sampled, relation="replace-one").state
    assert ledger.budget("b").state == expected


# -- records ---------------------------------------------------------------------------------


def test_records_are_ordered_by_number_and_chained(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    for eps in (0.1, 2.0, 0.1):
        ledger.spend("b", rz.pure_dp(eps))
    from residua.records import follows

    before = None
    for record in ledger.history("b"):
        assert follows(before, record) is None
        before = record
    assert before is not None and before.hash == ledger.budget("b").head
    assert [r.seq for r in ledger.history("b", after=1, limit=2)] == [2, 3]


def test_time_is_the_databases_and_never_runs_backwards(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    for _ in range(5):
        ledger.spend("b", rz.pure_dp(0.1))
    times = [r.body["time"] for r in ledger.history("b")]
    assert times == sorted(times)
    assert all(clock.text(clock.moment(t)) == t for t in times)


def test_a_record_of_the_future_holds_later_ones_at_its_time(ledger: rz.Ledger) -> None:
    """A clock that was set back: numbers go on, times stand still."""
    from sqlalchemy import update

    from residua.ledger.storage import schema
    from residua.records import Record, canonical

    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.spend("b", rz.pure_dp(0.1))
    head = ledger.history("b")[-1]
    future = Record(canonical({**head.body, "time": "2999-01-01T00:00:00.000Z"}))
    with ledger.store.writing() as connection:
        mine = schema.records.c.seq == 1
        change = update(schema.records).where(mine)
        connection.execute(change.values(text=future.text, hash=future.hash))
        connection.execute(update(schema.budgets).values(head_hash=future.hash))
        connection.commit()
    ledger._committer.anchored.clear()
    ledger.spend("b", rz.pure_dp(0.1))
    assert ledger.history("b")[-1].body["time"] == "2999-01-01T00:00:00.000Z"


def test_refusals_are_recorded_too(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.spend("b", PureDp(5.0), key="too much")
    record = ledger.history("b")[-1]
    assert (record.key, record.admitted, record.body["binding"]) == ("too much", False, "b")
    assert record.body["before"] == record.body["after"] and not record.moves
    assert record.mechanism == {"kind": "pure_dp", "eps": 5.0}


# -- several calls at once -------------------------------------------------------------------


def test_several_calls_share_a_transaction_and_one_that_fails_leaves_the_others_alone(
    ledger: rz.Ledger,
) -> None:
    from batches import Call, many

    ledger.create_budget("b", rz.PureFilter(1.0))
    ask = {"budgets": "b", "query": {"kind": "pure_dp", "eps": 0.4}}
    answers = many(
        ledger,
        [
            Call("spend", {**ask, "key": "k"}),
            Call("spend", {**ask, "query": {"kind": "nonsense"}}),
            Call("spend", {**ask, "budgets": "nobody"}),
            Call("spend", {**ask, "key": "k"}),
            Call("spend", {**ask, "key": "k"}, principal="alice"),
            Call("spend", ask),
            Call("reserve", {**ask, "query": PureDp(0.2), "ttl": 60.0}),
            Call("cancel", {"hold": "none", "reason": "x"}),
        ],
    )
    kinds = [type(a).__name__ for a in answers]
    assert kinds == [
        "Receipt", "ArgumentError", "UnknownBudget", "Receipt", "Receipt", "Receipt",
        "Reservation", "UnknownHold",
    ]  # fmt: skip
    assert [answers[i].admitted for i in (0, 3, 4, 5, 6)] == [True, True, True, False, True]
    assert [answers[i].replayed for i in (0, 3, 4)] == [False, True, False]
    assert answers[6].commit().admitted
    assert left(ledger, "b") == 0


def test_what_is_left_is_worked_out_only_when_it_is_asked_for(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.GdpResidueFilter(1.0))
    receipt = ledger.spend("b", Laplace(20.0))
    assert isinstance(receipt.remainder, BudgetSnapshots) and "remaining" not in vars(
        receipt.remainder
    )


def test_a_hold_expires_by_the_databases_time(
    ledger: rz.Ledger, late: Callable[[rz.Ledger], None]
) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    hold = ledger.reserve("b", rz.pure_dp(0.9), ttl=600.0)
    made = ledger.history("b")[-1].body
    assert made["expires"] == hold.expires == clock.later(made["time"], 600.0)
    assert not ledger.check("b", rz.pure_dp(0.9)).admitted
    late(ledger)
    assert ledger.check("b", rz.pure_dp(0.9)).admitted
    assert ledger.holds()[0].overdue
    with pytest.raises(rz.UnknownHold, match="expired"):
        hold.commit()
    assert ledger.spend("b", rz.pure_dp(0.9)).admitted
    types = [r.type for r in ledger.history("b")]
    assert types == ["create", "hold", "expire", "spend"]
    assert ledger.holds() == ()


def test_a_short_hold_is_soon_over(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    assert ledger.reserve("b", rz.pure_dp(0.9), ttl=0.01).admitted
    while not ledger.check("b", rz.pure_dp(0.9)).admitted:
        time.sleep(0.01)
    assert ledger.spend("b", rz.pure_dp(0.9)).admitted


def test_a_ledger_that_was_closed_spends_nothing(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.close()
    with pytest.raises(rz.StoreUnavailable, match="is closed: open it again"):
        ledger.spend("b", PureDp(0.5))
    assert len(ledger.history("b")) == 1


@pytest.mark.parametrize(
    "query",
    [
        mechanisms.SelfComposed(mechanisms.SubsampledGaussian(sigma=0.7, sampling_rate=0.05), 1000),
        mechanisms.Composed([Laplace(scale=3.0 + 0.01 * number) for number in range(1500)]),
        Laplace(scale=0.1),
    ],
    ids=["sampled", "long list", "plain"],
)
def test_the_search_for_what_would_fit_takes_a_small_share_of_the_limit(query: Mechanism) -> None:
    """And what it recommends is admitted; where it found nothing in time, it says so."""
    filter = rz.AutoFilter(eps=1.0, delta=1e-6)
    snapshot = rules.BudgetSnapshot(filter, filter.initial(), (), "add-remove", "person")
    described = describe_query(query)
    decision, deciding, _ = measure_work(lambda: filter.decide(snapshot.state, query))
    assert not decision.admitted
    decided, whole, _ = measure_work(lambda: rules.spend(snapshot, described))
    assert whole - deciding < 2 * rules.SEARCH_LIMIT < OPERATIONS // 10
    advice = decided.reason.rpartition("; ")[2]
    if advice.endswith(" would fit"):
        fits = eval(advice.removesuffix(" would fit"), vars(mechanisms))
        assert rules.spend(snapshot, describe_query(fits)).admitted
    else:
        assert advice == "what would fit takes too much work to find: read largest"
