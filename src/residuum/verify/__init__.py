"""The second opinion: re-checks a ledger's records and re-proves every step in ball arithmetic.

Shares no numerics with the rest of the package: it reads records, derives every loss from the
recorded description with formulas of its own, and proves in Arb (python-flint). Standard library
and python-flint only.
"""

from residuum.verify.report import Problem, Report, Step
from residuum.verify.verification import verify_export, verify_records

__all__ = ["Problem", "Report", "Step", "verify_export", "verify_records"]
