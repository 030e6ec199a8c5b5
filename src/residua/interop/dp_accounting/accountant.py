"""dp_accounting's accountant interface on our core.

Composition is exact, per direction of the neighbouring relation, and every answer is an upper bound
that is proven: nothing is discretised, and nothing is truncated.
"""

from __future__ import annotations

import math
from typing import Any

from dp_accounting import NeighboringRelation
from dp_accounting import PrivacyAccountant as Interface

from residua import checks
from residua.errors import UnsupportedError
from residua.interop.dp_accounting.events import from_dp_event, is_everything, relation_of
from residua.mechanisms.relations import directions
from residua.pld.pld import Pld
from residua.pld.running_composition import RunningComposition


class PrivacyAccountant(Interface):  # type: ignore[misc]
    """Composes events and answers with proven upper bounds, for any neighbouring relation."""

    def __init__(
        self, neighboring_relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE
    ):
        super().__init__(neighboring_relation)
        self._relation = relation_of(neighboring_relation)
        self._losses = {side: RunningComposition() for side in directions(self._relation)}
        self._everything = False

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        try:
            mechanism = from_dp_event(event, self._relation)
        except UnsupportedError as error:
            return self.CompositionErrorDetails(
                invalid_event=error.culprit, error_message=str(error)
            )
        if do_compose:
            checks.require(count > 0, "count", "positive", count)
            self._everything |= is_everything(mechanism)
            for direction, loss in mechanism.plds(self._relation).items():
                self._losses[direction].compose(count * loss)
        return None

    @property
    def plds(self) -> dict[str, Pld]:
        """The composed loss of each direction."""
        return {direction: loss.pld for direction, loss in self._losses.items()}

    def get_epsilon(self, target_delta: float) -> float:
        """The least `eps` at `target_delta`, in the worst direction, from above."""
        delta = checks.probability("target_delta", target_delta)
        # By their convention nothing makes up for an event without privacy, not even delta = 1.
        if self._everything:
            return math.inf
        return max(loss.epsilon(delta) for loss in self._losses.values())

    def get_delta(self, target_epsilon: float) -> float:
        """The least `delta` at `target_epsilon`, in the worst direction, from above."""
        eps = checks.real("target_epsilon", target_epsilon)
        checks.require(eps >= 0.0, "target_epsilon", "non-negative", target_epsilon)
        if self._everything:
            return 1.0
        if eps == math.inf:
            return max(loss.pld.mass_at_infinity for loss in self._losses.values())
        return max(loss.delta(eps) for loss in self._losses.values())
