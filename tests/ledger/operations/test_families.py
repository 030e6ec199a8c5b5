"""Quotas, partitions, windows and data labels: what is charged, and what is promised."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

import pytest
from sqlalchemy import update

import residua as rz
from ledger.conftest import Open
from residua.ledger.storage import schema
from residua.mechanisms import PureDp


def left(ledger: rz.Ledger, name: str) -> Fraction:
    (amount,) = ledger.budget(name).state.left  # type: ignore[attr-defined]
    return Fraction(amount)


# -- quotas ----------------------------------------------------------------------------------


def test_a_quota_charges_everything_above_it(ledger: rz.Ledger) -> None:
    ledger.create_budget("cap", rz.PureFilter(1.0), unit="device", data="phones")
    ledger.create_budget("team", rz.PureFilter(0.8), parent="cap")
    ledger.create_budget("alice", rz.PureFilter(0.5), parent="team")
    receipt = ledger.spend("alice", rz.pure_dp(0.25))
    assert set(receipt.budgets) == {"alice", "team", "cap"}
    assert [left(ledger, n) for n in ("alice", "team", "cap")] == [
        Fraction(1, 4), Fraction(11, 20), Fraction(3, 4),
    ]  # fmt: skip
    assert ledger.budget("alice").unit == "device" and ledger.budget("alice").data == "phones"


def test_only_the_cap_is_a_guarantee_and_quotas_say_so(ledger: rz.Ledger) -> None:
    ledger.create_budget("cap", rz.GdpResidueFilter(1.0))
    ledger.create_budget("alice", rz.GdpResidueFilter(0.5), parent="cap")
    quota = ledger.budget("alice").guarantee
    assert "allocation only" in quota.text and "'cap'" in quota.text
    assert quota.pld == ledger.budget("cap").guarantee.pld == rz.gaussian(mu=1.0)
    assert "person" in str(quota) and "add-remove" in str(quota)


def test_a_quota_whose_cap_is_used_up_is_refused_by_the_cap(ledger: rz.Ledger) -> None:
    ledger.create_budget("cap", rz.PureFilter(1.0))
    for name in ("alice", "bob"):
        ledger.create_budget(name, rz.PureFilter(0.8), parent="cap")
    assert ledger.spend("alice", rz.pure_dp(0.8)).admitted
    refused = ledger.spend("bob", rz.pure_dp(0.8))
    assert not refused.admitted and refused.binding == "cap"
    assert left(ledger, "bob") == Fraction(8, 10)
    assert refused.remaining == rz.pure_dp(0.2), "of the quota, as far as the cap allows"
    assert ledger.spend("bob", refused.remaining).admitted


def test_two_quotas_in_one_request_charge_the_cap_once(ledger: rz.Ledger) -> None:
    ledger.create_budget("cap", rz.PureFilter(1.0))
    for name in ("alice", "bob"):
        ledger.create_budget(name, rz.PureFilter(0.8), parent="cap")
    assert ledger.spend(["alice", "bob"], rz.pure_dp(0.5)).admitted
    assert [left(ledger, n) for n in ("alice", "bob", "cap")] == [
        Fraction(3, 10), Fraction(3, 10), Fraction(1, 2),
    ]  # fmt: skip


def test_parent_and_child_share_label_unit_and_relation(ledger: rz.Ledger) -> None:
    ledger.create_budget("cap", rz.PureFilter(1.0), data="d")
    for options in ({"data": "e"}, {"unit": "device"}, {"relation": "replace-one"}):
        with pytest.raises(rz.ArgumentError, match="that of the parent"):
            ledger.create_budget("q", rz.PureFilter(1.0), parent="cap", **options)
    with pytest.raises(rz.UnknownBudget):
        ledger.create_budget("q", rz.PureFilter(1.0), parent="nobody")


def test_a_hold_on_a_quota_holds_the_cap_too(ledger: rz.Ledger) -> None:
    ledger.create_budget("cap", rz.PureFilter(1.0))
    for name in ("alice", "bob"):
        ledger.create_budget(name, rz.PureFilter(0.8), parent="cap")
    hold = ledger.reserve("alice", rz.pure_dp(0.8))
    assert not ledger.spend("bob", rz.pure_dp(0.3)).admitted
    assert hold.remaining == rz.identity() or hold.remaining == rz.pure_dp(0.0)
    assert hold.commit().admitted
    assert left(ledger, "cap") == Fraction(2, 10)


# -- data labels -----------------------------------------------------------------------------


def test_a_second_cap_on_the_same_data_needs_a_flag_and_status_reports_both(
    ledger: rz.Ledger,
) -> None:
    ledger.create_budget("first", rz.PureFilter(1.0), data="census")
    with pytest.raises(rz.BudgetExists, match="shares_data"):
        ledger.create_budget("second", rz.PureFilter(0.5), data="census")
    assert [one.pld for one in ledger.status().data["census"]] == [rz.pure_dp(1.0)]
    ledger.create_budget("second", rz.PureFilter(0.5), data="census", shares_data=True)
    (together,) = ledger.status().data["census"]
    assert together.pld == rz.pure_dp(1.0) + rz.pure_dp(0.5)
    assert together.text == (
        f"one person under add-remove: {together.pld!r},"
        " for 'first' and 'second' are caps on the same data, and add up"
    )
    assert ledger.history("second")[0].body["shares_data"] is True


def test_caps_for_other_relations_or_units_do_not_add_up(ledger: rz.Ledger) -> None:
    """A bound for one event, or under replacement, is none for a person who is added."""
    people = {"unit": "person", "relation": "add-remove"}
    events = {"unit": "event", "relation": "replace-one"}
    swapped = {"unit": "person", "relation": "replace-one"}
    for i, about in enumerate((people, events, people, swapped)):
        ledger.create_budget(f"b{i}", rz.PureFilter(2.0**-i), data="d", shares_data=True, **about)
    apart = ledger.status().data["d"]
    assert [one.pld for one in apart] == [
        rz.pure_dp(1.0) + rz.pure_dp(0.25), rz.pure_dp(0.5), rz.pure_dp(0.125),
    ]  # fmt: skip
    subjects = [f"one {about['unit']} under {about['relation']}" for about in (people, events)]
    assert apart[0].text.startswith(f"{subjects[0]}: ") and "'b0' and 'b2'" in apart[0].text
    assert apart[1].text == (
        "one event under replace-one: pure_dp(0.5); what is promised of one person under add-remove"
        " and of one person under replace-one is about other neighbours, and does not add up with"
        " this"
    )


# -- partitions ------------------------------------------------------------------------------


def divided(ledger: rz.Ledger, relation: str = "add-remove", each: float = 1.0) -> None:
    ledger.create_budget("all", rz.PureFilter(2.0), relation=relation, data="users")
    for region in ("north", "south"):
        ledger.create_budget(region, rz.PureFilter(each), parent="all", partition=region)


def test_a_partition_charges_itself_alone(ledger: rz.Ledger) -> None:
    divided(ledger)
    receipt = ledger.spend("north", rz.pure_dp(0.5))
    assert set(receipt.budgets) == {"north"}
    assert [left(ledger, n) for n in ("north", "south", "all")] == [Fraction(1, 2), 1, 2]


def test_a_query_over_several_partitions_charges_each(ledger: rz.Ledger) -> None:
    divided(ledger)
    assert ledger.spend(["north", "south"], rz.pure_dp(0.5)).admitted
    assert [left(ledger, n) for n in ("north", "south")] == [Fraction(1, 2), Fraction(1, 2)]
    with pytest.raises(rz.ArgumentError, match="name every partition"):
        ledger.spend("all", rz.pure_dp(0.5))


def test_the_guarantee_of_the_whole_is_the_supremum_not_the_sum(ledger: rz.Ledger) -> None:
    divided(ledger)
    promise = ledger.budget("all").guarantee
    assert promise.pld <= rz.pure_dp(1.0) and rz.pure_dp(1.0) <= promise.pld
    assert "one partition" in promise.text and "fixed key" in promise.text
    assert "'north'" in ledger.budget("north").guarantee.text


def test_under_replacement_two_partitions_compose(ledger: rz.Ledger) -> None:
    divided(ledger, "replace-one")
    promise = ledger.budget("all").guarantee
    twice = rz.pure_dp(1.0) + rz.pure_dp(1.0)
    assert promise.pld.delta(1.0) == pytest.approx(float(twice.delta(1.0)), rel=1e-9)
    assert "move" in promise.text
    with pytest.raises(rz.ArgumentError, match="move"):
        ledger.create_budget("west", rz.PureFilter(1.5), parent="all", partition="west")


def test_what_may_not_be_divided(ledger: rz.Ledger) -> None:
    divided(ledger)
    with pytest.raises(rz.BudgetExists, match="partition"):
        ledger.create_budget("north 2", rz.PureFilter(1.0), parent="all", partition="north")
    with pytest.raises(rz.ArgumentError, match="not both"):
        ledger.create_budget("alice", rz.PureFilter(1.0), parent="all")
    with pytest.raises(rz.ArgumentError, match="exceed"):
        ledger.create_budget("west", rz.PureFilter(3.0), parent="all", partition="west")
    with pytest.raises(rz.ArgumentError, match="parent"):
        ledger.create_budget("lone", rz.PureFilter(1.0), partition="west")
    ledger.create_budget("whole", rz.PureFilter(1.0))
    ledger.spend("whole", rz.pure_dp(0.1))
    with pytest.raises(rz.ArgumentError, match="spent"):
        ledger.create_budget("part", rz.PureFilter(1.0), parent="whole", partition="p")


def test_a_partition_has_the_window_of_its_parent_or_none(ledger: rz.Ledger) -> None:
    divided(ledger)
    cap = rz.PureFilter(1.0)
    with pytest.raises(rz.ArgumentError, match="window of a partition"):
        ledger.create_budget("west", cap, parent="all", partition="west", window=60.0)
    ledger.create_budget("daily", cap, window=86400.0)
    with pytest.raises(rz.ArgumentError, match="window of a partition"):
        ledger.create_budget("hourly", cap, parent="daily", partition="east", window=3600.0)
    ledger.create_budget("east", cap, parent="daily", partition="east", window=86400.0)
    ledger.create_budget("west", cap, parent="daily", partition="west")
    assert ledger.budget("east").window == 86400.0
    assert ledger.budget("west").window is None


def test_quotas_under_a_partition_charge_the_partition(ledger: rz.Ledger) -> None:
    divided(ledger)
    ledger.create_budget("alice", rz.PureFilter(0.5), parent="north")
    assert set(ledger.spend("alice", rz.pure_dp(0.25)).budgets) == {"alice", "north"}


def test_the_promise_of_a_whole_counts_the_windows_of_parts_of_its_parts(
    ledger: rz.Ledger, late: Callable[[rz.Ledger], None]
) -> None:
    cap = rz.PureFilter(1.0)
    ledger.create_budget("all", cap, data="users", window=3600.0)
    ledger.create_budget("north", cap, parent="all", partition="north", window=3600.0)
    ledger.create_budget("town", cap, parent="north", partition="town", window=3600.0)
    ledger.create_budget("coast", rz.PureFilter(0.5), parent="north", partition="coast")
    for windows in (1, 2, 3):
        assert ledger.spend("town", rz.pure_dp(1.0)).admitted
        promised = windows * rz.pure_dp(1.0)
        for name in ("town", "north", "all"):
            assert ledger.budget(name).guarantee.pld == promised, name
        assert [one.pld for one in ledger.status().data["users"]] == [promised]
        assert f"{promised!r}, the supremum" in ledger.budget("all").guarantee.text
        late(ledger)
    assert ledger.budget("all").guarantee.pld == ledger.budget("town").guarantee.pld


# -- windows ---------------------------------------------------------------------------------


def test_a_window_that_is_over_begins_anew_and_the_promise_says_how_often(
    ledger: rz.Ledger, late: Callable[[rz.Ledger], None]
) -> None:
    ledger.create_budget("daily", rz.PureFilter(1.0), window=86400.0)
    assert ledger.spend("daily", rz.pure_dp(1.0)).admitted
    assert ledger.budget("daily").guarantee.pld == rz.pure_dp(1.0)
    late(ledger)
    assert ledger.budget("daily").generation == 1, "shown before anybody asks"
    assert ledger.spend("daily", rz.pure_dp(0.7)).admitted
    budget = ledger.budget("daily")
    assert budget.generation == 1
    assert budget.guarantee.pld == 2 * rz.pure_dp(1.0)
    assert "2 windows" in budget.guarantee.text
    assert not ledger.spend("daily", rz.pure_dp(0.7)).admitted, "the new window is not over"
    types = [r.type for r in ledger.history("daily")]
    assert types[:3] == ["create", "spend", "refresh"]


def test_holds_that_are_open_at_a_refresh_expire_everywhere(ledger: rz.Ledger) -> None:
    ledger.create_budget("short", rz.PureFilter(1.0), window=1.0)
    ledger.create_budget("cap", rz.PureFilter(5.0))
    hold = ledger.reserve(["short", "cap"], rz.pure_dp(0.5))
    before = ledger.budget("short").generation
    while ledger.refresh("short").generation == before:
        time.sleep(0.02)
    with pytest.raises(rz.UnknownHold, match="expired"):
        hold.commit()
    assert ledger.budget("cap").holds == ()
    assert [r.type for r in ledger.history("cap")] == ["create", "hold", "expire"]
    types = [r.type for r in ledger.history("short")]
    assert types.index("expire") < len(types) - 1 - types[::-1].index("refresh")


def test_nothing_is_refreshed_early_or_without_a_window(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.create_budget("yearly", rz.PureFilter(1.0), window=3e7)
    ledger.spend("yearly", rz.pure_dp(1.0))
    with pytest.raises(rz.LedgerError, match="stays spent"):
        ledger.refresh("b")
    assert ledger.refresh("yearly").generation == 0
    assert not ledger.spend("yearly", rz.pure_dp(0.1)).admitted


# -- retiring --------------------------------------------------------------------------------


def test_a_retired_budget_is_closed_with_its_holds_and_for_its_quotas(ledger: rz.Ledger) -> None:
    ledger.create_budget("cap", rz.PureFilter(1.0))
    ledger.create_budget("other", rz.PureFilter(1.0))
    ledger.create_budget("alice", rz.PureFilter(1.0), parent="cap")
    hold = ledger.reserve(["cap", "other"], rz.pure_dp(0.1))
    ledger.retire("cap", "the study is over")
    for name in ("cap", "alice"):
        with pytest.raises(rz.RetiredBudget, match="'cap'"):
            ledger.spend(name, PureDp(0.1))
        assert ledger.budget(name).remaining is None
    with pytest.raises(rz.RetiredBudget):
        ledger.retire("cap", "again")
    with pytest.raises(rz.RetiredBudget):
        ledger.create_budget("bob", rz.PureFilter(1.0), parent="cap")
    with pytest.raises(rz.UnknownHold):
        hold.commit()
    assert ledger.budget("other").holds == ()
    assert ledger.history("cap")[-1].reason == "the study is over"
    assert ledger.status().budgets[0].retired


def test_a_retired_whole_closes_its_partitions_and_their_holds(ledger: rz.Ledger) -> None:
    """They do not charge it, and are under it all the same; so is whatever is under them."""
    ledger.create_budget("all", rz.PureFilter(1.0))
    for name in ("north", "south"):
        ledger.create_budget(name, rz.PureFilter(1.0), parent="all", partition=name)
    ledger.create_budget("quota", rz.PureFilter(1.0), parent="north")
    assert ledger.spend("quota", PureDp(0.1)).admitted
    hold = ledger.reserve(["quota", "south"], rz.pure_dp(0.1))
    ledger.retire("all", "the study is over")
    for name in ("north", "south", "quota"):
        for ask in (ledger.spend, ledger.check, ledger.reserve):
            with pytest.raises(rz.RetiredBudget, match="'all'"):
                ask(name, PureDp(0.1))
        assert ledger.budget(name).remaining is None and not ledger.budget(name).retired
    with pytest.raises(rz.RetiredBudget, match="'all'"):
        hold.commit()
    with pytest.raises(rz.RetiredBudget, match="'all'"):
        ledger.create_budget("more", rz.PureFilter(1.0), parent="north")
    hold.cancel("it never ran")
    assert ledger.holds() == ()


@pytest.mark.parametrize("ends", ["soon", "", "2026-13-45T99:99:99.999Z "])
def test_a_window_whose_end_is_no_time_is_a_broken_record(open_: Open, ends: str) -> None:
    ledger = open_()
    ledger.create_budget("w", rz.PureFilter(1.0), window=3600.0)
    with ledger.store.writing() as connection:
        connection.execute(update(schema.budgets).values(window_ends=ends))
        connection.commit()
    again = open_()
    for ask in (lambda: again.spend("w", rz.pure_dp(0.25)), lambda: again.budget("w")):
        with pytest.raises(rz.BrokenRecord, match="a time in the store"):
            ask()
