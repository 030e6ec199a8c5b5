"""Hand a ledger to the verifier, which is loaded only then and imports nothing from here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from residua.errors import StoreUnavailable
from residua.ledger.operations.committer import Committer
from residua.ledger.operations.early_decisions import Compute, here
from residua.ledger.recovery.export import chain, snapshot, table_in
from residua.ledger.storage.store import Store, address_of, opened_to_read


def verify(
    committer: Committer, compute: Compute, expect_head: Any, since: Any, **options: Any
) -> Any:
    """The verifier's report on all chains; the other options are the verifier's own.

    The heads in the anchor are expected in any case, as is what the caller expects.
    """
    # Before the records are looked at: what others acknowledge meanwhile is not expected yet.
    expected = {"anchored": _anchored(committer), "expect_head": expect_head, "since": since}
    if compute is here:
        return _verify(committer.store, **expected, **options)
    return compute(_verify_at, address_of(committer.store), {**expected, **options})


def _verify(store: Store, **options: Any) -> Any:
    verifier = import_module("residua.verify")
    reading = store.reading
    with reading() as connection:
        budgets = snapshot(connection)
    return verifier.verify_records(
        {name: chain(reading, id, last) for id, name, last in budgets},
        tables=lambda hash: table_in(reading, hash),
        **options,
    )


def _verify_at(address: str, options: dict[str, Any]) -> Any:
    """The same in a process that has nothing open."""
    with opened_to_read(address) as store:
        return _verify(store, **options)


def _anchored(committer: Committer) -> Any:
    """The heads that the anchor knows; None where there is none."""
    try:
        said = None if committer.anchor is None else committer.anchor.read()
    except OSError as error:
        raise StoreUnavailable(
            f"the anchor {committer.anchor} cannot be read ({error.strerror}), so truncation would"
            " not be noticed: verify as a user who may read it, or give a copy as anchor"
        ) from error
    return None if said is None else dict(said.marks)
