"""How hard tests try: a little by default, twenty times as hard in the thorough profile."""

from __future__ import annotations

import os

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"


def tries(few: int) -> int:
    """Examples of a property whose examples are expensive."""
    return 20 * few if THOROUGH else few
