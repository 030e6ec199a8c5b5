"""Guards hold, commit, then run: once, and never for free."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fractions import Fraction
from threading import Event
from typing import Any

import pytest

import residua as rz
from residua.ledger.api import guard as guard_module
from residua.ledger.api.guard import Guard
from residua.mechanisms import Laplace, PureDp


@pytest.fixture
def budget(ledger: rz.Ledger) -> rz.Ledger:
    ledger.create_budget("b", rz.PureFilter(1.0))
    return ledger


def left(ledger: rz.Ledger) -> Fraction:
    (amount,) = ledger.budget("b").state.left  # type: ignore[attr-defined]
    return Fraction(amount)


def test_a_guard_pays_before_it_runs(budget: rz.Ledger) -> None:
    @budget.guard("b", PureDp(0.25))
    def count(rows: int) -> int:
        assert left(budget) == Fraction(3, 4), "debited before it starts"
        return rows + 1

    assert count(41) == 42
    assert count.__name__ == "count"
    assert [r.type for r in budget.history("b")] == ["create", "hold", "commit"]


def test_a_fresh_key_for_each_call_unless_one_is_passed(budget: rz.Ledger) -> None:
    runs = []
    guarded = budget.guard("b", PureDp(0.25))(runs.append)
    guarded(1)
    guarded(2)
    guarded(3, guard_key="monday")
    with pytest.raises(rz.AlreadySpent, match="monday"):
        guarded(3, guard_key="monday")
    assert runs == [1, 2, 3] and left(budget) == Fraction(1, 4)


def test_one_key_from_many_threads_runs_once(budget: rz.Ledger) -> None:
    runs = []
    guarded = budget.guard("b", PureDp(0.1), key="once")(runs.append)

    def ask(worker: int) -> str:
        try:
            guarded(worker)
        except rz.AlreadySpent:
            return "already"
        return "ran"

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(ask, range(6)))
    assert found.count("ran") == len(runs) == 1 and left(budget) == Fraction(9, 10)


def test_a_refusal_runs_nothing(budget: rz.Ledger) -> None:
    runs = []
    guarded = budget.guard("b", PureDp(2.0))(runs.append)
    with pytest.raises(rz.Refused, match="would fit") as refused:
        guarded(1)
    assert not runs and not refused.value.answer.admitted  # type: ignore[attr-defined]
    assert left(budget) == 1 and budget.holds() == ()


def test_the_mechanism_may_depend_on_the_arguments(budget: rz.Ledger) -> None:
    @budget.guard("b", lambda rows, scale: Laplace(scale))
    def noisy(rows: int, scale: float) -> float:
        return rows / scale

    assert noisy(10, scale=5.0) == 2.0
    mechanism = budget.history("b")[-1].mechanism
    assert mechanism is not None and mechanism["scale"] == 5.0
    with pytest.raises(rz.ArgumentError, match="scale"):
        noisy(10, scale=-1.0)
    assert left(budget) == Fraction(4, 5)


def test_whatever_fails_inside_is_one_constant_error_and_nothing_comes_back(
    budget: rz.Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    @budget.guard("b", PureDp(0.25))
    def leaky(secret: str) -> None:
        raise ValueError(f"no row for {secret}")

    messages = set()
    for secret in ("alice", "bob"):
        with caplog.at_level(logging.ERROR), pytest.raises(rz.MechanismFailed) as failed:
            leaky(secret)
        messages.add(str(failed.value))
        assert failed.value.__cause__ is None and failed.value.__context__ is None
    assert len(messages) == 1 and not any("alice" in message for message in messages)
    assert "no row for alice" in caplog.text
    assert left(budget) == Fraction(1, 2)


def test_as_a_context_manager(budget: rz.Ledger) -> None:
    with budget.guard("b", PureDp(0.25), key="k") as receipt:
        assert receipt.admitted and not receipt.replayed
    with pytest.raises(rz.AlreadySpent), budget.guard("b", PureDp(0.25), key="k"):
        pytest.fail("entered twice")
    with pytest.raises(rz.MechanismFailed), budget.guard("b", PureDp(0.25)):
        raise RuntimeError("secret")
    with pytest.raises(rz.Refused), budget.guard("b", PureDp(0.75)):
        pytest.fail("entered without budget")
    assert left(budget) == Fraction(1, 2)


def test_async(budget: rz.Ledger) -> None:
    @budget.guard("b", PureDp(0.1))
    async def count(rows: int) -> int:
        await asyncio.sleep(0)
        if rows < 0:
            raise ValueError(rows)
        return rows + 1

    async def main() -> list[int]:
        async with budget.guard("b", PureDp(0.1)) as receipt:
            assert receipt.admitted
        with pytest.raises(rz.MechanismFailed):
            await count(-1)
        return list(await asyncio.gather(*(count(i) for i in range(4))))

    assert asyncio.run(main()) == [1, 2, 3, 4]
    assert left(budget) == Fraction(4, 10)


def test_a_hold_that_cannot_be_committed_is_let_go(budget: rz.Ledger) -> None:
    """The budget is retired between hold and commit: nothing runs, nothing stays held."""
    guard = budget.guard("b", PureDp(0.25), key="k")
    budget.reserve("b", PureDp(0.25), key="k", ttl=60.0)
    budget.retire("b", "over")
    with pytest.raises(rz.LedgerError):
        guard.admit()
    assert budget.holds() == () and left(budget) == 1


# -- what might get out -----------------------------------------------------------------------

SECRET = "no row for alice"


def carried(error: BaseException | None) -> list[BaseException]:
    """An error and all that it carries with it."""
    found: list[BaseException] = []
    todo = [error]
    while todo:
        one = todo.pop()
        if one is not None and one not in found:
            found.append(one)
            todo += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return found


def in_a_block(ledger: rz.Ledger) -> None:
    with ledger.guard("b", PureDp(0.25)):
        raise ValueError(SECRET)


def in_a_stack_of_blocks(ledger: rz.Ledger) -> None:
    with ExitStack() as stack:
        stack.enter_context(ledger.guard("b", PureDp(0.25)))
        raise ValueError(SECRET)


def in_an_async_block(ledger: rz.Ledger) -> None:
    async def main() -> None:
        async with ledger.guard("b", PureDp(0.25)):
            raise ValueError(SECRET)

    asyncio.run(main())


def in_nested_guards(ledger: rz.Ledger) -> None:
    inner = ledger.guard("b", PureDp(0.125))
    with ledger.guard("b", PureDp(0.125)), inner:
        raise ValueError(SECRET)


def in_a_generator(ledger: rz.Ledger) -> None:
    @ledger.guard("b", PureDp(0.25))
    def answers() -> Iterator[int]:
        yield 1
        raise ValueError(SECRET)

    found = answers()
    assert next(found) == 1
    next(found)


def in_an_async_generator(ledger: rz.Ledger) -> None:
    @ledger.guard("b", PureDp(0.25))
    async def answers() -> AsyncIterator[int]:
        yield 1
        raise ValueError(SECRET)

    async def main() -> None:
        async for _ in answers():
            pass

    asyncio.run(main())


def in_a_coroutine_of_a_plain_callable(ledger: rz.Ledger) -> None:
    async def inner() -> None:
        raise ValueError(SECRET)

    asyncio.run(ledger.guard("b", PureDp(0.25))(lambda: inner())())


def in_an_exit(ledger: rz.Ledger) -> None:
    ledger.guard("b", PureDp(0.25))(sys.exit)(SECRET)


def in_a_group(ledger: rz.Ledger) -> None:
    def run() -> None:
        raise BaseExceptionGroup("some", [KeyboardInterrupt(SECRET), ValueError(SECRET)])

    ledger.guard("b", PureDp(0.25))(run)()


@pytest.mark.parametrize(
    "fail",
    [
        in_a_block, in_a_stack_of_blocks, in_an_async_block, in_nested_guards, in_a_generator,
        in_an_async_generator, in_a_coroutine_of_a_plain_callable, in_an_exit, in_a_group,
    ],
)  # fmt: skip
def test_the_constant_error_carries_no_other(
    budget: rz.Ledger, caplog: pytest.LogCaptureFixture, fail: Callable[[rz.Ledger], None]
) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(rz.MechanismFailed) as failed:
        fail(budget)
    assert carried(failed.value) == [failed.value] and SECRET not in str(failed.value)
    assert SECRET in caplog.text, "the operator has the details"
    assert left(budget) == Fraction(3, 4) and budget.holds() == ()


def test_a_cancelled_task_carries_nothing_of_what_it_interrupted(budget: rz.Ledger) -> None:
    started = asyncio.Event()

    @budget.guard("b", PureDp(0.25))
    async def count() -> None:
        try:
            raise ValueError(SECRET)
        except ValueError:
            started.set()
            await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(count())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        assert not any(isinstance(one, ValueError) for one in carried(cancelled.value))

    asyncio.run(main())
    assert left(budget) == Fraction(3, 4), "nothing is refunded"


class Telling(KeyboardInterrupt):
    """An interrupt of a mechanism's own kind, with an attribute."""


def told_by(kind: type[BaseException]) -> BaseException:
    error = kind(SECRET)
    error.add_note(SECRET)
    error.secret = SECRET  # type: ignore[attr-defined]
    error.__cause__ = ValueError(SECRET)
    return error


def raised_in_a_function(ledger: rz.Ledger, error: BaseException) -> None:
    def run() -> None:
        raise error

    ledger.guard("b", PureDp(0.25))(run)()


def raised_in_a_block(ledger: rz.Ledger, error: BaseException) -> None:
    with ledger.guard("b", PureDp(0.25)):
        raise error


def raised_in_a_generator(ledger: rz.Ledger, error: BaseException) -> None:
    def run() -> Iterator[int]:
        yield 1
        raise error

    list(ledger.guard("b", PureDp(0.25))(run)())


def _driven(coroutine: Any) -> None:
    """Run without an event loop, which would put an error of its own in place of some."""
    while True:
        try:
            coroutine.send(None)
        except StopIteration:
            return


def raised_in_a_coroutine(ledger: rz.Ledger, error: BaseException) -> None:
    async def run() -> None:
        raise error

    _driven(guard_module._awaited(run()))
    pytest.fail("nothing was raised")


def raised_in_a_stream(ledger: rz.Ledger, error: BaseException) -> None:
    async def run() -> AsyncIterator[int]:
        yield 1
        raise error

    async def read() -> None:
        async for _ in guard_module._stream(run()):
            pass

    _driven(read())
    pytest.fail("nothing was raised")


@pytest.mark.parametrize(
    ("kind", "passes"),
    [
        (KeyboardInterrupt, KeyboardInterrupt),
        (Telling, KeyboardInterrupt),
        (asyncio.CancelledError, asyncio.CancelledError),
        (GeneratorExit, GeneratorExit),
    ],
)
@pytest.mark.parametrize(
    "fail",
    [
        raised_in_a_function, raised_in_a_block, raised_in_a_generator, raised_in_a_coroutine,
        raised_in_a_stream,
    ],
)  # fmt: skip
def test_an_interrupt_says_nothing_that_a_mechanism_put_into_it(
    budget: rz.Ledger,
    caplog: pytest.LogCaptureFixture,
    fail: Callable[[rz.Ledger, BaseException], None],
    kind: type[BaseException],
    passes: type[BaseException],
) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(passes) as raised:
        fail(budget, told_by(kind))
    found = raised.value
    assert type(found) is passes
    assert found.args == () and found.__dict__ == {} and carried(found) == [found]
    assert SECRET in caplog.text, "the operator has the details"


def test_a_task_cancelled_with_a_message_of_the_mechanism_says_nothing(budget: rz.Ledger) -> None:
    @budget.guard("b", PureDp(0.25))
    async def count() -> None:
        raise asyncio.CancelledError(SECRET)

    async def main() -> None:
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await asyncio.create_task(count())
        assert SECRET not in repr(carried(cancelled.value))

    asyncio.run(main())


class Slow:
    """A ledger whose commits wait until they may, so that a task can be cancelled before them."""

    def __init__(self, ledger: rz.Ledger):
        self.ledger, self.held, self.go = ledger, Event(), Event()

    def reserve(self, *args: Any, **kwargs: Any) -> Any:
        hold = self.ledger.reserve(*args, **kwargs)
        self.held.set()
        assert self.go.wait(60)
        return hold


@pytest.mark.parametrize("way", ["function", "block", "generator"])
def test_a_task_that_is_cancelled_before_the_commit_pays_nothing(
    budget: rz.Ledger, way: str
) -> None:
    slow, runs = Slow(budget), []
    guard = Guard(slow, "b", PureDp(0.25), "k", 60.0, False)

    async def run() -> None:
        if way == "block":
            async with guard:
                runs.append(1)
        elif way == "function":

            async def one() -> None:
                runs.append(1)

            await guard(one)()
        else:

            async def several() -> AsyncIterator[int]:
                runs.append(1)
                yield 1

            async for _ in guard(several)():
                pass

    async def main() -> None:
        task = asyncio.create_task(run())
        await asyncio.to_thread(slow.held.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        slow.go.set()

    asyncio.run(main())  # waits for its threads
    assert not runs and left(budget) == 1 and budget.holds() == ()
    assert [r.type for r in budget.history("b")] == ["create", "hold", "cancel"]


def test_streams_of_answers_are_paid_once_and_answer_what_they_are_sent(budget: rz.Ledger) -> None:
    @budget.guard("b", PureDp(0.25))
    def doubled() -> Generator[int, int, str]:
        said = 0
        while said < 3:
            said = yield 2 * said
        return "done"

    @budget.guard("b", PureDp(0.25))
    async def doubled_later() -> AsyncGenerator[int, int]:
        said = 0
        while said < 3:
            said = yield 2 * said

    conversation = doubled()
    assert left(budget) == Fraction(3, 4), "charged whole when it starts"
    assert [next(conversation), conversation.send(1), conversation.send(2)] == [0, 2, 4]
    with pytest.raises(StopIteration) as end:
        conversation.send(3)
    assert end.value.value == "done"
    doubled().close()

    async def main() -> None:
        other = doubled_later()
        assert [await other.asend(None), await other.asend(1), await other.asend(2)] == [0, 2, 4]
        with pytest.raises(StopAsyncIteration):
            await other.asend(3)
        unfinished = doubled_later()
        assert await anext(unfinished) == 0
        await unfinished.aclose()

    asyncio.run(main())
    assert left(budget) == 0


def test_a_guard_that_is_entered_again_pays_again(budget: rz.Ledger) -> None:
    guard = budget.guard("b", PureDp(0.25))
    with guard as outer, guard as inner:
        assert outer.key != inner.key
    assert left(budget) == Fraction(1, 2)
    once = budget.guard("b", PureDp(0.25), key="k")
    with once, pytest.raises(rz.AlreadySpent), once:
        pytest.fail("entered twice")
    assert left(budget) == Fraction(1, 4)


def test_a_key_of_a_spend_or_of_another_query_runs_nothing(budget: rz.Ledger) -> None:
    budget.spend("b", PureDp(0.25), key="spent")
    runs: list[int] = []
    guarded = budget.guard("b", PureDp(0.25))(runs.append)
    with pytest.raises(rz.LedgerError):
        guarded(1, guard_key="spent")
    guarded(2, guard_key="k")
    with pytest.raises(rz.KeyReused):
        budget.guard("b", PureDp(0.125))(runs.append)(3, guard_key="k")
    assert runs == [2] and left(budget) == Fraction(1, 2) and budget.holds() == ()
