"""Running a command in this process."""

import json
from typing import Any

from typer.testing import CliRunner

from residua.cli.app import app


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output


def run_json(*arguments: str) -> Any:
    return json.loads(run(*arguments, *([] if "--json" in arguments else ["--json"])))


def refusal(*arguments: str) -> str:
    return run(*arguments, code=2)
