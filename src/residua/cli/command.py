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

    The section `Options:` of the function's docstring has their help, with the metavar in brackets.
    A function that declares `as_json` gets the value of `--json`; it may return nothing and print.

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

        run.__doc__, helps = _options_in(inspect.getdoc(function) or "")
        options = [_declared(each, helps) for each in (own if at is None else own[1:])]
        keywords = [each.replace(kind=_AS_JSON.kind) for each in (*options, *place, _AS_JSON)]
        run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in keywords}
        group.command(name, cls=cls)(run)
        return run

    return decorate


_SECTION = re.compile(r"\n\nOptions:\n(.*?)(?=\n\n|$)", re.DOTALL)
_OPTION = re.compile(r"^  (\w+)(?: \((\S+)\))?: ", re.MULTILINE)


def _options_in(doc: str) -> tuple[str, dict[str, tuple[str | None, str]]]:
    """A docstring without its options; and of each the metavar, if it has one, and the help."""
    section = _SECTION.search(doc)
    if section is None:
        return doc, {}
    _, *found = _OPTION.split(section[1])
    helps = {
        name: (metavar, " ".join(text.split()))
        for name, metavar, text in zip(found[::3], found[1::3], found[2::3], strict=True)
    }
    return _SECTION.sub("", doc), helps


def _declared(
    parameter: inspect.Parameter, helps: dict[str, tuple[str | None, str]]
) -> inspect.Parameter:
    """A parameter as Typer takes it: those that declare themselves, and options from their help."""
    if get_origin(parameter.annotation) is Annotated:
        return parameter
    name, (metavar, text) = parameter.name, helps[parameter.name]
    # A flag has no opposite.
    short = ["-" + name] if len(name) == 1 else []
    flags = ["--" + name.replace("_", "-")] if parameter.annotation is bool else short
    option = typer.Option(*flags, metavar=metavar, help=text)
    return parameter.replace(annotation=Annotated[parameter.annotation, option])


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
