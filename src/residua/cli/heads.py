"""Heads on the command line: `[BUDGET=][SEQ:]HASH`, as receipts have them."""

from __future__ import annotations

import re
from typing import Any

from residua.errors import ArgumentError


def expected(given: list[str] | None) -> Any:
    """What `--expect-head` says: a single hash, or budgets with their heads."""
    if given is not None and len(given) == 1 and "=" not in given[0] and ":" not in given[0]:
        return _hash("--expect-head", given[0])
    return by_budget("--expect-head", given)


def by_budget(option: str, given: list[str] | None) -> dict[str, Any] | None:
    """The heads of budgets, each with its number if that was given."""
    if not given:
        return None
    marks: dict[str, Any] = {}
    for text in given:
        name, equals, rest = text.rpartition("=")
        if not equals:
            raise ArgumentError(f"{option} must name the budget (BUDGET=HASH), got {text!r}")
        seq, colon, hash = rest.rpartition(":")
        if colon and not seq.isdigit():
            raise ArgumentError(f"{option} must be BUDGET=SEQ:HASH, got {text!r}")
        marks[name] = (int(seq), _hash(option, hash)) if colon else _hash(option, hash)
    return marks


def _hash(option: str, text: str) -> str:
    if re.fullmatch(r"[0-9a-f]{64}", text) is None:
        raise ArgumentError(
            f"{option} must be a whole hash, 64 of 0 to 9 and a to f as a receipt has it,"
            f" got {text!r}"
        )
    return text
