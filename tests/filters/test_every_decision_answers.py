"""Every kind of mechanism under every kind of filter, with ordinary and with extreme parameters.

A decision says yes or no, or that the query has no proven loss there; nothing else. Its work is
counted, the same cold and warm, and stays within the limit. All of them run in one process with a
ceiling on memory and on processor time, started anew, so that nothing is cached.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from filters import every_decision, expensive
from residua.work_limit import MEMORY, OPERATIONS

TESTS = Path(__file__).parents[1]
GIGABYTES = 3
"""Of address space, interpreter and libraries included."""
SECONDS = 900
"""Of processor time, for all of them; without the slowest they take about forty."""
SECONDS_EACH = 60.0
"""Of processor time, for one decision: the limit is worth about twenty."""
ORDINARY = 10
"""What is ordinary takes less than the limit by this factor."""
UNLIKELY = "is too expensive to decide"


@pytest.fixture(scope="module")
def decisions(thorough):
    """What the script found, a line for each pair."""
    arguments = GIGABYTES, SECONDS, int(thorough)
    ran = subprocess.run(
        [sys.executable, "-m", "filters.every_decision", *map(str, arguments)],
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=4 * SECONDS,
        check=True,
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_every_pair_is_decided(decisions, thorough):
    slow = 0 if thorough else len(every_decision.SLOW)
    queries = sum(map(len, expensive.QUERIES.values())) - slow
    assert len(decisions) == queries * len(expensive.FILTERS)
    failed = [one for one in decisions if one["error"] not in (None, "UnsupportedError")]
    assert not failed


def test_no_decision_takes_more_than_the_limit(decisions):
    for one in decisions:
        assert one["operations"] <= OPERATIONS, one
        assert one["held"] <= MEMORY, one
        assert one["seconds"] <= SECONDS_EACH, one


def test_counted_work_is_the_same_cold_and_warm(decisions):
    assert [one for one in decisions if one["operations"] != one["again"]] == []


def test_what_is_ordinary_takes_a_tenth_of_the_limit_at_most(decisions):
    ordinary = [one for one in decisions if one["place"] == 0 and "composed" not in one["query"]]
    assert len(ordinary) > 300
    assert [one for one in ordinary if ORDINARY * one["operations"] > OPERATIONS] == []
    assert not [one for one in ordinary if one["too_expensive"]]


def test_what_is_too_expensive_is_refused(decisions):
    for one in decisions:
        if one["too_expensive"]:
            assert not one["admitted"] and UNLIKELY in one["reason"], one
