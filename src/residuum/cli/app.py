"""The command group: which command lives in which file, and what an error looks like.

A command's file is imported when the command is run, or listed by `--help`; the numerical core is
imported when a command computes. So `residuum --help` answers without loading numpy.
"""

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import residuum
from residuum.errors import (
    AccessDenied,
    ArgumentError,
    ArgumentTypeError,
    LedgerError,
    MissingPackage,
    OutcomeUnknown,
    ServiceError,
    TooLargeError,
)

__all__ = ["COMMANDS", "app"]

# The order of `residuum --help`. Each file holds `app`, a Typer of its own.
COMMANDS = {
    "demo": "residuum.cli.demo",
    "mechanisms": "residuum.cli.mechanisms",
    "describe": "residuum.cli.describe",
    "delta": "residuum.cli.delta",
    "epsilon": "residuum.cli.epsilon",
    "order": "residuum.cli.order",
    "plan": "residuum.cli.plan",
    "recommend": "residuum.cli.recommend",
    "compare": "residuum.cli.compare",
    "init": "residuum.cli.init",
    "budget": "residuum.cli.budget",
    "check": "residuum.cli.check",
    "spend": "residuum.cli.spend",
    "reserve": "residuum.cli.reserve",
    "commit": "residuum.cli.commit",
    "cancel": "residuum.cli.cancel",
    "history": "residuum.cli.history",
    "export": "residuum.cli.export",
    "status": "residuum.cli.status",
    "recover": "residuum.cli.recover",
    "token": "residuum.cli.token",
    "serve": "residuum.cli.serve",
    "attack": "residuum.cli.attack",
    "natural": "residuum.cli.natural",
    "figures": "residuum.cli.figures",
    "bench": "residuum.cli.bench",
    "verify": "residuum.cli.verify",
    "version": "residuum.cli.version",
}


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

    def invoke(self, ctx: Any) -> Any:
        """Bad input is one line on standard error and exit code 2, never a traceback.

        What a ledger or a service cannot do is 4, and an outcome that nobody knows is 5: ask again
        with the same key.
        """
        said: Exception
        try:
            return super().invoke(ctx)
        except (ArgumentError, ArgumentTypeError, MissingPackage, TooLargeError) as error:
            code, said = 2, error
        except OutcomeUnknown as error:
            code, said = 5, error
        except (LedgerError, AccessDenied, ServiceError) as error:
            code, said = 4, error
        print(f"residuum {ctx.invoked_subcommand}: {said}", file=sys.stderr)
        raise typer.Exit(code)


app = typer.Typer(
    cls=LazyGroup,
    name="residuum",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"residuum {residuum.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say which.")
    ] = False,
) -> None:
    """Differential-privacy budgets, computed as proven intervals.

    Queries are mechanisms, written as JSON, the same everywhere:

    \b
      {"kind": "gaussian", "sigma": 4.0}
      {"kind": "laplace", "scale": 2.0, "sensitivity": 1.0}
      {"kind": "subsampled_gaussian", "sigma": 1.0, "sampling_rate": 0.01, "steps": 100}
      {"kind": "approximate_dp", "eps": 0.1, "delta": 1e-7}

    or by a flag for each kind: --laplace scale=2. `residuum mechanisms` lists the kinds. Here
    "steps" may also be called "count", and a Gaussian may be given by "mu", which is gdp.
    """
