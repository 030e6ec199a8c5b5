"""A limit on the work and the memory of a decision: both are counted, so it is the same everywhere.

What is asked of a filter comes from outside, and may ask for any amount of arithmetic. So whatever
loops or allocates over sizes that a query can choose says beforehand how much that is: `work`, in
operations, each about one elementary function of one number in an array. Where more has been
counted than the limit allows, `TooExpensive` is raised. Time plays no part: a decision must be a
function of what was asked, and not of the machine or of what else it does.

For the same reason a value from a cache costs what it cost to work out. `remembered` takes the
place of `lru_cache` for functions that do counted work, and `remembered_property` that of
`cached_property`. A search asks for the same values at every step, such as the table of a price
list. So a value that is determined by its arguments, the *groundwork* of what it is used for,
counts once under each limit, however often it is asked for. What is kept for one object (a
property) counts each time. A cached value thus has its own work and groundwork, and a total is
the same whatever was worked out before, in whichever thread, and whatever a cache has dropped.

What is linear in the size of something that was counted when it was made need not be counted again.
Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextvars import ContextVar
from functools import lru_cache
from threading import Lock
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, cast, overload
from weakref import WeakValueDictionary

from residua.errors import TooExpensive

OPERATIONS = 9_000_000_000
"""The limit on a decision: about twenty seconds of one core, and ten times what any ordinary one
takes."""
MEMORY = 1 << 30
"""Bytes that one step of the work may hold."""
_CALL = 5000
"""What a step costs beside its arithmetic: some calls of the interpreter."""
UNLIMITED = 1 << 100
"""More than any limit."""

P = ParamSpec("P")
T = TypeVar("T")


class Groundwork:
    """What one value that costs once takes: its own work, and other groundwork."""

    __slots__ = ("__weakref__", "held", "own", "under")

    def __init__(self, own: int, held: int, under: frozenset[Groundwork]):
        self.own, self.held, self.under = own, held, under


class Cost(NamedTuple):
    """What a cached value takes: work each time, bytes of a step at most, and groundwork."""

    own: int
    held: int
    under: frozenset[Groundwork]


class _Entry(Generic[T]):
    """A cached value and its cost."""

    __slots__ = ("cost", "is_shared", "value")

    def __init__(self, value: T, cost: Cost):
        self.value, self.cost = value, cost
        self.is_shared = False
        """Whether it was looked up again after it was computed."""


class Budget:
    """What may be done, and what was."""

    __slots__ = (
        "doing",
        "done",
        "fresh",
        "held",
        "laid",
        "most",
        "owner",
        "paid",
        "room",
        "stated",
        "under",
    )

    def __init__(self, doing: str, stated: int, room: int, outer: Budget | None = None):
        self.doing, self.stated, self.room = doing, stated, room
        self.most: int = stated
        """Operations that there may be."""
        self.owner: Budget = self
        """Whose limit that is: an outer one may be closer."""
        if outer is not None and outer.most - outer.done <= stated:
            self.most, self.owner = outer.most - outer.done, outer.owner
        self.done: int = 0
        """Operations so far."""
        self.laid = 0
        """How many of them were groundwork, in this step."""
        self.held = 0
        """The most bytes that a step has held."""
        self.paid: set[Groundwork] = set()
        """The groundwork that was counted."""
        self.under: set[Groundwork] = set()
        """The groundwork that was used in this step."""
        self.fresh: _Entry[Any] | None = None
        """The value that was cached last: its work was counted as it was done."""

    def check(self) -> None:
        """Raise `TooExpensive` if more was counted than is allowed."""
        if self.done > self.most:
            # All of it counts as used, whatever was asked for last: the same from a cache.
            self.done = self.most
            millions = self.owner.stated // 1_000_000
            what = f"{self.owner.doing} takes more than {millions:,} million operations"
            raise TooExpensive(what, self.owner)
        if self.held > self.room:
            what = f"{self.doing} takes more than {self.room >> 20:,} MB of memory"
            raise TooExpensive(what, self)

    def reuse(self, entry: _Entry[Any]) -> None:
        """Count a value that comes from a cache, unless it has just been worked out."""
        if entry is self.fresh:
            self.fresh = None
        else:
            self.take(*entry.cost)

    def take(self, own: int, held: int, under: Iterable[Groundwork]) -> None:
        """Count what was worked out elsewhere."""
        self.done += own
        if held > self.held:
            self.held = held
        self.under.update(under)
        for each in under:
            if each not in self.paid:
                self._lay(each)
        if self.done > self.most:
            self.check()

    def _lay(self, work: Groundwork) -> None:
        self.paid.add(work)
        self.done += work.own
        self.laid += work.own
        self.held = max(self.held, work.held)
        for each in work.under:
            if each not in self.paid:
                self._lay(each)


_budget: ContextVar[Budget | None] = ContextVar("residua_budget", default=None)


def work(operations: float, held: float = 0) -> None:
    """Say that so many operations follow, and how many bytes they hold; raises if it is too much.

    Every call counts a little more than it says, for the calls of the interpreter that follow.
    """
    budget = _budget.get()
    if budget is None:
        return
    budget.done += int(operations) + _CALL
    if held > budget.held:
        budget.held = int(held)
    if budget.done > budget.most or budget.held > budget.room:
        budget.check()


class limited:  # noqa: N801 (used as a function, as `contextlib.suppress` is)
    """Within, no more than so much is done; and no more than is left of a limit around it.

    Groundwork counts, whatever was counted outside: what is within the limit is so anywhere.
    """

    __slots__ = ("_doing", "_operations", "_token", "budget")

    def __init__(self, doing: str, operations: int = OPERATIONS):
        """Nothing is limited yet.

        Args:
            doing: what this is, for the message of `TooExpensive`.
            operations: how many there may be.
        """
        self._doing, self._operations = doing, operations

    def __enter__(self) -> Budget:
        self.budget = Budget(self._doing, self._operations, MEMORY, _budget.get())
        self._token = _budget.set(self.budget)
        return self.budget

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        _budget.reset(self._token)
        outer, budget = _budget.get(), self.budget
        if outer is None:
            return
        held = min(budget.held, budget.room)
        if error is None:
            outer.take(budget.done - budget.laid, held, budget.under)
        else:
            outer.done += budget.done
            outer.held = max(outer.held, held)


def attempt(doing: str, operations: int, do: Callable[[], T]) -> T | TooExpensive:
    """What a function returns, or why not: it was too expensive for a share of the limit.

    Raises `TooExpensive` where it is a limit around it that was reached.
    """
    try:
        with limited(doing, operations) as budget:
            return do()
    except TooExpensive as error:
        if error.budget is not budget:
            raise
        return error


def counted(do: Callable[[], T]) -> tuple[T, int, int]:
    """What a function returns, without a limit; its operations, and the most bytes of a step."""
    budget = Budget("this", UNLIMITED, UNLIMITED)
    token = _budget.set(budget)
    try:
        return do(), budget.done, budget.held
    finally:
        _budget.reset(token)


def prepaid(do: Callable[[], T]) -> T:
    """What a function returns, of which the work has been counted before."""
    token = _budget.set(None)
    try:
        return do()
    finally:
        _budget.reset(token)


class _TooLarge(Exception):
    """A value that no limit would have allowed; it is not cached, so that none ever does."""

    def __init__(self, value: Any):
        self.value = value


def _measure(do: Callable[[], T]) -> tuple[T, Cost]:
    """What a function returns, and its cost; what it takes of the budget in force is counted."""
    budget = _budget.get()
    token = None
    if budget is None:
        budget = Budget("this", UNLIMITED, UNLIMITED)
        token = _budget.set(budget)
    before, laid, held, under = budget.done, budget.laid, budget.held, budget.under
    budget.laid, budget.held, budget.under = 0, 0, set()
    try:
        found = do()
        cost = Cost(budget.done - before - budget.laid, budget.held, frozenset(budget.under))
        whole = budget.done - before
    finally:
        budget.laid += laid
        budget.held = max(budget.held, held)
        budget.under |= under
        if token is not None:
            _budget.reset(token)
    if whole > OPERATIONS or cost.held > MEMORY:
        raise _TooLarge(found)
    return found, cost


_groundwork: WeakValueDictionary[Hashable, Groundwork] = WeakValueDictionary()
_lock = Lock()


def _lay_groundwork(key: Hashable, do: Callable[[], T]) -> tuple[T, Cost]:
    """The same for what costs once; where that is paid for and a cache has dropped it, nothing."""
    budget = _budget.get()
    with _lock:
        known = _groundwork.get(key)
    if known is not None and budget is not None and known in budget.paid:
        budget.under.add(known)
        return prepaid(do), Cost(0, 0, frozenset((known,)))
    if budget is None:
        found, cost = _measure(do)
    else:
        done, laid, under = budget.done, budget.laid, budget.under
        budget.under = set()
        try:
            found, cost = _measure(do)
        except BaseException:
            budget.under |= under
            raise
        budget.laid, budget.under = laid + budget.done - done, under
    with _lock:
        made = _groundwork.setdefault(key, Groundwork(cost.own, cost.held, cost.under))
    if budget is not None:
        budget.paid.add(made)
        budget.under.add(made)
    return found, Cost(0, 0, frozenset((made,)))


def _light(value: Any) -> Any:
    """An argument as it is kept beside what it cost: without what it keeps in turn."""
    if type(value) is tuple:
        return tuple(map(_light, value))
    bare = getattr(type(value), "_without_caches", None)
    return value if bare is None else bare(value)


def remembered(maxsize: int, once: bool = True) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A cache like `functools.lru_cache`, whose hits cost what they saved.

    Args:
        maxsize: how many values are kept.
        once: whether they count once under each limit; not where arguments are equal only if they
            are the same object.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        def compute(*args: P.args, **kwargs: P.kwargs) -> _Entry[T]:
            if once:
                key = (function, _light(args), tuple(kwargs.items()))
                entry = _Entry(*_lay_groundwork(key, lambda: function(*args, **kwargs)))
            else:
                entry = _Entry(*_measure(lambda: function(*args, **kwargs)))
            budget = _budget.get()
            if budget is not None:
                budget.fresh = entry
            return entry

        cached = lru_cache(maxsize=maxsize)(compute)

        def lookup(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                entry = cached(*args, **kwargs)  # type: ignore[arg-type]
            except _TooLarge as large:
                value: T = large.value
                return value
            budget = _budget.get()
            if budget is not None:
                budget.reuse(entry)
            if not entry.is_shared:
                # Another thread may have cached the same value first. All must go on with one
                # object, since some costs are kept with the object.
                entry.is_shared = True
                entry = prepaid(lambda: cached(*args, **kwargs))  # type: ignore[arg-type]
            return entry.value

        lookup.__doc__ = function.__doc__
        lookup.cache_clear = cached.cache_clear  # type: ignore[attr-defined]
        return lookup

    return decorate


class remembered_property(Generic[T]):  # noqa: N801 (as `functools.cached_property`)
    """A property like `functools.cached_property`, whose reads cost what the first one did.

    What costs nothing becomes an ordinary attribute.
    """

    def __init__(self, function: Callable[[Any], T]):
        self._function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name, self._entry = name, f"{name} (counted)"

    @overload
    def __get__(self, instance: None, owner: type) -> remembered_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> remembered_property[T] | T:
        if instance is None:
            return self
        kept = instance.__dict__
        entry: _Entry[T] | None = kept.get(self._entry)
        if entry is not None:
            budget = _budget.get()
            if budget is not None:
                budget.reuse(entry)
            return entry.value
        try:
            value, cost = _measure(lambda: self._function(instance))
        except _TooLarge as large:
            found: T = large.value
            return found
        if not (cost.own or cost.held or cost.under):
            return cast(T, kept.setdefault(self._name, value))
        return cast("_Entry[T]", kept.setdefault(self._entry, _Entry(value, cost))).value
