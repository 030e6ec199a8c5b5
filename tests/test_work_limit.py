"""Counted work: what is charged is the same cold and warm, in any order, and limits nest."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from weakref import ref

import pytest

import residua as rz
from residua.errors import TooExpensive
from residua.service import problems
from residua.service.context import MOST_WORK, within_limit
from residua.work_limit import (
    MEMORY,
    OPERATIONS,
    attempt,
    limited,
    measure_work,
    remembered,
    remembered_property,
    without_counting,
    work,
)

STEP = 5000
"""What each call of `work` counts beside its operations."""


def operations(do):
    return measure_work(do)[1]


def test_nothing_is_counted_without_a_limit_and_nothing_raised():
    work(1e30, 1e30)
    assert measure_work(lambda: work(5, 7))[1:] == (STEP + 5, 7)


def test_a_limit_is_reached_by_operations():
    told = "counting to ten takes more than 3 million operations"
    with pytest.raises(TooExpensive, match=told), limited("counting to ten", 3_000_000):
        for _ in range(10):
            work(1_000_000)
    with limited("three", 3 * (STEP + 10)):
        for _ in range(3):
            work(10)


def test_a_limit_is_reached_by_memory():
    told = "the table takes more than 1,024 MB of memory"
    with pytest.raises(TooExpensive, match=told), limited("the table"):
        work(1, MEMORY + 1)
    with limited("the table"):
        work(1, MEMORY)


def test_an_error_crosses_processes():
    try:
        with limited("this", 0):
            work(1)
    except TooExpensive as error:
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_attempt_fails_by_itself_and_costs_its_share():
    def too_much():
        for _ in range(100):
            work(1_000_000)

    def tried():
        assert isinstance(attempt("it", 10_000_000, too_much), TooExpensive)
        return attempt("it", 10_000_000, lambda: "little")

    assert measure_work(tried)[:2] == ("little", 10_000_000)


def test_a_failed_attempt_keeps_nothing_of_what_it_computed():
    """Its traceback held every array of the computation."""

    class Array:
        pass

    kept = []

    def too_much():
        array = Array()
        kept.append(ref(array))
        work(20_000_000)

    error = attempt("it", 10_000_000, too_much)
    assert isinstance(error, TooExpensive) and kept[0]() is None


def test_an_attempt_raises_where_the_limit_around_it_is_closer():
    told = "all of it takes more than 1 million"
    with pytest.raises(TooExpensive, match=told), limited("all of it", 1_000_000):
        attempt("a part", 10_000_000, lambda: work(2_000_000))


class Chain:
    """Cached functions on top of each other, fresh for each test."""

    def __init__(self, once=True):
        @remembered(maxsize=2, once=once)
        def low(n):
            work(100 * n)
            return n

        @remembered(maxsize=2)
        def middle(n):
            work(7)
            return low(n) + low(n)

        @remembered(maxsize=64)
        def high(n):
            work(3)
            return middle(n) + low(n) + low(1)

        self.low, self.middle, self.high = low, middle, high


@pytest.mark.parametrize("once", [True, False])
def test_a_cached_value_costs_the_same_whatever_was_read_before(once):
    alone = {n: operations(lambda n=n: Chain(once).high(n)) for n in range(2, 9)}
    chain = Chain(once)
    for n in (5, 2, 5, 8, 3, 4, 2, 7, 6, 2, 8, 5):
        chain.low(n + 1)  # Something else, without a limit.
        if n % 2:
            measure_work(lambda n=n: chain.middle(n))
        assert operations(lambda n=n: chain.high(n)) == alone[n]

    def several(chain):
        return [chain.high(n) + chain.low(n) + chain.middle(9 - n) for n in (2, 5, 2, 3)]

    cold = operations(lambda: several(Chain(once)))
    for _ in range(3):
        assert operations(lambda: several(chain)) == cold


def test_groundwork_counts_once_under_a_limit_and_again_under_the_next():
    chain = Chain()
    one = operations(lambda: chain.low(5))
    assert one == STEP + 500
    assert operations(lambda: [chain.low(5) for _ in range(9)]) == one

    def in_parts():
        for _ in range(3):
            with limited("a part", one):
                chain.low(5)

    # Within each part it counts whole; around them once.
    assert operations(in_parts) == one
    with pytest.raises(TooExpensive), limited("less", one - 1):
        chain.low(5)


def test_a_limit_is_exceeded_cold_and_warm():
    need = operations(lambda: Chain().high(6))
    warm = Chain()
    warm.high(6)
    for chain in (Chain(), warm):
        with limited("enough", need):
            chain.high(6)
        with pytest.raises(TooExpensive), limited("too little", need - 1):
            chain.high(6)


def test_what_no_limit_allows_is_not_cached():
    calls = []

    @remembered(maxsize=8)
    def large(n):
        calls.append(n)
        work(OPERATIONS)
        return n

    assert [large(1), large(1)] == [1, 1]
    assert calls == [1, 1]
    with pytest.raises(TooExpensive), limited("this"):
        large(1)


def test_properties_cost_what_they_did_at_first():
    class Thing:
        @remembered_property
        def dear(self):
            work(500)
            return []

        @remembered_property
        def free(self):
            return []

    thing = Thing()
    assert [operations(lambda: thing.dear) for _ in range(3)] == [STEP + 500] * 3
    assert thing.dear is thing.dear
    assert [operations(lambda: thing.free) for _ in range(3)] == [0] * 3
    assert "free" in vars(thing)


def test_work_without_counting_costs_nothing():
    assert operations(lambda: without_counting(lambda: work(100))) == 0


def test_errors_cost_what_was_done():
    @remembered(maxsize=8)
    def fails(n):
        work(n)
        raise ValueError(n)

    def caught():
        for _ in range(3):
            with pytest.raises(ValueError, match="50"):
                fails(50)

    assert operations(caught) == 3 * (STEP + 50)


def test_threads_with_cold_caches_count_alike():
    chain = Chain()
    orders = [[(7 * i + place) % 9 + 1 for i in range(9)] for place in range(8)]

    def read(order):
        return {n: operations(lambda n=n: chain.high(n)) for n in order}

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(read, orders))
    assert all(each == found[0] for each in found)


def test_a_decision_beyond_the_limit_is_refused_and_spends_nothing(monkeypatch):
    budget, query = rz.AutoFilter(eps=1.0, delta=1e-6), rz.Laplace(scale=20.0)
    before = budget.state
    monkeypatch.setattr(rz.Filter._decide_within, "__defaults__", (1_000_000,))
    decision = budget.spend(query)
    assert not decision.admitted and decision.is_too_expensive
    assert decision.largest is None
    assert "too expensive to decide: it takes more than 1 million operations" in decision.reason
    assert "a coarser description, fewer parts or a larger scale would take less" in decision.reason
    assert budget.state == before
    monkeypatch.undo()
    assert budget.spend(query).admitted


def test_a_component_beyond_its_share_counts_as_refusing(monkeypatch):
    query = rz.Laplace(scale=20.0)
    union = rz.UnionFilter([rz.PureFilter(1.0), rz.TargetResidueFilter(1.0, 1e-6)])
    assert not union.decide(union.initial(), query).stops
    monkeypatch.setattr(rz.UnionFilter, "_share", 10_000)
    decision = union.spend(query)
    assert decision.admitted
    assert decision.stops == ("target_residue",)
    assert union.check(query).admitted


def test_recommendations_are_dropped_where_they_take_too_much():
    budget = rz.GdpResidueFilter(mu=1.0)
    query = rz.Laplace(scale=0.1)
    decision = budget.check(query)
    assert not decision.admitted
    assert budget.check(decision.largest).admitted
    decision = budget.check(query)
    decision._set_work_left(10_000)
    assert decision.largest is None
    assert "what would fit takes too much work to find" in decision.reason


def test_the_service_and_its_client_know_the_error():
    problem = problems.problem_of(TooExpensive("the answer takes too much"))
    assert (problem.status, problem.name) == (422, "too-expensive")
    back = problems.exception_of(problem.status, problems.body(problem))
    assert isinstance(back, TooExpensive)
    assert str(back) == "the answer takes too much"


def test_an_answer_of_the_service_is_limited():
    def too_much():
        for _ in range(100):
            work(MOST_WORK // 50)

    with pytest.raises(TooExpensive, match="the answer takes more than 27,000 million operations"):
        within_limit(too_much)
    assert within_limit(max, 1, 2) == 2
