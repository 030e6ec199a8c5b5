"""Whether anything could be spent now; nothing is written to find out."""

from __future__ import annotations

from residuum.errors import LedgerError, ReadOnlyLedger
from residuum.ledger.gate import Gate
from residuum.ledger.migrate import HOME, facts_in
from residuum.ledger.opening import _moved, heads_in, what_is_lost


def why_closed(gate: Gate) -> str | None:
    """Why a ledger would be read-only for whoever opened it to write, if so.

    What the anchor says is read first, so that a store that others write to is never behind it.
    """
    if gate.anchor is None:
        return None
    try:
        said = gate.anchor.read()
        with gate.store.reading() as connection:
            heads = heads_in(connection)
            lost = what_is_lost(gate, said, heads, connection)
            home = (facts_in(connection) or {}).get(HOME)
            if not lost and home not in (None, gate.store.identity(connection)):
                lost = _moved(gate, said, heads)
    except OSError as error:
        return f"the anchor {gate.anchor} cannot be read: {error}"
    except LedgerError as error:
        return str(error)
    if not lost:
        return None
    name, why = next(iter(lost.items()))
    more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
    budget = f"budget {name!r}: " if name else ""
    return (
        f"{gate.store.place} may have lost spends: {budget}{why}{more};"
        " recover the ledger (residuum recover)"
    )


def must_be_open(read_only: str | None) -> None:
    """Raise where nothing would be admitted now, whatever the filters say."""
    if read_only is not None:
        raise ReadOnlyLedger(f"nothing would be admitted now: {read_only}")
