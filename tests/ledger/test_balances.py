"""A balance in a ledger is what could really be spent: beside holds, and under ancestors."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import residua as rz
from effort import tries
from residua import mechanisms as m

pytestmark = pytest.mark.needs("sqlalchemy")

FILTERS: dict[str, Callable[[], rz.Filter]] = {
    "pure": lambda: rz.PureFilter(1.0),
    "small": lambda: rz.PureFilter(0.4),
    "basic": lambda: rz.BasicFilter(0.8, 1e-6),
    "zcdp": lambda: rz.ZcdpFilter(0.1),
    "renyi": lambda: rz.RenyiFilter(4.0, 0.3),
    "gdp": lambda: rz.GdpFilter(0.7),
    "gdp_residue": lambda: rz.GdpResidueFilter(0.6),
    "target_residue": lambda: rz.TargetResidueFilter(0.7, 1e-6),
    "union": lambda: rz.UnionFilter([rz.PureFilter(0.7), rz.GdpResidueFilter(0.2)]),
}
QUERY = st.sampled_from([0.02, 0.05, 0.11, 0.2]).map(lambda eps: m.PureDp(eps=eps))
STEP = st.tuples(st.sampled_from(["cap", "quota"]), st.sampled_from(["spend", "reserve"]), QUERY)
SMALL = 8


@settings(max_examples=tries(25))
@given(st.sampled_from(list(FILTERS)), st.sampled_from(list(FILTERS)), st.lists(STEP, max_size=6))
def test_what_a_balance_says_can_be_spent(
    above: str, own: str, steps: list[tuple[str, str, m.PureDp]]
) -> None:
    with tempfile.TemporaryDirectory() as home, rz.open_ledger(Path(home) / "b.db") as ledger:
        ledger.create_budget("cap", FILTERS[above]())
        ledger.create_budget("quota", FILTERS[own](), parent="cap")
        shares = {"cap": 1.0, "quota": 1.0}
        for name, verb, query in steps:
            receipt = getattr(ledger, verb)(name, query)
            assert receipt.balance == ledger.budget(name).balance
            for each in shares:
                balance = ledger.budget(each).balance
                assert balance is not None and 0.0 <= balance.share <= shares[each]
                shares[each] = balance.share
        for name in shares:
            can_be_spent(ledger, name)


def can_be_spent(ledger: rz.Ledger, name: str) -> None:
    balance = ledger.budget(name).balance
    assert balance is not None
    eps = balance.largest_eps
    if eps:
        assert ledger.check(name, m.PureDp(eps)).admitted, balance
    if eps < min(0.7, ledger.budget(name).filter.most_eps):
        assert not ledger.check(name, m.PureDp(max(1.0001 * eps, 1e-3))).admitted, balance
    if balance.details:
        shares = [one.share for one in balance.details if one.live and one.capacity]
        assert min(shares) <= balance.share <= max(shares)
    more = balance.more_like_last
    admitted = [
        one for one in ledger.history(name) if one.type in ("spend", "commit") and one.admitted
    ]
    assert (more is None) == (not admitted)
    if more is not None and more <= SMALL:
        last = m.PureDp(admitted[-1].body["mechanism"]["eps"])
        for left in range(more, 0, -1):
            again = ledger.budget(name).balance
            assert again is not None and again.more_like_last == left
            assert ledger.spend(name, last).admitted
        assert not ledger.spend(name, last).admitted


def test_a_parent_with_the_same_unit_limits_the_details() -> None:
    with tempfile.TemporaryDirectory() as home, rz.open_ledger(Path(home) / "b.db") as ledger:
        ledger.create_budget("cap", rz.PureFilter(1.0))
        ledger.create_budget("quota", rz.PureFilter(0.5), parent="cap")
        ledger.spend("cap", m.PureDp(0.8))
        hold = ledger.reserve("quota", m.PureDp(0.05))
        balance = ledger.budget("quota").balance
        assert balance is not None and balance.share == 0.3 and balance.largest_eps == 0.15
        assert balance.details[0].left == 0.15 and balance.more_like_last is None
        assert hold.balance == balance and balance.guarantee == rz.pure_dp(1.0)
        hold.commit()
        after = ledger.budget("quota").balance
        assert after is not None and (after.share, after.more_like_last) == (0.3, 3)
        refused = ledger.spend("quota", m.PureDp(0.4))
        assert not refused.admitted and refused.balance == after
        checked = ledger.check(["cap", "quota"], m.PureDp(0.01)).balance
        assert checked["quota"] == after and checked["cap"].share == 0.15
        ledger.retire("quota", "over")
        assert ledger.budget("quota").balance is None


def test_a_replayed_receipt_has_the_balance_of_its_time() -> None:
    with tempfile.TemporaryDirectory() as home, rz.open_ledger(Path(home) / "b.db") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        first = ledger.spend("b", m.PureDp(0.1), key="first")
        ledger.spend("b", m.PureDp(0.2))
        again = ledger.spend("b", m.PureDp(0.1), key="first")
        assert again.replayed and again.balance == first.balance
        assert again.balance.more_like_last == 9


def test_a_commitment_is_not_the_last_query() -> None:
    from residua.filters.potential.renyi_commit import Commit

    with tempfile.TemporaryDirectory() as home, rz.open_ledger(Path(home) / "b.db") as ledger:
        filter = rz.RenyiCommitFilter(1.0, 1e-3, 8.0)
        ledger.create_budget("b", filter)
        ledger.spend("b", m.Gaussian(sigma=20.0))
        assert ledger.spend("b", Commit(rz.GdpResidueFilter(0.1))).admitted
        balance = ledger.budget("b").balance
        assert balance is not None and balance.more_like_last == 4
        assert balance.details[0].component == "gdp_residue"
