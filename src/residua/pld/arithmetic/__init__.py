"""Arithmetic with proven errors; here, the limits that searches and lists of this package share."""

from __future__ import annotations

MOST_STEPS = 60
"""Steps of a search, or rounds of a refinement: enough to halve an interval down to two floats."""
FEW = 1 << 9
"""Outcomes up to which a list is handled in exact arithmetic, or one by one."""
MANY = 1 << 14
"""Outcomes, cells or samples up to which a list is written out in floats."""
BATCH = 1 << 20
"""Numbers worked on at a time, which bounds the memory: some tens of megabytes."""
