"""One more decision of a zCDP filter, as the history before it grows."""

from __future__ import annotations

from benchmarks.harness.run import Run
from benchmarks.harness.section import Goal, Plot, Section, at_least, table, time_text
from benchmarks.peers.participants import OPENDP, TMLT, US

HISTORIES = (10, 100, 1000, 3000)
WHO = (US, OPENDP, TMLT)
SIGMA = 10.0
MORE = 50


def measure(run: Run) -> Section:
    histories = (10, 40) if run.quick else HISTORIES
    found: dict[str, list[float | None]] = {who.label: [] for who in WHO}
    rows = []
    for who in WHO:
        cells = []
        for history in histories:
            answer = run.field.ask(who, "decisions", 120.0, history=history, more=MORE, sigma=SIGMA)
            # The noise itself is subtracted: little is left of little.
            value = max(answer.value, 1e-9) if answer.given else None
            found[who.label].append(value)
            cells.append(time_text(value) if answer.given else answer.cannot or answer.error)
        rates = [f"{1 / v:,.0f}" for v in found[who.label] if v]
        rows.append([who.label, *cells, rates[-1] if rates else ""])
    ours, theirs = found[US.label], found[OPENDP.label]
    goals, better = [], []
    if ours[0] and ours[-1]:
        growth = ours[-1] / ours[0]
        what = f"our decision after {histories[-1]:,} queries over one after {histories[0]}"
        goals.append(Goal(what, f"{growth:.2f} x", "flat: at most 1.5 x", growth <= 1.5))
    for place, history in enumerate(histories):
        for who in WHO[1:]:
            mine, other = ours[place], found[who.label][place]
            if mine and other and other < mine:
                better.append(f"A decision after {history:,} queries: {who.label} is faster")
        if history == 1000 and ours[place] and theirs[place]:
            ratio = theirs[place] / ours[place]  # type: ignore[operator]
            goals.append(at_least("a decision after 1,000 queries, beside OpenDP", ratio, 10.0))
    heads = ["", *(f"after {history:,}" for history in histories), "decisions a second, then"]
    return Section(
        "filter_history",
        "Filter decisions as history grows",
        "Time for one decision of a zCDP filter on a Gaussian query. OpenDP answers through its "
        "filter, so the time of the noise alone is subtracted; tmlt.core does not draw it yet. "
        "dp_accounting, prv_accountant, autodp, riskcal and Opacus have no filter.",
        (table(heads, rows),),
        tuple(goals),
        tuple(better),
        (
            Plot("filter-history", "One decision of a zCDP filter", "queries before it",
                 "processor seconds", tuple(histories),
                 {label: tuple(values) for label, values in found.items()}, log_x=True),
        ),
    )  # fmt: skip
