"""The sweep: in how many of five hundred settings is an answer below the exact value?

Each setting is a composition and a delta. Our interval for eps is checked against mpmath: at its
lower end delta must be at least what was asked for, at its upper end at most. Between proven ends
the answers of everybody are judged; one inside them is put into the formula itself. Where there is
no formula (compositions of subsampled Gaussians) the judge is our proven lower end, and
dp_accounting's optimistic PLD looks at ours in turn.
"""

from __future__ import annotations

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mpmath import mpf

from benchmarks.harness import truth
from benchmarks.harness.parts import Parts, gaussian, laplace, pure_dp, shown, subsampled
from benchmarks.harness.run import Run
from benchmarks.harness.section import Goal, Plot, Section, Table, table
from benchmarks.peers.participants import (
    ACCOUNTANTS,
    AUTODP_AFA,
    GOOGLE_FINE,
    MICROSOFT,
    OPACUS_PRV,
    US,
    Participant,
)

DELTAS = [1e-2, 1e-4, 1e-6, 1e-9, 1e-12, 1e-18, 1e-24, 1e-30]
NOTICEABLE = 1e-6
"""Relative: below the truth by more than that is no rounding."""
LIMIT = 15.0
COARSE = {MICROSOFT: 0.1, OPACUS_PRV: 0.1, AUTODP_AFA: 1e-3}
"""Errors that these may make above the truth: larger ones are quicker, and as sound."""

OUTCOMES = ("holds", "below", "clearly below", "negative", "infinite", "error")


def settings() -> list[Parts]:
    """All compositions; each is asked at every delta."""
    gaussians = [(0.5, 1), (1.0, 1), (4.0, 1), (50.0, 1), (2.0, 10), (10.0, 10), (5.0, 100)]
    gaussians += [(40.0, 100), (30.0, 1000), (100.0, 1000), (100.0, 10_000)]
    responses = [(e, n) for e in (0.01, 0.1, 0.5) for n in (1, 30, 1000)]
    responses += [(2.0, 1), (2.0, 30), (0.01, 10_000)]
    laplaces = [(0.5, 1), (0.5, 12), (4.0, 1), (4.0, 5), (4.0, 60), (20.0, 1), (20.0, 30)]
    laplaces += [(20.0, 100), (50.0, 10), (100.0, 50), (50.0, 1000)]
    sampled = [(s, q) for s in (0.7, 1.0, 2.0, 5.0) for q in (0.001, 0.01, 0.1)]
    trained = [(s, q, n) for s, q in ((0.8, 0.01), (1.0, 0.01), (2.0, 0.05)) for n in (10, 100)]
    trained += [(1.0, 0.001, 1000), (1.0, 0.01, 1000), (2.0, 0.01, 1000), (5.0, 0.1, 1000)]
    both = [(1.0, 1, pure_dp(1.0), 1), (8.0, 10, pure_dp(0.1), 20), (30.0, 100, pure_dp(0.05), 100)]
    both += [(20.0, 1, pure_dp(0.5), 5), (1.0, 1, laplace(1.0), 1), (1.5, 1, laplace(2.0), 3)]
    both += [(2.0, 1, laplace(20.0), 50), (0.5, 1, laplace(5.0), 9)]
    return [
        *([[gaussian(s), n]] for s, n in gaussians),
        *([[pure_dp(e), n]] for e, n in responses),
        *([[laplace(b), n]] for b, n in laplaces),
        *([[subsampled(s, q), 1]] for s, q in sampled),
        *([[subsampled(s, q), n]] for s, q, n in trained),
        *([[gaussian(s), m], [other, n]] for s, m, other, n in both),
    ]


def verdict(value: Any, parts: Parts, delta: float, ends: list[float]) -> str:
    """What an answer is worth that claims to be an upper bound of eps."""
    if isinstance(value, str) or value is None or math.isnan(value):
        return "error"
    if value < 0:
        return "negative"
    low, high = ends
    if value == math.inf:
        return "holds" if low == math.inf else "infinite"
    if value >= high:
        return "holds"
    if value >= low:
        holds = not truth.has_formula(parts) or truth.delta_ends(parts, value)[0] <= mpf(delta)
        return "holds" if holds else "below"
    return "clearly below" if value < low * (1.0 - NOTICEABLE) else "below"


def wrong_ends(parts: Parts, delta: float, ends: list[float]) -> bool:
    """Whether mpmath contradicts our interval."""
    low, high = ends
    if low > 0 and not truth.delta_ends(parts, low)[1] >= mpf(delta):
        return True
    return not truth.delta_ends(parts, high)[0] <= mpf(delta)


def asked(run: Run, who: Participant, all_parts: list[Parts]) -> list[Any]:
    """Every answer of one participant: for each composition a list, or why there is none."""
    found = []
    more = {"eps_error": COARSE[who]} if who in COARSE else {}
    for parts in all_parts:
        answer = run.field.ask(who, "epsilons", LIMIT, parts=parts, deltas=DELTAS, **more)
        found.append(answer.value if answer.given else answer)
    return found


def measure(run: Run) -> Section:
    all_parts = run.few(settings(), 6)
    ends = [
        run.field.ask(US, "epsilon_ends", 120.0, parts=parts, deltas=DELTAS).value
        for parts in all_parts
    ]
    contradicted = sum(
        wrong_ends(parts, delta, one)
        for parts, both in zip(all_parts, ends, strict=True)
        if truth.has_formula(parts)
        for delta, one in zip(DELTAS, both, strict=True)
    )
    overtaken = optimistic(run, all_parts, ends)
    # Different packages in different processes, two at a time; ways of one package in turn.
    packages = {who.package for who in ACCOUNTANTS}
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(_asked_in_turn, run, package, all_parts) for package in sorted(packages)
        ]
        answers = {who.label: given for job in jobs for who, given in job.result()}
    rows, clear = [], {}
    for who in ACCOUNTANTS:
        counts, refused = judged(all_parts, ends, answers[who.label])
        answered = sum(counts.values())
        if not answered:
            why = next(a.cannot for a in answers[who.label] if getattr(a, "cannot", ""))
            rows.append([who.label, "0", why, *[""] * 5])
            continue
        cells = [str(counts[outcome]) for outcome in OUTCOMES]
        rows.append([who.label, str(answered), *cells, f"{refused} not offered"])
        clear[who.label] = counts["below"] + counts["clearly below"] + counts["negative"]
    total = len(all_parts) * len(DELTAS)
    return Section(
        "soundness",
        "Soundness: answers below the truth",
        f"{len(all_parts)} compositions at {len(DELTAS)} deltas from 1e-2 to 1e-30: {total:,} "
        "settings; eps is asked for. An answer holds if it is at least the exact eps, in however "
        "small a digit; it is clearly below if more than a millionth is missing. Compositions of "
        "subsampled Gaussians are judged by our proven lower end, all others by mpmath.",
        (summary(rows), worst(all_parts, ends, answers)),
        (
            Goal(f"our intervals that mpmath contradicts, of {total:,}", str(contradicted), "0",
                 contradicted == 0),
            Goal("our answers below dp_accounting's optimistic PLD", overtaken, "0",
                 overtaken.startswith("0")),
            Goal("our answers below the exact value", str(clear.get(US.label, 0)), "0",
                 clear.get(US.label, 0) == 0),
        ),
        (),
        (
            Plot("soundness", f"Answers below the truth, of {total:,} settings", "", "answers",
                 tuple(clear), {"below or negative": tuple(map(float, clear.values()))},
                 bars=True, log_y=False),
        ),
    )  # fmt: skip


def _asked_in_turn(
    run: Run, package: str, all_parts: list[Parts]
) -> list[tuple[Participant, list[Any]]]:
    return [(who, asked(run, who, all_parts)) for who in ways(package)]


def ways(package: str) -> list[Participant]:
    return [who for who in ACCOUNTANTS if who.package == package]


def optimistic(run: Run, all_parts: list[Parts], ends: list[Any]) -> str:
    """Compositions without a formula, seen from below by somebody else's code."""
    compared = below = 0
    for parts, ours in zip(all_parts, ends, strict=True):
        if truth.has_formula(parts):
            continue
        answer = run.field.ask(
            GOOGLE_FINE, "epsilons", LIMIT, parts=parts, deltas=DELTAS[:4], pessimistic=False
        )
        if answer.given:
            for value, (_, high) in zip(answer.value, ours, strict=False):
                compared += 1
                # Its own sums of floats are off in the last digits.
                below += high < value - 1e-9
    return f"{below} of {compared}"


def judged(all_parts: list[Parts], ends: list[Any], answers: list[Any]) -> tuple[Counter[str], int]:
    """How often each outcome; and how many settings the peer does not offer."""
    counts: Counter[str] = Counter()
    refused = 0
    for parts, both, given in zip(all_parts, ends, answers, strict=True):
        if not isinstance(given, list):
            if given.cannot:
                refused += len(DELTAS)
                continue
            given = [given.error] * len(DELTAS)
        for delta, one, value in zip(DELTAS, both, given, strict=True):
            counts[verdict(value, parts, delta, one)] += 1
    return counts, refused


def summary(rows: list[list[str]]) -> Table:
    heads = ["", "answers", "hold", "below by rounding", "clearly below", "negative", "infinite",
             "error", ""]  # fmt: skip
    return table(heads, [[*row, ""][: len(heads)] for row in rows])


def worst(all_parts: list[Parts], ends: list[Any], answers: dict[str, list[Any]]) -> Table:
    """For each participant the answer that is furthest below the exact value."""
    rows = []
    for label, found in answers.items():
        missing = [
            ((low - value) / low, f"{shown(parts)}, delta {delta:g}", value, low)
            for parts, both, given in zip(all_parts, ends, found, strict=True)
            if isinstance(given, list)
            for delta, (low, _), value in zip(DELTAS, both, given, strict=True)
            if isinstance(value, float)
            and value < low * (1.0 - NOTICEABLE)
            and 0.0 < low < math.inf
        ]
        if missing:
            share, where, value, low = max(missing)
            rows.append([label, where, f"{value:.6g}", f"{low:.6g}", f"{100 * share:.2g} %"])
    heads = ["", "where", "says eps is", "at least", "missing"]
    return table(heads, rows, "The worst answer of each")
