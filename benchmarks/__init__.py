"""Side by side with every peer, in one run: `python -m benchmarks`, or `make bench` for the report.

One benchmark a file. Those beside peers have a `measure(run)` that returns a section: each package
is asked through its adapter (`peers/`), in a process of its own, on inputs that change each time so
that no cache can answer. Those without a peer have a `run(repeats)` that returns rows. Figures are
medians, printed beside their targets and never asserted. Oracles and helpers of the tests are used
as they are.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
