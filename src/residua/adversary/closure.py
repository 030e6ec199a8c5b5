"""`𝓛^{<k}`: all compositions of fewer than `k` queries of a catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from math import comb

from residua.errors import TooLargeError
from residua.pld.constructors import identity
from residua.pld.pld import Pld

MOST = 5_000


def closure(losses: Sequence[Pld], rounds: int, limit: int = MOST) -> dict[tuple[int, ...], Pld]:
    """The members of `𝓛^{<rounds}` by how many of each they take; `Id` is the first."""
    size = comb(len(losses) + rounds - 1, rounds - 1)
    if size > limit:
        raise TooLargeError(
            f"{len(losses)} queries have {size} compositions of fewer than {rounds},"
            f" more than the limit of {limit}"
        )
    members: dict[tuple[int, ...], Pld] = {}
    for length in range(rounds):
        for chosen in combinations_with_replacement(range(len(losses)), length):
            counts = tuple(chosen.count(i) for i in range(len(losses)))
            members[counts] = sum((losses[i] for i in chosen), identity())
    return members
