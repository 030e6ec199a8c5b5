"""Sessions: an analyst asks in SQL, and gets noisy answers until the budget is spent.

    session = rz.open_session(ledger, principal="ann")
    answer = session.sql("SELECT dept, COUNT(*), AVG(salary) FROM staff GROUP BY dept", eps=0.1)

A question takes these steps, in this order: it is read and planned, from public information alone;
the cost of its noise is held and committed, durably, with the question and the version of the
table's declaration on record; one statement runs; noise is drawn, once; the answer is stored; the
caller gets it. What fails after the commit is paid for, and shows nothing but one constant error.
A key whose spend was committed never draws noise again.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from residua import checks
from residua.data import answers, declarations, plans, queries
from residua.data.answers import Answer
from residua.data.charging import Charge, Wish, choose
from residua.data.keys import groups_of
from residua.data.noise import GUMBEL, shared_level
from residua.data.plans import Plan
from residua.data.sources import Limits, Running, Source, source_at
from residua.data.statements import statement_of
from residua.errors import ArgumentError, Refused
from residua.ledger.api.guard import LOG, Guard

HIDDEN_KEY = "<secret key>"
"""What a plan shows in place of the key."""


@dataclass(frozen=True)
class Preview:
    """What a question would do: its noise, its accuracy and its cost. Nothing was spent."""

    sql: str
    statement: str
    noise: Mapping[str, Any]
    accuracy: Mapping[str, float | None]
    """The 95 % half-width of each column; None where it depends on the data."""
    mechanism: Any
    admitted: bool
    reason: str
    remaining: Any
    repeated: bool
    """Whether the answer was released before, so that it would cost nothing."""

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON data."""
        return {
            "sql": self.sql, "statement": self.statement, "noise": dict(self.noise),
            "accuracy": dict(self.accuracy), "mechanism": self.mechanism.to_dict(),
            "admitted": self.admitted, "reason": self.reason, "repeated": self.repeated,
        }  # fmt: skip


class Session:
    """Questions of one principal. Safe to share between threads."""

    def __init__(self, ledger: Any, budget: str | None, limits: Limits):
        self._ledger = ledger
        self._budget = budget
        self._limits = limits
        self._running: set[Running] = set()

    @property
    def principal(self) -> str:
        """Who asks."""
        return str(self._ledger.principal)

    def tables(self) -> dict[str, declarations.Table]:
        """The tables that can be asked about, by name."""
        return declarations.tables(self._ledger)

    def cancel(self) -> None:
        """Stop every statement that runs. What was committed stays charged."""
        for each in tuple(self._running):
            each.cancel()

    def sql(
        self,
        sql: str,
        *,
        eps: float | None = None,
        accuracy: float | None = None,
        scale: float | None = None,
        noise: str | None = None,
        delta: float | None = None,
        key: str | None = None,
    ) -> Answer:
        """Answer a question, or refuse it.

        Args:
            sql: a SELECT about one declared table.
            eps: how much pure differential privacy the answer costs; Laplace noise.
            accuracy: the 95 % half-width of each column, for counts and sums.
            scale: the scale of the noise on each column, for counts and sums; the standard
                deviation, if it is Gaussian.
            noise: `laplace` or `gaussian`; by default what costs less.
            delta: what the answer may cost in `delta` to group by columns without declared keys:
                a group appears if its noisy number of units reaches a threshold.
            key: the caller's id for the question; the same key gets the same answer again.

        Returns:
            The answer; one that was released before, marked as `repeated`, costs nothing. A refusal
            is an answer without rows, and spends nothing.

        Raises:
            ArgumentError: the question cannot be answered; nothing was spent.
            AlreadySpent: the key's answer was paid for, and was lost before it was stored.
            MechanismFailed: the statement failed or was cancelled; it was paid for.
        """
        wish = Wish(eps, accuracy, scale, noise, delta)
        question = self._question(sql, delta is not None)
        given = None if key is None else checks.label("key", key)
        known = self._find(question, wish, given)
        if known is not None:
            return known
        plan = plans.plan(question)
        source = _source(question.table)
        charge = choose(self._ledger, self._charged(question.table), plan, wish)
        answer = Answer(
            question.sql, tuple(each.name for each in question.items), (), (),
            _noise_by_measure(plan, charge), charge.mechanism.to_dict(),
            given or secrets.token_hex(16), False, "",
        )  # fmt: skip
        statement = _statement(plan, source, secrets.token_hex(16))
        return self._pay_and_run(plan, charge, source, statement, wish, answer)

    def preview(
        self,
        sql: str,
        *,
        eps: float | None = None,
        accuracy: float | None = None,
        scale: float | None = None,
        noise: str | None = None,
        delta: float | None = None,
    ) -> Preview:
        """The statement, the noise, the accuracy and the cost of a question. Nothing is spent."""
        wish = Wish(eps, accuracy, scale, noise, delta)
        question = self._question(sql, delta is not None)
        plan = plans.plan(question)
        charge = choose(self._ledger, self._charged(question.table), plan, wish)
        source = _source(question.table)
        made = _statement(plan, source, HIDDEN_KEY)
        widths = _expected_widths(plan, charge)
        return Preview(
            question.sql, made.sql(source.dialect, pretty=True), _noise_by_measure(plan, charge),
            widths, charge.mechanism, charge.check.admitted, charge.check.reason,
            charge.check.remaining, self._find(question, wish, None) is not None,
        )  # fmt: skip

    # -- steps --------------------------------------------------------------------------

    def _question(self, sql: str, unknown_keys: bool) -> queries.Question:
        table = declarations.table(self._ledger, queries.table_named(sql))
        return queries.parse(sql, table, unknown_keys)

    def _charged(self, table: declarations.Table) -> str:
        return table.budget if self._budget is None else self._budget

    def _ids(self, question: queries.Question, wish: Wish) -> tuple[str, str]:
        """The ids of a question with the wish for its noise, and without."""
        table = question.table
        plain = {
            "table": table.name, "version": table.version, "data_version": table.data_version,
            "sql": question.sql,
        }  # fmt: skip
        ids = answers.question_id({**plain, "noise": wish.to_list()}), answers.question_id(plain)
        return ids

    def _find(self, question: queries.Question, wish: Wish, key: str | None) -> Answer | None:
        exact, any_noise = self._ids(question, wish)
        shared = question.table.shared_answers
        return answers.find(self._ledger, key, exact, any_noise, wish.is_open, shared)

    def _pay_and_run(
        self,
        plan: Plan,
        charge: Charge,
        source: Source,
        statement: exp.Expression,
        wish: Wish,
        answer: Answer,
    ) -> Answer:
        table = plan.question.table
        asked = {"table": table.name, "version": table.version, "sql": plan.question.sql}
        guard = Guard(
            _Recording(self._ledger, asked), self._charged(table), charge.mechanism, answer.key,
            60.0, False,
        )  # fmt: skip
        try:
            receipt = guard.admit()
        except Refused as refusal:
            reason = str(refusal)
            return replace(answer, reason=reason, receipt=refusal.answer)
        # `guard` shows one constant error for whatever goes wrong from here on.
        answered = guard.run(lambda: self._run(plan, charge, source, statement))
        released = replace(
            answer, admitted=True, reason=receipt.reason, receipt=receipt, rows=answered[0],
            intervals=answered[1],
        )  # fmt: skip
        guard.run(lambda: answers.store(self._ledger, released, *self._ids(plan.question, wish)))
        return released

    def _run(
        self, plan: Plan, charge: Charge, source: Source, statement: exp.Expression
    ) -> tuple[Any, Any]:
        """Run the statement and draw the noise: the rows and their intervals."""
        running = Running()
        self._running.add(running)
        try:
            found = source.run(statement, self._limits, running)
        finally:
            self._running.discard(running)
        return release(plan, charge, found)


def _statement(plan: Plan, source: Source, key: str) -> exp.Expression:
    return statement_of(plan.question, plan.totals, (plan.groups, plan.rows), source, key)


def release(plan: Plan, charge: Charge, found: Sequence[tuple[Any, ...]]) -> tuple[Any, Any]:
    """The noisy rows of an answer and their intervals: of every declared group.

    Unknown groups are released if they reach the threshold, in the order of their keys.
    """
    keys_ = plan.question.keys
    width = len(keys_)
    exact = {tuple(map(str, row[:width])): row[width:] for row in found}
    groups = groups_of(keys_)
    if charge.threshold is not None:
        groups = {
            texts: tuple(key.read(text) for key, text in zip(keys_, texts, strict=True))
            for texts in sorted(exact)
        }
    zeros = (0,) * len(plan.totals)
    given = [plan.exact(exact.get(texts, zeros)) for texts in groups]
    drawn: list[list[int]] = []
    for place, (measure, noise) in enumerate(zip(plan.measures, charge.noise, strict=True)):
        of_groups = [row[place] for row in given]
        if measure.percent is None:
            drawn.append(noise.draw(of_groups))
        else:
            drawn.append([measure.candidates[each] for each in noise.choose(of_groups)])
    rows, intervals = [], []
    for place, keys in enumerate(groups.values()):
        noisy = [each[place] for each in drawn]
        if charge.threshold is not None and noisy[0] < charge.threshold:
            continue
        named = dict(zip(keys_, keys, strict=True))
        columns = iter(plan.columns)
        cells: list[Any] = []
        ends: list[Any] = []
        for item in plan.question.items:
            if item.key is not None:
                cells.append(named[item.key])
                ends.append(None)
            else:
                column = next(columns)
                cells.append(plans.value_of(column, noisy))
                ends.append(plans.interval_of(column, noisy, _widths(column, charge)))
        rows.append(tuple(cells))
        intervals.append(tuple(ends))
    return tuple(rows), tuple(intervals)


def _widths(column: plans.Column, charge: Charge) -> list[int]:
    level = shared_level(len(column.measures))
    return [0 if each.kind == GUMBEL else each.half_width(level) for each in charge.noise]


def _expected_widths(plan: Plan, charge: Charge) -> dict[str, float | None]:
    """The half-width of each column, where it is known in advance."""
    found: dict[str, float | None] = {}
    for column in plan.columns:
        place = column.measures[0]
        found[column.item.name] = None
        if column.is_total:
            width = charge.noise[place].half_width() * plan.measures[place].step
            found[column.item.name] = float(width)
    return found


def _noise_by_measure(plan: Plan, charge: Charge) -> dict[str, Any]:
    """For each measure by a name the kind and scale of its noise, and the threshold."""
    found: dict[str, Any] = {
        " of ".join(filter(None, (measure.total.kind, measure.total.column))): noise.to_dict()
        for measure, noise in zip(plan.measures, charge.noise, strict=True)
    }
    return found if charge.threshold is None else {**found, "threshold": charge.threshold}


@dataclass(frozen=True)
class _Recording:
    """A ledger that records the question with each reservation; guards reserve with it."""

    ledger: Any
    question: Mapping[str, Any]

    def reserve(self, *arguments: Any, **options: Any) -> Any:
        return self.ledger.reserve(*arguments, question=self.question, **options)


def _source(table: declarations.Table) -> Source:
    """The source of a table; raises the same error for whatever keeps it from being read."""
    try:
        source = source_at(table.source)
        if source.is_as_declared(table.columns):
            return source
    except Exception as error:
        LOG.error("the source of table %r cannot be read", table.name, exc_info=error)
    raise ArgumentError(
        f"table {table.name!r} cannot be read as it was declared; nothing was spent, and the"
        " operator must repair its source or declare it again"
    )


def open_session(
    ledger: Any,
    principal: str | None = None,
    *,
    budget: str | None = None,
    timeout: float | None = None,
    memory_limit: str | None = None,
) -> Session:
    """Answer the questions of a principal from the tables of a ledger.

    Args:
        ledger: an open ledger.
        principal: who asks; that of the ledger by default.
        budget: a quota under the budgets of the tables, to which answers are charged as well.
        timeout: seconds after which a statement is cancelled. It stays charged.
        memory_limit: the most memory that the engine takes, such as `2GB`.
    """
    own = ledger if principal is None else ledger.as_principal(principal)
    charged = None if budget is None else own.budget(budget).name
    return Session(own, charged, Limits(timeout, memory_limit))
