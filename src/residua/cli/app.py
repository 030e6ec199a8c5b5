"""The command group: which command lives in which file, and what an error looks like.

A command's file is imported when the command is run, or listed by `--help`; the numerical core is
imported when a command computes. So `residua --help` answers without loading numpy.
"""

import difflib
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
    TooLargeError,
)

__all__ = ["COMMANDS", "app"]

# The order of `residua --help`. Each file holds `app`, a Typer of its own.
COMMANDS = {
    "demo": "residua.cli.tools.demo",
    "mechanisms": "residua.cli.analysis.mechanisms",
    "describe": "residua.cli.analysis.describe",
    "delta": "residua.cli.analysis.delta",
    "epsilon": "residua.cli.analysis.epsilon",
    "order": "residua.cli.analysis.order",
    "plan": "residua.cli.analysis.plan",
    "recommend": "residua.cli.analysis.recommend",
    "compare": "residua.cli.analysis.compare",
    "init": "residua.cli.budgets.init",
    "budget": "residua.cli.budgets.budget",
    "check": "residua.cli.budgets.check",
    "spend": "residua.cli.budgets.spend",
    "reserve": "residua.cli.budgets.reserve",
    "commit": "residua.cli.budgets.commit",
    "cancel": "residua.cli.budgets.cancel",
    "history": "residua.cli.budgets.history",
    "export": "residua.cli.budgets.export",
    "status": "residua.cli.budgets.status",
    "recover": "residua.cli.budgets.recover",
    "token": "residua.cli.budgets.token",
    "serve": "residua.cli.budgets.serve",
    "attack": "residua.cli.analysis.attack",
    "natural": "residua.cli.analysis.natural",
    "figures": "residua.cli.tools.figures",
    "bench": "residua.cli.tools.bench",
    "verify": "residua.cli.budgets.verify",
    "version": "residua.cli.tools.version",
}


PIPE_CLOSED = 141
"""The exit code when the reader closed the pipe: 128 + SIGPIPE, as in shells.

The signal itself stays ignored: it would also end a command whose connection to a database breaks.
"""
BAD_INPUT = (ArgumentError, ArgumentTypeError, MissingPackage, NotALedger, TooLargeError)
EXIT_CODES = {
    0: "done; the query was admitted, the proof found",
    1: "checked, and it does not hold (verify, attack); not all was drawn (figures)",
    2: "bad input: an argument, a file that is not a ledger, a missing package",
    3: "refused: nothing was spent",
    4: "the ledger or the service cannot do it",
    5: "the outcome is unknown: ask again with the same key",
    6: "this key was already used (unless --replay-ok): do not run the query again",
    7: "undecided: neither proven nor refuted (verify)",
    PIPE_CLOSED: "the reader closed the pipe, as head does; what was done is done",
}
"""What a command's exit code means; no command has meanings of its own."""


class LazyGroup(TyperGroup):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        command = typer.main.get_command(import_module(COMMANDS[cmd_name]).app)
        command.name = cmd_name
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """A command by its name; one that is misspelt is told what may have been meant."""
        if args and args[0] not in COMMANDS and not ctx.resilient_parsing:
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            if near:
                ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES.items()])

    def invoke(self, ctx: Any) -> Any:
        """Errors are one line on standard error and an exit code of the table, no traceback."""
        said: Exception
        try:
            return super().invoke(ctx)
        except BAD_INPUT as error:
            code, said = 2, error
        except OutcomeUnknown as error:
            code, said = 5, error
        except (LedgerError, AccessDenied, ServiceError) as error:
            code, said = 4, error
        except BrokenPipeError:
            raise typer.Exit(PIPE_CLOSED) from None
        print(f"residua {ctx.invoked_subcommand}: {said}", file=sys.stderr)
        raise typer.Exit(code)


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
    """Differential-privacy budgets, computed as proven intervals.

    Queries are mechanisms, written as JSON, the same everywhere:

    \b
      {"kind": "gaussian", "sigma": 4.0}
      {"kind": "laplace", "scale": 2.0, "sensitivity": 1.0}
      {"kind": "subsampled_gaussian", "sigma": 1.0, "sampling_rate": 0.01, "steps": 100}
      {"kind": "approximate_dp", "eps": 0.1, "delta": 1e-7}

    or by a flag for each kind: --laplace scale=2. `residua mechanisms` lists the kinds. Here
    "steps" may also be called "count", and a Gaussian may be given by "mu", which is gdp.
    """
