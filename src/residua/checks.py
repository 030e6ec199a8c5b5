"""Argument checks.

Every check is written as "pass if provably good", so NaN never passes, and
every failure names the argument and shows the value.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers as abstract_numbers
import re
import unicodedata
from collections.abc import Callable, Iterable, Sized
from types import UnionType
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from residua.errors import ArgumentError, ArgumentTypeError

Floats = NDArray[np.float64]

_Target = TypeVar("_Target", bound=Callable[..., Any])

LONGEST_SHOWN = 60
"""The most characters of a value that an error shows."""
_NOT_NUMBERS = (bool, np.bool_, np.timedelta64)
"""Types that are registered as numbers and do not mean one."""


def shown(value: object) -> str:
    """A short `repr` for error messages."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def suggestion(value: object, names: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the name most similar to the value; empty if none is similar."""
    if not isinstance(value, str) or len(value) > LONGEST_SHOWN:
        return ""
    import difflib

    plain = {name.casefold().replace("-", "_"): name for name in names}
    found = difflib.get_close_matches(value.casefold().replace("-", "_"), plain, n=1, cutoff=0.7)
    return f"; did you mean {plain[found[0]]!r}?" if found else ""


def require(good: bool, name: str, expected: str, value: object) -> None:
    """Raise `ArgumentError` unless `good` is true."""
    if not good:
        raise ArgumentError(f"{name} must be {expected}, got {shown(value)}")


def real(name: str, value: Any, expected: str = "a real number") -> float:
    """`value` as a float that is not NaN; infinities pass."""
    if type(value) is float and value == value:
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        _check_unmasked(name, value, expected)
        value = value.item()
    if isinstance(value, _NOT_NUMBERS) or not isinstance(value, abstract_numbers.Real):
        what = expected if "number" in expected else f"a number that is {expected}"
        raise ArgumentTypeError(f"{name} must be {what}, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise ArgumentError(f"{name} must be {expected}, got {shown(value)}") from None
    require(number == number, name, expected, value)
    require(number != 0.0 or value == 0, name, "0 or large enough for a float", value)
    return number


def parse_float(name: str, text: str) -> float:
    """Parse a number, which must not round to 0 unless it is 0."""
    number = float(text)
    zero = number != 0.0 or not re.search("[1-9]", re.split("[eE]", text)[0])
    require(zero, name, "0 or large enough for a float", text)
    return number


def _check_unmasked(name: str, value: Any, expected: str) -> None:
    """Reject masked entries: their values are not meant to be used."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ArgumentError(f"{name} must be {expected}, got masked entries in {shown(value)}")


def satisfying(name: str, value: Any, good: Callable[[float], bool], expected: str) -> float:
    """A float that passes, which `expected` describes (and never `-0.0`)."""
    number = real(name, value, expected)
    require(good(number), name, expected, value)
    return number + 0.0


def finite(name: str, value: Any) -> float:
    """A finite float."""
    return satisfying(name, value, math.isfinite, "a finite number")


def positive(name: str, value: Any) -> float:
    """A finite float above zero."""
    return satisfying(name, value, lambda x: 0.0 < x < math.inf, "positive and finite")


def non_negative(name: str, value: Any) -> float:
    """A finite float, zero or above."""
    return satisfying(name, value, lambda x: 0.0 <= x < math.inf, "non-negative and finite")


def probability(name: str, value: Any) -> float:
    """A float in [0, 1]."""
    return satisfying(name, value, lambda x: 0.0 <= x <= 1.0, "in [0, 1]")


def inner_probability(name: str, value: Any) -> float:
    """A float in (0, 1)."""
    return satisfying(name, value, lambda x: 0.0 < x < 1.0, "in (0, 1)")


def between(name: str, value: Any, low: float, high: float) -> float:
    """A float in `[low, high]`."""
    return satisfying(name, value, lambda x: low <= x <= high, f"between {low:g} and {high:g}")


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """One of a few names."""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{name} must be one of {', '.join(choices)}, got {shown(value)}")
    if value not in choices:
        raise ArgumentError(
            f"{name} must be one of {', '.join(choices)}, got {shown(value)}"
            f"{suggestion(value, choices)}"
        )
    return value


def require_fields(what: str, fields: Iterable[str], required: Iterable[str]) -> None:
    """Raise `ArgumentError` unless a description has all required fields."""
    given = sorted(fields)
    missing = [name for name in required if name not in given]
    if missing:
        only = f", got only {shown(given)}" if given else ""
        names = " and ".join(map(repr, missing))
        raise ArgumentError(f"{what} needs the field{'s' * (len(missing) > 1)} {names}{only}")


def count(name: str, value: Any) -> int:
    """A non-negative integer."""
    if isinstance(value, _NOT_NUMBERS) or not isinstance(value, abstract_numbers.Integral):
        raise ArgumentTypeError(f"{name} must be a non-negative integer, got {shown(value)}")
    require(int(value) >= 0, name, "a non-negative integer", value)
    return int(value)


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise ArgumentTypeError(f"{name} must be true or false, got {shown(value)}")
    return value


def instance(name: str, value: Any, kind: type | UnionType, expected: str) -> Any:
    """An object of a class; `expected` describes it in the error."""
    if not isinstance(value, kind):
        raise ArgumentTypeError(f"{name} must be {expected}, got {shown(value)}")
    return value


def items(name: str, value: Any, expected: str) -> tuple[Any, ...]:
    """The items of a list, or of anything iterable but text; it may be empty."""
    # An array of no dimension has the method and cannot be iterated.
    single = getattr(value, "shape", None) == ()
    if isinstance(value, str | bytes) or single or not hasattr(value, "__iter__"):
        raise ArgumentTypeError(f"{name} must be {expected}, got {shown(value)}")
    return tuple(value)


def numbers(name: str, value: Any) -> tuple[float, ...]:
    """A non-empty sequence of finite numbers, as a tuple of floats."""
    _check_unmasked(name, value, "a list of numbers")
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise ArgumentTypeError(f"{name} must be a list of numbers, got {shown(value)}")
    require(len(value) > 0, name, "a non-empty list of numbers", value)
    return tuple(finite(name, item) + 0.0 for item in value)


def array(name: str, value: Any, expected: str = "real numbers") -> Floats:
    """`value` as a float array without NaN, of any shape (a scalar gives shape ())."""
    _check_unmasked(name, value, expected)
    what = expected if "number" in expected else f"a number that is {expected}"
    try:
        given = np.asarray(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{name} must be {what}, got {shown(value)}") from None
    if given.dtype.kind == "O":
        given = _array_of_objects(name, given, expected, value)
    if given.dtype.kind not in "fiu":
        raise ArgumentTypeError(f"{name} must be {what}, got {shown(value)}")
    numbers_ = np.array(given, dtype=np.float64)
    bad = np.isnan(numbers_)
    if bad.any():
        raise ArgumentError(f"{name} must be {expected}, got nan")
    return numbers_


def _array_of_objects(name: str, given: NDArray[Any], expected: str, value: object) -> NDArray[Any]:
    flat = [real(name, item, expected) for item in given.ravel().tolist()]
    try:
        return np.array(flat, dtype=np.float64).reshape(given.shape)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{name} must be {expected}, got {shown(value)}") from None


def array_satisfying(
    name: str, value: Any, good: Callable[[Floats], NDArray[np.bool_]], expected: str
) -> Floats:
    """An array whose elements all satisfy `good`; the error shows the first that does not."""
    numbers_ = array(name, value, expected)
    passes = good(numbers_)
    if not passes.all():
        culprit = float(numbers_[~passes].ravel()[0])
        raise ArgumentError(f"{name} must be {expected}, got {culprit!r}")
    return numbers_


def vector(name: str, value: Any, expected: str = "real numbers") -> Floats:
    """A non-empty one-dimensional float array without NaN."""
    numbers_ = array(name, value, expected)
    require(numbers_.ndim == 1, name, f"a one-dimensional sequence of {expected}", value)
    require(numbers_.size > 0, name, f"a non-empty sequence of {expected}", value)
    return numbers_


def keyword_only(readings: str, calls: str) -> Callable[[_Target], _Target]:
    """Decorate a function or a class so that a positional argument is an error that says why.

    Args:
        readings: what a bare number could mean, such as `mu or sigma`.
        calls: what to write instead, with `{}` for the number.
    """

    def decorate(target: _Target) -> _Target:
        is_class = isinstance(target, type)
        function: Callable[..., Any] = getattr(target, "__init__") if is_class else target  # noqa: B009
        known = [name for name in inspect.signature(function).parameters if name != "self"]

        @functools.wraps(function)
        def checked(*positional: Any, **named: Any) -> Any:
            if len(positional) > is_class:
                value = shown(positional[is_class])
                raise ArgumentTypeError(
                    f"{target.__name__}() takes no positional arguments: {value} could mean "
                    f"{readings}; write {calls.replace('{}', value)}"
                )
            for name in named:
                if name not in known:
                    raise ArgumentTypeError(
                        f"{target.__name__}() takes {', '.join(f'{each}=' for each in known)},"
                        f" got {name}=; write {calls.replace('{}', '…')}"
                    )
            return function(*positional, **named)

        if not is_class:
            return cast(_Target, checked)
        setattr(target, "__init__", checked)  # noqa: B010
        return target

    return decorate


def set_fields(value: object, /, **fields: object) -> None:
    """Store checked fields of a frozen dataclass; only for its `__post_init__`."""
    for name, field in fields.items():
        object.__setattr__(value, name, field)


def require_same_length(name: str, first: Sized, other_name: str, second: Sized) -> None:
    """Raise unless two vectors or lists have one length."""
    if len(first) != len(second):
        raise ArgumentError(
            f"{other_name} must have the same length as {name} ({len(first)}), got {len(second)}"
        )


def label(name: str, value: Any) -> str:
    """A name: one line of printable text, not too long."""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{name} must be a string, got {shown(value)}")
    good = 0 < len(value) <= 200 and value.isprintable() and value.strip() == value
    if not good:
        require(False, name, "one line of 1 to 200 printable characters", value)
    return value


def new_label(name: str, value: Any) -> str:
    """A name for something new: also in composed form (NFC), so that no two names look the same."""
    composed = unicodedata.is_normalized("NFC", label(name, value))
    require(composed, name, "in the composed form of Unicode (NFC)", value)
    return str(value)
