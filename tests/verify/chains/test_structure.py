"""Chains that were tampered with: found, and located."""

from __future__ import annotations

import json
from typing import Any

import pytest

import residua as rz
from residua import mechanisms as m
from residua.filters.potential.renyi_commit import Commit
from residua.records import canonical, digest, lines
from residua.verify import Report, verify_export, verify_records
from verify.written_chains import Written, is_released, plain, rehashed, spend_together, written_by

pytestmark = pytest.mark.needs("flint")


def _chain(name: str = "b", n: int = 4, **options: Any) -> Written:
    filter = rz.PureFilter(1.0)
    return written_by(filter, [m.PureDp(0.1)] * n, name=name, **options)


def _report(*chains: Written, **options: Any) -> Report:
    return verify_records({c.name: c.records for c in chains}, {}, **options)


def test_an_honest_chain_is_whole() -> None:
    report = _report(_chain())
    assert report.ok
    assert report.exit_code == 0
    assert report.heads["b"][0] == 4


def test_every_byte_counts() -> None:
    """Told at the record, or at the link of the next one to it; at the head by what was given."""
    chain = _chain(n=2)
    texts = chain.texts()
    head = {"b": (2, chain.records[-1].hash)}
    for seq, text in enumerate(texts):
        for at, byte in enumerate(text):
            other = "1" if byte != "1" else "2"
            changed = text[:at] + other + text[at + 1 :]
            tampered = [*texts[:seq], changed, *texts[seq + 1 :]]
            report = verify_records({"b": tampered}, {}, expect_head=head)
            assert report.exit_code == 1, (seq, at)
            found = {(problem.budget, problem.seq) for problem in report.problems}
            assert found & {("b", seq), ("b", seq + 1)}, (seq, at, report.problems)


def test_bytes_are_no_record() -> None:
    chain = _chain()
    for stored, why in (
        (chain.texts()[2].encode(), "as bytes"),
        (b"{\xff", "byte 1 of it is 0xff"),
    ):
        items = [*chain.records[:2], stored, *chain.records[3:]]
        report = verify_records({"b": items}, {})
        assert [problem.seq for problem in report.problems] == [2]
        assert why in report.problems[0].what
        assert report.proven == len(report.steps) == 4


def test_a_cut_tail_shows_against_a_receipt() -> None:
    chain = _chain()
    cut = chain.records[:-1]
    assert verify_records({"b": cut}, {}).ok
    for head in ({"b": (4, chain.records[-1].hash)}, chain.records[-1].hash,
                 {"b": chain.records[-1].hash}):  # fmt: skip
        report = verify_records({"b": cut}, {}, expect_head=head)
        assert report.problems
        assert report.exit_code == 1
    assert _report(chain, expect_head={"b": (2, chain.records[2].hash)}).ok


def test_a_full_rewrite_shows_against_a_receipt() -> None:
    chain = _chain()
    texts = rehashed(chain, {1: {"reason": "another"}})
    assert verify_records({"b": texts}, {}).ok
    report = verify_records({"b": texts}, {}, expect_head={"b": (4, chain.records[-1].hash)})
    assert [p.seq for p in report.problems] == [4]


def test_a_missing_budget_shows_against_a_receipt() -> None:
    report = _report(_chain(), expect_head={"gone": (1, "0" * 64)})
    assert "gone" in report.problems[0].what


def test_nothing_at_all_does_not_pass_for_a_ledger_whose_heads_are_known() -> None:
    """A store that was emptied has no chain to find fault with."""
    chain = _chain()
    head = chain.records[-1].hash
    for expected in (head, {"b": head}, {"b": (4, head)}):
        report = verify_records({}, {}, expect_head=expected)
        assert not report.ok and report.exit_code == 1
    before = _report(chain)
    report = verify_records({}, {}, since=before)
    assert [problem.budget for problem in report.problems] == ["b"]
    assert any("Truncation was not checked" in note for note in before.notes)
    after = _report(chain, expect_head=head).notes
    assert not any("Truncation was not checked" in note for note in after)


def test_swapped_and_doubled_records_are_found() -> None:
    texts = _chain().texts()
    for tampered in ([*texts[:2], texts[3], texts[2], texts[4]], [*texts[:3], *texts[2:]],
                     texts[1:], [*texts[:2], *texts[3:]]):  # fmt: skip
        assert verify_records({"b": tampered}, {}).problems


def test_text_that_is_not_canonical_is_found() -> None:
    texts = _chain().texts()
    spaced = [texts[0].replace(",", ", "), *texts[1:]]
    report = verify_records({"b": spaced}, {})
    assert "canonical" in report.problems[0].what


@pytest.mark.parametrize(
    "written", ["1e400", "NaN", '{"a":1,"a":1}', "1.0e0", "9" * 5000, "[" * 9999 + "]" * 9999]
)
def test_values_without_a_canonical_form_are_found_and_located(written: str) -> None:
    """They end neither the verifier nor the reading of the other records."""
    chain = _chain()
    texts = chain.texts()
    texts[2] = texts[2].replace('"assumed":false', f'"assumed":{written}')
    report = verify_records({"b": texts}, {})
    assert report.problems[0].seq == 2 and not report.ok
    line = json.dumps({"hash": digest(texts[2]), "record": texts[2]})
    exported = [*lines(chain.records[:2]), line, *lines(chain.records[3:])]
    report = verify_export(exported)
    assert "line 3" in report.problems[0].what and report.proven


def test_keys_and_holds_that_are_none_are_problems() -> None:
    chain = _chain()
    for key in ([], {}, None):
        report = verify_records({"b": rehashed(chain, {1: {"key": key}, 2: {"key": key}})}, {})
        assert any("used for another request" in p.what for p in report.problems)


def test_states_must_follow() -> None:
    chain = _chain()
    richer = {**plain(chain.filter, chain.filter.initial()), "left": ["1"]}
    texts = rehashed(chain, {3: {"before": richer}})
    report = verify_records({"b": texts}, {})
    assert any(p.seq == 3 and "before" in p.what for p in report.problems)


def test_refusals_and_holds_move_nothing() -> None:
    chain = written_by(rz.PureFilter(1.0), [m.PureDp(0.1), m.PureDp(2.0)])
    assert chain.records[2].admitted is False
    spent = {**plain(chain.filter, chain.state), "left": ["0.5"]}
    report = verify_records({"b": rehashed(chain, {2: {"after": spent}})}, {})
    assert any(p.seq == 2 and "refusal" in p.what for p in report.problems)
    report = verify_records({"b": rehashed(chain, {1: {"binding": "b"}})}, {})
    assert any("admitted" in p.what for p in report.problems)


def test_a_key_belongs_to_one_request() -> None:
    chain = Written(rz.PureFilter(1.0))
    chain.spend(m.PureDp(0.1), key="same")
    chain.spend(m.PureDp(0.2), key="same")
    report = _report(chain)
    assert any(p.seq == 2 and "key" in p.what for p in report.problems)


def _hold(chain: Written, hold: str, query: m.Mechanism, stated: int = 0) -> None:
    """A hold whose record states the last so many of the open holds; without a number, all."""
    chain.held[hold] = query
    state = plain(chain.filter, chain.state)
    fields = chain.asking(query, f"h-{hold}-{len(chain.records)}", [chain.place], True)
    more = {
        "before": state,
        "after": state,
        "tables": {},
        "hold": hold,
        "expires": "2026-01-07T00:00:00.000Z",
        "holds": chain.holds(chain.state)[-stated:],
    }
    chain.append("hold", {**fields, **more})


def _commit(chain: Written, hold: str, query: m.Mechanism) -> None:
    before, place = chain.state, chain.place
    chain.state = chain.filter.decide(before, query).state
    chain.held.pop(hold, None)
    fields = chain.asking(query, f"c-{hold}-{len(chain.records)}", [place], True)
    states = {"before": plain(chain.filter, before), "after": plain(chain.filter, chain.state)}
    holds = chain.holds(chain.state)
    chain.append("commit", {**fields, **states, "tables": {}, "hold": hold, "holds": holds})


def test_holds_commits_and_cancels() -> None:
    chain = Written(rz.PureFilter(1.0))
    _hold(chain, "one", m.PureDp(0.1))
    _hold(chain, "two", m.PureDp(0.2))
    _commit(chain, "two", m.PureDp(0.2))
    is_released(chain, "one")
    report = _report(chain)
    assert report.ok, report.text
    assert report.proven == 4
    _commit(chain, "one", m.PureDp(0.1))
    assert any("not open" in p.what for p in _report(chain).problems)


def _stating(chain: Written, last: int) -> list[str]:
    """The chain, its last record with states of the last so many open holds alone."""
    seq = len(chain.records) - 1
    stated = chain.records[seq].body["holds"]
    return rehashed(chain, {seq: {"holds": stated[len(stated) - last :]}})


def test_states_that_were_stated_before_need_not_be_stated_again() -> None:
    chain = Written(rz.PureFilter(1.0))
    _hold(chain, "one", m.PureDp(0.1))
    _hold(chain, "two", m.PureDp(0.2), stated=1)
    _hold(chain, "three", m.PureDp(0.3), stated=1)
    report = _report(chain)
    assert report.ok and report.proven == 4, report.text
    _commit(chain, "one", m.PureDp(0.1))
    for last in (0, 1, 2):
        assert verify_records({"b": _stating(chain, last)}, {}).ok, "it moved to a stated state"


def test_states_that_do_not_follow_any_more_must_be_stated_again() -> None:
    chain = Written(rz.PureFilter(1.0))
    _hold(chain, "one", m.PureDp(0.1))
    _hold(chain, "two", m.PureDp(0.2))
    chain.spend(m.PureDp(0.3))
    assert _report(chain).ok
    for last in (0, 1):
        step = verify_records({"b": _stating(chain, last)}, {}).steps[-1]
        assert step.verdict == "refuted" and "does not fit" in step.reason, last


def test_a_spend_that_leaves_no_room_cannot_hide_it_by_stating_nothing() -> None:
    chain = Written(rz.PureFilter(1.0))
    _hold(chain, "one", m.PureDp(0.6))
    chain.spend(m.PureDp(0.5))
    assert verify_records({"b": _stating(chain, 0)}, {}).steps[-1].verdict == "refuted"


def test_a_hold_states_itself() -> None:
    chain = Written(rz.PureFilter(1.0))
    _hold(chain, "one", m.PureDp(0.1))
    problems = verify_records({"b": _stating(chain, 0)}, {}).problems
    assert any("which none has stated" in problem.what for problem in problems)


def test_a_commit_comes_before_its_hold_is_over() -> None:
    chain = Written(rz.PureFilter(1.0))
    _hold(chain, "one", m.PureDp(0.1))
    _commit(chain, "one", m.PureDp(0.1))
    time = chain.records[2].body["time"]
    for expires, late in ((time, True), (time.replace("000Z", "001Z"), False), (7, True)):
        texts = rehashed(chain, {1: {"expires": expires}})
        problems = verify_records({"b": texts}, {}).problems
        assert any("whose time was over" in p.what for p in problems) is late, expires


def test_a_commit_is_of_its_hold() -> None:
    chain = Written(rz.PureFilter(1.0))
    _hold(chain, "one", m.PureDp(0.1))
    _commit(chain, "one", m.PureDp(0.2))
    assert any("different mechanism" in p.what for p in _report(chain).problems)


def _family() -> tuple[Written, Written]:
    parent = Written(rz.PureFilter(2.0), name="all")
    child = Written(rz.PureFilter(1.0), name="ann", parent="all")
    spend_together([parent, child], m.PureDp(0.1), "one")
    spend_together([parent, child], m.PureDp(0.2), "two")
    return parent, child


def test_groups_are_complete() -> None:
    parent, child = _family()
    assert _report(parent, child).ok
    missing = verify_records({"all": parent.records[:-1], "ann": child.records}, {})
    assert any(p.budget == "ann" and "all" in p.what for p in missing.problems)
    assert any("not here" in p.what for p in _report(child).problems)


def _found(chains: dict[str, Any], what: str) -> list[tuple[str, int | None]]:
    """Where something is told."""
    problems = verify_records(chains, {}).problems
    return [(problem.budget, problem.seq) for problem in problems if what in problem.what]


@pytest.mark.parametrize(
    "change",
    [
        {"admitted": False, "binding": "ann", "after": None},
        {"admitted": False, "after": None},
        {"binding": "all"},
        {"by": "you"},
        {"key": "other"},
        {"request": "other"},
        {"mechanism": m.PureDp(0.3).to_dict()},
    ],
    ids=str,
)
def test_the_records_of_one_request_say_the_same(change: dict[str, Any]) -> None:
    """One member admitted and the other refused, say: all or none is what a group is for."""
    parent, child = _family()
    body = json.loads(child.records[-1].text) | change
    if "after" in change:
        body["after"] = body["before"]
    texts = [*child.texts()[:-1], canonical(body)]
    found = _found({"all": parent.records, "ann": texts}, "belongs to a different request")
    assert found == [("all", 2), ("ann", 2)]


@pytest.mark.parametrize(
    ("kinds", "holds"), [(("cancel", "expire"), "hh"), (("cancel", "cancel"), "hi")]
)
def test_what_lets_a_hold_go_says_the_same_in_all_its_budgets(
    kinds: tuple[str, str], holds: str
) -> None:
    family = _family()
    group = [each.place for each in family]
    for chain, kind, hold in zip(family, kinds, holds, strict=True):
        state = plain(chain.filter, chain.state)
        fields = {"reason": "late", "group": group, "before": state, "after": state, "hold": hold}
        chain.append(kind, fields)
    chains = {each.name: each.records for each in family}
    assert _found(chains, "belongs to a different request") == [("all", 3), ("ann", 3)]


def test_a_budget_is_in_a_group_once() -> None:
    chain = _chain(n=1)
    body = json.loads(chain.records[1].text)
    texts = [chain.texts()[0], canonical({**body, "group": body["group"] * 2})]
    assert _found({"b": texts}, "in the group twice") == [("b", 1)]


def test_members_name_the_same_group() -> None:
    parent, child = _family()
    body = json.loads(child.records[-1].text)
    texts = [*child.texts()[:-1], canonical({**body, "group": body["group"][::-1]})]
    found = _found({"all": parent.records, "ann": texts}, "belongs to a different request")
    assert found == [("all", 2), ("ann", 2)]


def test_a_request_is_asked_under_the_relation_of_its_budget() -> None:
    for relation in ("replace-one", None, []):
        texts = rehashed(_chain(), {2: {"relation": relation}})
        assert _found({"b": texts}, "not under the budget's relation") == [("b", 2)]


def test_chains_are_of_one_ledger() -> None:
    one, other = _chain("a", n=0), _chain("b", n=0)
    texts = rehashed(other, {0: {"ledger": "another"}})
    assert _found({"a": one.records, "b": texts}, "2 different ledgers") == [("a", 0), ("b", 0)]


def test_a_chain_is_of_one_ledger() -> None:
    texts = rehashed(_chain(), {3: {"ledger": "another"}})
    assert _found({"b": texts}, "ledger is ") == [("b", 3), ("b", 4)]


def test_a_hold_is_made_once() -> None:
    chain = Written(rz.PureFilter(1.0))
    _hold(chain, "one", m.PureDp(0.1))
    _hold(chain, "one", m.PureDp(0.1))
    assert _found({"b": chain.records}, "is made twice") == [("b", 2)]


@pytest.mark.parametrize("decision", [1, 0, None, "yes", []], ids=str)
def test_a_decision_is_yes_or_no(decision: Any) -> None:
    chain = _chain()
    change = {"admitted": decision, "binding": None if decision else "b"}
    if not decision:
        change["after"] = chain.records[2].body["before"]
    texts = rehashed(chain, {2: change})
    assert _found({"b": texts}, "admitted must be true or false") == [("b", 2)]


def test_time_does_not_run_backwards() -> None:
    chain = _chain()
    times = [record.time for record in chain.records]
    assert _found({"b": rehashed(chain, {2: {"time": times[1]}})}, "") == []
    assert _found({"b": rehashed(chain, {2: {"time": times[0]}})}, "backwards") == [("b", 2)]
    assert _found({"b": rehashed(chain, {2: {"time": times[4]}})}, "backwards") == [("b", 3)]


def test_parents_are_charged() -> None:
    parent, child = _family()
    child.spend(m.PureDp(0.1))
    report = _report(parent, child)
    assert any(p.budget == "ann" and "not charged" in p.what for p in report.problems)


def test_partitions_do_not_charge_their_parent() -> None:
    parent = Written(rz.PureFilter(2.0), name="all")
    part = Written(rz.PureFilter(2.0), name="north", parent="all", partition="north")
    part.spend(m.PureDp(0.1))
    assert _report(parent, part).ok
    parent.spend(m.PureDp(0.1))
    assert any("partitions" in p.what for p in _report(parent, part).problems)


@pytest.mark.parametrize("partition", [None, "x"])
def test_no_budget_stands_above_itself(partition: str | None) -> None:
    for parents in (("p",), ("q", "p")):
        names = ("p", "q")[: len(parents)]
        chains = [
            Written(rz.PureFilter(2.0), name=name, parent=parent, partition=partition)
            for name, parent in zip(names, parents, strict=True)
        ]
        problems = _report(*chains).problems
        assert {p.budget for p in problems if "is its own ancestor" in p.what} == set(names)


def test_nothing_after_a_retirement() -> None:
    chain = _chain()
    state = plain(chain.filter, chain.state)
    chain.append("retire", {"reason": "done", "below": {}, "before": state, "after": state})
    assert _report(chain).ok
    chain.spend(m.PureDp(0.1))
    assert any("retired" in p.what for p in _report(chain).problems)


def test_windows() -> None:
    chain = _chain(window=3600.0)
    first = chain.filter.initial()
    fields = {"generation": 1, "tables": {}, "state": plain(chain.filter, first)}
    chain.clock += 3600
    chain.append("refresh", fields)
    chain.state = first
    chain.spend(m.PureDp(0.3))
    report = _report(chain)
    assert report.ok, report.text
    richer = {**plain(chain.filter, first), "left": ["1.5"]}
    chain.append("refresh", {**fields, "generation": 3, "state": richer})
    report = _report(chain)
    assert any("generation" in p.what for p in report.problems)
    assert report.steps[-1].verdict == "refuted"
    other = _chain()
    other.append("refresh", fields)
    assert any("window" in p.what for p in _report(other).problems)


def _renewed(window: float, *times: int) -> list[str]:
    """What is wrong with a budget whose windows begin at these seconds after its creation."""
    chain = _chain(n=0, window=window)
    state = plain(chain.filter, chain.filter.initial())
    for generation, seconds in enumerate(times, 1):
        chain.clock = seconds
        chain.append("refresh", {"generation": generation, "tables": {}, "state": state})
    return [p.what for p in _report(chain).problems]


def test_no_window_begins_before_the_last_one_is_over() -> None:
    assert _renewed(60.0, 60, 120, 180) == []
    assert _renewed(60.0, 179, 180, 240) == [], "late, and then in time"
    assert _renewed(7.5, 8, 15, 23) == []
    assert _renewed(1.0, 1, 2) == []
    for window, *times in ((60.0, 59), (60.0, 60, 119), (60.0, 179, 179), (7.5, 8, 14), (1e300, 9)):
        problems = _renewed(window, *(int(t) for t in times))
        assert len(problems) == 1, (window, times)
        assert "before the last one is over" in problems[0]
    for window in (1e-300, 1e-3, 0.25, 0.999, 0.0, -1.0, "long", True):
        assert len(_renewed(window, 60)) == 1


def test_a_second_cap_on_the_same_data_must_say_so() -> None:
    def found(*shares: bool) -> list[str | None]:
        chains = {}
        for i, share in enumerate(shares):
            chain = _chain(f"b{i}", n=0)
            chains[chain.name] = rehashed(chain, {0: {"data": "census", "shares_data": share}})
        return [problem.budget for problem in verify_records(chains, {}).problems]

    assert found(False) == found(False, True) == found(True, False, True) == []
    assert found(False, False) == ["b1"]


def test_relations_and_windows_that_are_none_are_problems() -> None:
    for change in (
        {"relation": "friends"},
        {"window": "long"},
        {"window": 0.0},
        {"window": []},
    ):
        texts = rehashed(_chain(n=0), {0: change})
        assert len(verify_records({"b": texts}, {}).problems) == 1, change


def test_exports(tmp_path: Any) -> None:
    chain = _chain()
    path = tmp_path / "export.jsonl"
    path.write_text("".join(lines(chain.records)))
    assert verify_export(path).ok
    broken = path.read_text().replace('\\"eps\\":0.1', '\\"eps\\":0.2', 1)
    report = verify_export(broken.splitlines())
    assert report.problems
    assert report.problems[0].seq == 1
    with pytest.raises(rz.errors.LedgerError):
        verify_export([])


def test_only_what_is_new_is_proven_again() -> None:
    chain = _chain()
    report = _report(chain)
    chain.spend(m.PureDp(0.1))
    later = _report(chain, since=report)
    assert later.ok
    assert [step.seq for step in later.steps] == [5]
    rewritten = rehashed(chain, {1: {"reason": "another"}})
    changed = verify_records({"b": rewritten}, {}, since=report)
    assert changed.problems
    assert len(changed.steps) == 6


def test_an_admitted_query_declares_the_unit_of_its_budget_or_none() -> None:
    own, other = (m.PureDp(0.1, unit=unit) for unit in ("person", "event"))
    filter = rz.RenyiCommitFilter(1.0, 1e-3, 8.0)
    assert _report(written_by(filter, [own, m.Composed((own, m.PureDp(0.1))), Commit([own])])).ok
    for query in (other, m.Composed((own, m.SelfComposed(other, 2))), Commit([other])):
        report = _report(written_by(filter, [own, query]))
        assert [(p.seq, "'event' is declared" in p.what) for p in report.problems] == [(2, True)]
    refused = Written(filter)
    spend_together([refused], other, "k", admitted=False)
    assert _report(refused).ok


def test_equal_steps_are_proven_once_and_jobs_agree() -> None:
    chains = [_chain(name, 3) for name in ("a", "b", "c")]
    seen: list[tuple[int, int]] = []
    report = _report(*chains, progress=lambda done, whole: seen.append((done, whole)))
    assert report.ok
    assert seen == [(3, 12), (6, 12), (9, 12), (12, 12)]
    assert _report(*chains, jobs=2) == report
    with pytest.raises(ValueError):
        _report(*chains, jobs=0)


@pytest.mark.needs("cryptography")
def test_reports_can_be_signed(tmp_path: Any) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    from residua.verify.signing import check_signature, signed

    key = ed25519.Ed25519PrivateKey.generate()
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = tmp_path / "key.pem"
    path.write_bytes(pem)
    report = _report(_chain())
    text = signed(report, path)
    assert check_signature(text)["proven"] == report.proven
    assert check_signature(text, json.loads(text)["key"])["ok"] is True
    with pytest.raises(ValueError):
        check_signature(text.replace('\\"ok\\":true', '\\"ok\\":false'))
    with pytest.raises(ValueError):
        check_signature(text, "another")
    with pytest.raises(ValueError):
        signed(report, tmp_path / "none.pem")
