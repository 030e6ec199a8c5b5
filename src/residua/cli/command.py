"""What all commands have in common: `--json`, the store that they work on, and the exit code."""

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Annotated, Any, NamedTuple, get_origin

import typer

from residua.cli import output


class Result(NamedTuple):
    """What a command has to say."""

    data: dict[str, Any]
    """With `--json`: one JSON object."""
    words: Callable[[], object] | Sequence[tuple[str, str]]
    """Without: names with their values, or what prints anything else."""
    code: int = 0
    """The exit code."""


_AS_JSON = inspect.Parameter(
    "as_json",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a table.")
    ],
)


def command(
    group: typer.Typer,
    name: str | None = None,
    *,
    at: Callable[..., AbstractContextManager[Any]] | None = None,
    cls: Any = None,
) -> Callable[[Callable[..., Result | None]], Callable[..., None]]:
    """Make a function a command of a group; its parameters are options, and `--json` is added.

    The sections `Operands:` and `Options:` of the function's docstring have their help, with the
    metavar in brackets, and behind it a variable of the environment that may have the value. What
    they leave out is in `SHARED`. A function that declares `as_json` gets the value of `--json`; it
    may return nothing and print.

    Args:
        group: where the command is listed.
        name: its name, by default that of the function.
        at: opens what the function gets as its first argument; the parameters of `at` become
            options as well.
        cls: the class of the command.
    """

    def decorate(function: Callable[..., Result | None]) -> Callable[..., None]:
        every = inspect.signature(function).parameters
        own = [each for each in every.values() if each.name != _AS_JSON.name]
        place = [] if at is None else list(inspect.signature(at).parameters.values())

        @functools.wraps(function)
        def run(as_json: bool, **given: Any) -> None:
            where = {each.name: given.pop(each.name) for each in place}
            if _AS_JSON.name in every:
                given[_AS_JSON.name] = as_json
            if at is None:
                result = function(**given)
            else:
                with at(**where) as opened:
                    result = function(opened, **given)
            if result is not None:
                _finish(result, as_json)

        run.__doc__, helps = _parameters_in(inspect.getdoc(function) or "")
        given = [_declared(each, helps) for each in (*(own if at is None else own[1:]), *place)]
        keywords = [each.replace(kind=_AS_JSON.kind) for each in (*given, _AS_JSON)]
        run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in keywords}
        group.command(name, cls=cls)(run)
        return run

    return decorate


class Help(NamedTuple):
    """What the help says of a parameter."""

    is_operand: bool
    metavar: str | None
    variable: str | None
    """The variable of the environment that may have its value."""
    text: str


_SECTION = re.compile(r"\n\n(Operands|Options):\n(.*?)(?=\n\n|$)", re.DOTALL)
_PARAMETER = re.compile(r"^  (\w+)(?: \((\S+)(?: \$(\w+))?\))?: ", re.MULTILINE)


def _parameters_in(doc: str) -> tuple[str, dict[str, Help]]:
    """A docstring without the sections on its parameters, and the help of each of these."""
    helps = {}
    for kind, section in _SECTION.findall(doc):
        _, *found = _PARAMETER.split(section)
        for name, metavar, variable, text in zip(*[iter(found)] * 4, strict=True):
            helps[name] = Help(kind == "Operands", metavar, variable, " ".join(text.split()))
    return _SECTION.sub("", doc), helps


_, SHARED = _parameters_in(
    """What several commands take.

Operands:
  query (QUERY): Queries as JSON or by flags; several are composed.
  budget (BUDGET): The name of the budget.
  hold (ID): The id of the reservation.

Options:
  accuracy: Accuracy for queries with continuous losses, in eps.
  also (BUDGET): Charge this budget as well; may be repeated.
  anchor (PATH|URL $RESIDUA_ANCHOR): Path or URL of the anchor, if not the default (or
      RESIDUA_ANCHOR).
  assume_budget_relation: Assume the budget's relation for a black box that declares none, and
      record the assumption.
  delta (FLOAT): The delta of the budget.
  draw (FILE): Draw the adversary, if there is one, and write the picture to this file.
  eps (FLOAT): The eps of the budget.
  key: Set your own id for this request, so that repeating it spends nothing. It belongs to the
      principal: here the user of this machine, 'local' in Python unless open_ledger(principal=...)
      says otherwise, and the token's name at a service.
  relation: Neighbouring relation: add-remove, replace-one or zero-out (default: the first that all
      queries support).
  replay_ok: Exit with status 0, not 6, if this key was already used.
  rounds: Number of queries that may be asked.
  store (URL $RESIDUA_STORE): A file, sqlite:///..., postgresql://... or http://... (or
      RESIDUA_STORE).
  token (TOKEN $RESIDUA_TOKEN): The token for a service; set RESIDUA_TOKEN to hide it from other
      users.
"""
)


def _declared(parameter: inspect.Parameter, helps: dict[str, Help]) -> inspect.Parameter:
    """A parameter as Typer takes it: those that declare themselves, and others from their help."""
    if get_origin(parameter.annotation) is Annotated:
        return parameter
    name = parameter.name
    found = helps.get(name) or SHARED[name]
    more: dict[str, Any] = {"metavar": found.metavar, "help": found.text}
    if found.variable is not None:
        more |= {"envvar": found.variable, "show_envvar": False}
    if found.is_operand:
        declared = typer.Argument(**more)
    else:
        if name in ("eps", "delta"):
            more |= {"parser": parse_amount, "metavar": found.metavar or "FLOAT"}
        # A flag has no opposite.
        short = ["-" + name] if len(name) == 1 else []
        flags = ["--" + name.replace("_", "-")] if parameter.annotation is bool else short
        declared = typer.Option(*flags, **more)
    return parameter.replace(annotation=Annotated[parameter.annotation, declared])


def parse_amount(text: str) -> float:
    """A number that is not silently rounded to 0."""
    try:
        number = float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number") from None
    if number == 0.0:
        from residua.checks import parse_float

        parse_float("the number", text)
    return number


def _finish(result: Result, as_json: bool) -> None:
    """Print a result and exit with its code."""
    if as_json:
        output.print_json(result.data)
    elif callable(result.words):
        result.words()
    else:
        output.print_fields(result.words)
    raise typer.Exit(result.code)


def subgroup(app: typer.Typer, name: str) -> typer.Typer:
    """A group of commands within another."""
    made = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.add_typer(made, name=name)
    return made
