"""Bodies of spends, most of which came before.

What an engine sends differs from one spend to the next in its key, and not often in its mechanism.
So a body of the usual form, `{"mechanism": {…}, "key": "…"}` with nothing nested and a plain key,
is recognised by its bytes, and its mechanism found by them. Anything else is read in full, and so
is every mechanism the first time: where all of such a body was valid JSON, what stands between the
braces is an object by itself (a brace inside of a text would leave `key` outside of quotes), so it
means the same beside any other key.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from residua.ledger.domain.described_query import Asked
from residua.service.api import models
from residua.service.api.reading import parsed, validated
from residua.service.dispatch import query_of

_USUAL = re.compile(
    rb'\{"mechanism": ?(\{[^{}]{1,500}\}), ?"key": ?"([A-Za-z0-9._:-]{1,%d})"\}'
    % models.LONGEST_KEY
)
_MOST = 4096


class Spend(NamedTuple):
    """What a body asks for."""

    query: Asked
    key: str | None
    also: tuple[str, ...] = ()
    assumed: bool = False


class Bodies:
    """Reads bodies of spends. Used from one thread, that of the event loop."""

    def __init__(self) -> None:
        self._queries: dict[bytes, Asked] = {}

    def read(self, raw: bytes) -> Spend:
        """What a body asks for; raises what reading it in full would."""
        usual = _USUAL.fullmatch(raw)
        if usual is not None:
            query = self._queries.get(usual[1])
            if query is not None:
                return Spend(query, usual[2].decode("ascii"))
        ask = validated(models.Ask, parsed(raw))
        query = query_of(ask.mechanism)
        if usual is not None:
            if len(self._queries) >= _MOST:
                self._queries.clear()
            self._queries[usual[1]] = query
        return Spend(query, ask.key, tuple(ask.also), ask.assume_budget_relation)
