"""A limit on the work and the memory of a decision: both are counted, so it is the same everywhere.

A query comes from outside, and may require any amount of arithmetic. So code that loops or
allocates over sizes that a query can choose calls `work` first, with the operations that follow;
an operation is about one elementary function of one number in an array. If more is counted than
the limit allows, `TooExpensive` is raised. Time plays no part: a decision must be a function of the
query and the state, and not of the machine or of what else it does.

For the same reason reading a cached value counts as much as computing it. `remembered` replaces
`lru_cache` for functions that do counted work, and `remembered_property` replaces
`cached_property`. A search needs the same values at every step, such as the table of a price list.
So the value of a `remembered` function, which its arguments determine, counts once under each
limit however often it is read: it is *groundwork* for the values that use it. A
`remembered_property` belongs to one object and counts at each read. The cost of a cached value is
therefore the operations of each read and the groundwork it uses, and a total is the same whatever
was computed before, in whichever thread, and whatever a cache has dropped.

What is linear in the size of something that was counted when it was made need not be counted again.
Standard library only.
"""

from __future__ import annotations

import sys
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
UNLIMITED = sys.maxsize
"""More than any limit."""

P = ParamSpec("P")
T = TypeVar("T")


class Groundwork:
    """A value whose work counts once under a limit: its operations, and the groundwork it uses."""

    __slots__ = ("__weakref__", "operations", "peak_memory", "uses")

    def __init__(self, operations: int, peak_memory: int, uses: frozenset[Groundwork]):
        self.operations, self.peak_memory, self.uses = operations, peak_memory, uses


class Cost(NamedTuple):
    """What a cached value takes: operations at each read, bytes at most, and groundwork."""

    operations: int
    peak_memory: int
    uses: frozenset[Groundwork]


class _Entry(Generic[T]):
    """A cached value and its cost."""

    __slots__ = ("cost", "is_shared", "value")

    def __init__(self, value: T, cost: Cost):
        self.value, self.cost = value, cost
        self.is_shared = False
        """Whether it was looked up again after it was computed."""


class WorkBudget:
    """The work that one limit allows, and the work that was counted under it."""

    __slots__ = (
        "activity",
        "binding_outer",
        "counted_groundwork",
        "groundwork_operations",
        "just_computed",
        "memory_limit",
        "operation_limit",
        "operations",
        "own_limit",
        "peak_memory",
        "used_groundwork",
    )

    def __init__(
        self, activity: str, own_limit: int, memory_limit: int, outer: WorkBudget | None = None
    ):
        self.activity, self.own_limit, self.memory_limit = activity, own_limit, memory_limit
        self.operation_limit: int = own_limit
        """The operations that are allowed: its own limit, or what is left of the outer one."""
        self.binding_outer: WorkBudget | None = None
        """The outer budget whose limit that is; None where it is its own."""
        if outer is not None and outer.operation_limit - outer.operations <= own_limit:
            self.operation_limit = outer.operation_limit - outer.operations
            self.binding_outer = outer.binding_outer or outer
        self.operations: int = 0
        """The operations that were counted so far."""
        self.groundwork_operations = 0
        """How many of them were groundwork, since the current measurement began."""
        self.peak_memory = 0
        """The most bytes that one step has held, since the current measurement began."""
        self.counted_groundwork: set[Groundwork] = set()
        """The groundwork that was counted already, so that it is not counted again."""
        self.used_groundwork: set[Groundwork] = set()
        """The groundwork that was used since the current measurement began."""
        self.just_computed: _Entry[Any] | None = None
        """The value that was cached last: its work was counted as it was computed."""

    def check(self) -> None:
        """Raise `TooExpensive` if more was counted than is allowed."""
        if self.operations > self.operation_limit:
            # All of it counts as used, whatever the last call added: the same from a cache.
            self.operations = self.operation_limit
            binding = self.binding_outer or self
            millions = binding.own_limit // 1_000_000
            what = f"{binding.activity} takes more than {millions:,} million operations"
            raise TooExpensive(what, binding)
        if self.peak_memory > self.memory_limit:
            what = f"{self.activity} takes more than {self.memory_limit >> 20:,} MB of memory"
            raise TooExpensive(what, self)

    def count_read(self, entry: _Entry[Any]) -> None:
        """Count the read of a cached value, unless it has just been computed and counted."""
        if entry is self.just_computed:
            self.just_computed = None
        else:
            self.count_cost(*entry.cost)

    def count_cost(self, operations: int, peak_memory: int, uses: Iterable[Groundwork]) -> None:
        """Count work that was done elsewhere, or that a cache saved."""
        self.operations += operations
        if peak_memory > self.peak_memory:
            self.peak_memory = peak_memory
        self.used_groundwork.update(uses)
        for each in uses:
            if each not in self.counted_groundwork:
                self._count_groundwork(each)
        if self.operations > self.operation_limit:
            self.check()

    def _count_groundwork(self, groundwork: Groundwork) -> None:
        """Count groundwork and all that it uses, each once."""
        self.counted_groundwork.add(groundwork)
        self.operations += groundwork.operations
        self.groundwork_operations += groundwork.operations
        self.peak_memory = max(self.peak_memory, groundwork.peak_memory)
        for each in groundwork.uses:
            if each not in self.counted_groundwork:
                self._count_groundwork(each)


_budget: ContextVar[WorkBudget | None] = ContextVar("residua_budget", default=None)


def work(operations: float, memory: float = 0) -> None:
    """Count operations that follow, and the bytes that they hold; raise if that is too much.

    Every call counts a little more than it says, for the calls of the interpreter that follow.
    """
    budget = _budget.get()
    if budget is None:
        return
    budget.operations += int(operations) + 5000
    if memory > budget.peak_memory:
        budget.peak_memory = int(memory)
    if budget.operations > budget.operation_limit or budget.peak_memory > budget.memory_limit:
        budget.check()


class limited:  # noqa: N801 (used as a function, as `contextlib.suppress` is)
    """Limit the work of a `with` block, also to what is left of a limit around the block.

    Groundwork counts again inside the block even if it was counted outside: whether the block stays
    within its limit does not depend on what was done before.
    """

    __slots__ = ("_activity", "_operations", "_token", "budget")

    def __init__(self, activity: str, operations: int = OPERATIONS):
        """Nothing is limited before the block begins.

        Args:
            activity: what the block does, for the message of `TooExpensive`.
            operations: the operations that are allowed.
        """
        self._activity, self._operations = activity, operations

    def __enter__(self) -> WorkBudget:
        self.budget = WorkBudget(self._activity, self._operations, MEMORY, _budget.get())
        self._token = _budget.set(self.budget)
        return self.budget

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        _budget.reset(self._token)
        outer, budget = _budget.get(), self.budget
        if outer is None:
            return
        peak_memory = min(budget.peak_memory, budget.memory_limit)
        if error is None:
            each_time = budget.operations - budget.groundwork_operations
            outer.count_cost(each_time, peak_memory, budget.used_groundwork)
        else:
            outer.operations += budget.operations
            outer.peak_memory = max(outer.peak_memory, peak_memory)


def attempt(activity: str, operations: int, do: Callable[[], T]) -> T | TooExpensive:
    """Call a function under a limit; return its result, or the error if it was too expensive.

    Raises `TooExpensive` if the limit that was reached is not this one but one around it.
    """
    try:
        with limited(activity, operations) as budget:
            return do()
    except TooExpensive as error:
        if error.budget is not budget:
            raise
        # Its traceback would keep the arrays of the computation.
        return error.with_traceback(None)


def measure_work(do: Callable[[], T]) -> tuple[T, int, int]:
    """Call a function without a limit; return its result, its operations and its peak memory."""
    budget = WorkBudget("this", UNLIMITED, UNLIMITED)
    token = _budget.set(budget)
    try:
        return do(), budget.operations, budget.peak_memory
    finally:
        _budget.reset(token)


def without_counting(do: Callable[[], T]) -> T:
    """Call a function whose work was counted before, and count nothing."""
    token = _budget.set(None)
    try:
        return do()
    finally:
        _budget.reset(token)


class _TooLarge(Exception):
    """A value that no limit would have allowed; it is not cached, so that none ever does."""

    def __init__(self, value: Any):
        self.value = value


def _measure_cost(do: Callable[[], T]) -> tuple[T, Cost]:
    """Call a function; return its result and its cost. The budget in force counts the work."""
    budget = _budget.get()
    token = None
    if budget is None:
        budget = WorkBudget("this", UNLIMITED, UNLIMITED)
        token = _budget.set(budget)
    operations_before, groundwork_before = budget.operations, budget.groundwork_operations
    memory_before, used_before = budget.peak_memory, budget.used_groundwork
    budget.groundwork_operations, budget.peak_memory, budget.used_groundwork = 0, 0, set()
    try:
        value = do()
        operations = budget.operations - operations_before
        each_time = operations - budget.groundwork_operations
        cost = Cost(each_time, budget.peak_memory, frozenset(budget.used_groundwork))
    finally:
        budget.groundwork_operations += groundwork_before
        budget.peak_memory = max(budget.peak_memory, memory_before)
        budget.used_groundwork |= used_before
        if token is not None:
            _budget.reset(token)
    if operations > OPERATIONS or cost.peak_memory > MEMORY:
        raise _TooLarge(value)
    return value, cost


_groundwork: WeakValueDictionary[Hashable, Groundwork] = WeakValueDictionary()
_lock = Lock()


def _do_groundwork(key: Hashable, do: Callable[[], T]) -> tuple[T, Cost]:
    """Call a function whose work is groundwork; return its result and its cost.

    If the groundwork was counted under the budget in force, and a cache has dropped the value
    since, it is computed again and nothing is counted.
    """
    budget = _budget.get()
    with _lock:
        known = _groundwork.get(key)
    if known is not None and budget is not None and known in budget.counted_groundwork:
        budget.used_groundwork.add(known)
        return without_counting(do), Cost(0, 0, frozenset((known,)))
    if budget is None:
        value, cost = _measure_cost(do)
    else:
        operations_before, groundwork_before = budget.operations, budget.groundwork_operations
        used_before = budget.used_groundwork
        budget.used_groundwork = set()
        try:
            value, cost = _measure_cost(do)
        except BaseException:
            budget.used_groundwork |= used_before
            raise
        budget.groundwork_operations = groundwork_before + budget.operations - operations_before
        budget.used_groundwork = used_before
    with _lock:
        groundwork = _groundwork.setdefault(key, Groundwork(*cost))
    if budget is not None:
        budget.counted_groundwork.add(groundwork)
        budget.used_groundwork.add(groundwork)
    return value, Cost(0, 0, frozenset((groundwork,)))


def _light(value: Any) -> Any:
    """An argument as part of a key: without the values that it caches in turn."""
    if type(value) is tuple:
        return tuple(map(_light, value))
    bare = getattr(type(value), "_without_caches", None)
    return value if bare is None else bare(value)


def remembered(maxsize: int, once: bool = True) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A cache like `functools.lru_cache`, whose hits count the work that they saved.

    Args:
        maxsize: how many values are kept.
        once: whether a value is groundwork, which counts once under each limit. False if arguments
            are equal only if they are the same object.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        def compute(*args: P.args, **kwargs: P.kwargs) -> _Entry[T]:
            if once:
                key = (function, _light(args), tuple(kwargs.items()))
                entry = _Entry(*_do_groundwork(key, lambda: function(*args, **kwargs)))
            else:
                entry = _Entry(*_measure_cost(lambda: function(*args, **kwargs)))
            budget = _budget.get()
            if budget is not None:
                budget.just_computed = entry
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
                budget.count_read(entry)
            if not entry.is_shared:
                # Another thread may have cached the same value first. All must go on with one
                # object, since some costs are kept with the object.
                entry.is_shared = True
                entry = without_counting(lambda: cached(*args, **kwargs))  # type: ignore[arg-type]
            return entry.value

        lookup.__doc__ = function.__doc__
        lookup.cache_clear = cached.cache_clear  # type: ignore[attr-defined]
        return lookup

    return decorate


class remembered_property(Generic[T]):  # noqa: N801 (as `functools.cached_property`)
    """A property like `functools.cached_property`, whose reads count as much as the first one.

    A value that took no work becomes an ordinary attribute.
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
                budget.count_read(entry)
            return entry.value
        try:
            value, cost = _measure_cost(lambda: self._function(instance))
        except _TooLarge as large:
            large_value: T = large.value
            return large_value
        if not (cost.operations or cost.peak_memory or cost.uses):
            return cast(T, kept.setdefault(self._name, value))
        return cast("_Entry[T]", kept.setdefault(self._entry, _Entry(value, cost))).value
