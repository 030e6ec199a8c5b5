"""The command group: which command is in which module, and what an error looks like.

A command's module is imported when the command is run, or listed by `--help`; the numerical core is
imported when a command computes. So `residua --help` answers without loading numpy.
"""

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import residua
from residua.errors import (
    AccessDenied,
    ArgumentError,
    ArgumentTypeError,
    LedgerError,
    MissingPackage,
    NotALedger,
    OutcomeUnknown,
    ServiceError,
    TooExpensive,
    TooLargeError,
)

__all__ = ["COMMANDS", "app"]

COMMANDS = {
    "demo": "tools.demo",
    "mechanisms": "analysis.loss",
    "describe": "analysis.loss",
    "delta": "analysis.loss",
    "epsilon": "analysis.loss",
    "order": "analysis.loss",
    "plan": "analysis.planning",
    "recommend": "analysis.planning",
    "compare": "analysis.planning",
    "init": "budgets.ledger",
    "budget": "budgets.budget",
    "table": "budgets.tables",
    "query": "budgets.tables",
    "check": "budgets.spending",
    "spend": "budgets.spending",
    "reserve": "budgets.spending",
    "commit": "budgets.spending",
    "cancel": "budgets.spending",
    "history": "budgets.ledger",
    "export": "budgets.ledger",
    "status": "budgets.ledger",
    "recover": "budgets.ledger",
    "token": "budgets.service",
    "serve": "budgets.service",
    "attack": "analysis.adversary",
    "natural": "analysis.natural",
    "figures": "tools.figures",
    "bench": "tools.machine",
    "verify": "budgets.verify",
    "version": "tools.machine",
}
"""The module of each command, in the order of `residua --help`."""


PIPE_CLOSED = 141
"""The exit code when the reader closed the pipe: 128 + SIGPIPE, as in shells.

The signal itself stays ignored: it would also end a command whose connection to a database breaks.
"""
BAD_INPUT = (
    ArgumentError,
    ArgumentTypeError,
    MissingPackage,
    NotALedger,
    TooExpensive,
    TooLargeError,
)
EXIT_CODES = {
    0: "done: the query was admitted, or everything was proven",
    1: "a check failed (verify, attack), or a picture is missing (figures)",
    2: "bad input: an argument, a file that is not a ledger, a missing package",
    3: "refused: nothing was spent",
    4: "the ledger or the service cannot do this",
    5: "the outcome is unknown: repeat the command with the same key",
    6: "this key was already used (unless --replay-ok): do not run the query again",
    7: "undecided: neither proven nor refuted (verify)",
    PIPE_CLOSED: "the reader closed the pipe, as head does; nothing is undone",
}
"""What a command's exit code means; the same for every command."""


class LazyGroup(TyperGroup):
    """A group that imports a command when it is needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"residua.cli.{COMMANDS[cmd_name]}")
        group = typer.main.get_group(module.app)
        return _with_examples(group.get_command(ctx, cmd_name))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of a name; for a misspelt one the error suggests another."""
        if args and args[0] not in COMMANDS and not ctx.resilient_parsing:
            from residua import checks

            ctx.fail(f"No such command {args[0]!r}{checks.suggestion(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES.items()])

    def invoke(self, ctx: Any) -> Any:
        """Errors are one line on standard error and an exit code of the table, no traceback."""
        try:
            return super().invoke(ctx)
        except BAD_INPUT as error:
            code, message = 2, str(error)
        except OutcomeUnknown as error:
            code, message = 5, str(error)
        except (LedgerError, AccessDenied, ServiceError) as error:
            code, message = 4, str(error)
        except BrokenPipeError:
            raise typer.Exit(PIPE_CLOSED) from None
        print(f"residua {ctx.invoked_subcommand}: {message}", file=sys.stderr)
        raise typer.Exit(code)


def _with_examples(command: Any) -> Any:
    """A command whose help keeps the lines of its examples; other paragraphs are filled."""
    command.help = command.help.replace("\n\nExample:\n", "\n\n\b\nExample:\n")
    for each in getattr(command, "commands", {}).values():
        _with_examples(each)
    return command


app = typer.Typer(
    cls=LazyGroup,
    name="residua",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"residua {residua.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Enforce differential-privacy budgets, with proven numbers.

    A query is a mechanism, written as JSON:

    \b
      {"kind": "gaussian", "sigma": 4.0}
      {"kind": "laplace", "scale": 2.0, "sensitivity": 1.0}
      {"kind": "subsampled_gaussian", "sigma": 1.0, "sampling_rate": 0.01, "steps": 100}
      {"kind": "approximate_dp", "eps": 0.1, "delta": 1e-7}

    or as a flag named after its kind: --laplace scale=2. `residua mechanisms` lists the kinds.
    """
