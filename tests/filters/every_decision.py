"""Decides every query of `expensive.py` on every filter, and prints a line of JSON for each.

`python -m filters.every_decision GIGABYTES SECONDS THOROUGH`: with limits on address space and
processor time. The thorough form decides the slowest queries as well, and everything twice.
"""

import json
import resource
import sys
import time

from filters import expensive
from residua.errors import ResiduaError
from residua.mechanisms.relations import ADD_REMOVE
from residua.work_limit import measure_work

SLOW = {("composed", 1), ("composed", 2), ("subsampled_gaussian", 2), ("mixture_of_gaussians", 1)}
"""Queries for the thorough form: several seconds on several filters."""
ONCE = 500_000_000
"""Operations from which on a decision is made a second time in the thorough form only."""


def main(gigabytes: int, seconds: int, thorough: bool) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (gigabytes << 30, gigabytes << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    filters = {name: make() for name, make in expensive.FILTERS.items()}
    for name, queries in expensive.QUERIES.items():
        for place, query in enumerate(queries):
            if (name, place) in SLOW and not thorough:
                continue
            relation = None if ADD_REMOVE in query.supported else query.supported[0]
            for kind, filter in filters.items():
                found = decided(filter, query, relation, thorough)
                print(json.dumps({"filter": kind, "query": name, "place": place, **found}))


def decided(filter, query, relation, thorough):
    """What came of a decision, made twice, and what it took."""

    def once():
        try:
            return filter.decide(state, query, relation=relation)
        except ResiduaError as error:
            return error

    state, before = filter.initial(), time.process_time()
    decision, operations, held = measure_work(once)
    seconds = time.process_time() - before
    again = measure_work(once)[1] if thorough or operations < ONCE else operations
    failed = isinstance(decision, ResiduaError)
    expensive = not failed and decision.is_too_expensive
    return {
        "error": type(decision).__name__ if failed else None,
        "admitted": not failed and decision.admitted,
        "too_expensive": expensive,
        "operations": operations,
        "again": again,
        "held": held,
        "seconds": seconds,
        "reason": decision.reason if expensive else None,
    }


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), bool(int(sys.argv[3])))
