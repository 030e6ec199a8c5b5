"""Every exception of residuum.

    ResiduumError
    ├── ArgumentError        (also ValueError)  an argument's value is not allowed
    │   └── UnsupportedError   something of another library that has no proven loss here
    ├── ArgumentTypeError    (also TypeError)   an argument has the wrong type
    ├── BudgetError          something would run that no filter admitted
    └── TooLargeError        an exact computation would not fit; the message says its size

A refusal is a value, never an exception; an exception is a malfunction or a
wrong call. Messages say what was expected, the argument's name and its value.
"""


class ResiduumError(Exception):
    """The root of every error raised by this package."""


class ArgumentError(ResiduumError, ValueError):
    """An argument's value is not allowed; the message names it and shows it."""


class UnsupportedError(ArgumentError):
    """Something of another library has no proven loss here; `culprit` is that thing."""

    def __init__(self, message: str, culprit: object = None):
        super().__init__(message)
        self.culprit = culprit


class ArgumentTypeError(ResiduumError, TypeError):
    """An argument has the wrong type; the message names it and shows it."""


class BudgetError(ResiduumError):
    """Something would run that no filter admitted; it did not."""


class TooLargeError(ResiduumError):
    """An exact computation would take too many states or atoms; the message says how many."""
