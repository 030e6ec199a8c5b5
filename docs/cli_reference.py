"""Writes docs/cli.md from the commands, and the table of docs/mechanisms.md (`make docs`)."""

import inspect
from pathlib import Path
from typing import Any

import typer

from residua.cli.app import EXIT_CODES, app

HEADING = "# Command line\n\nGenerated from the commands by `make docs`; edit those instead."


def reference() -> str:
    """The whole page."""
    root = typer.main.get_command(app)
    context = _context(root, "residua", None)
    return "\n\n".join([HEADING, _exit_codes(), *_sections(root, context, "residua")]) + "\n"


def _exit_codes() -> str:
    rows = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return "\n".join(["| exit code | meaning |", "|---|---|", *rows])


def _sections(command: Any, context: Any, path: str) -> list[str]:
    prose, example = _split(command.help or "")
    parts = [f"## `{path}`", prose, f"```sh\n{path} {' '.join(_usage(command))}\n```"]
    rows = [_row(parameter, context) for parameter in command.params]
    rows += [f"| `{_cell(shown)}` | {meaning} |" for shown, meaning in getattr(command, "rows", ())]
    if rows:
        parts.append("\n".join(["| argument | meaning |", "|---|---|", *rows]))
    if example:
        parts.append(f"Example:\n\n```sh\n{example}\n```")
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        child = command.get_command(context, name)
        parts += _sections(child, _context(child, name, context), f"{path} {name}")
    return parts


def _context(command: Any, name: str, parent: Any) -> Any:
    return command.make_context(name, [], parent=parent, resilient_parsing=True)


def _usage(command: Any) -> list[str]:
    pieces = []
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            name = _metavar(parameter) if parameter.required else f"[{_metavar(parameter)}]"
            pieces.append(name + ("..." if parameter.nargs == -1 else ""))
        elif parameter.required:
            pieces.append(f"{parameter.opts[0]} {_metavar(parameter)}")
    optional = any(p.param_type_name == "option" and not p.required for p in command.params)
    pieces += ["[OPTIONS]"] if optional else []
    return pieces + (["COMMAND ..."] if hasattr(command, "list_commands") else [])


def _metavar(parameter: Any) -> str:
    return parameter.metavar or parameter.name.upper()


def _row(parameter: Any, context: Any) -> str:
    if parameter.param_type_name == "argument":
        shown, notes = _metavar(parameter), []
    else:
        flag = getattr(parameter, "is_flag", False)
        shown = ", ".join(parameter.opts) + ("" if flag else f" {_metavar(parameter)}")
        default = parameter.get_default(context)
        notes = ["Required."] if parameter.required else []
        notes += [f"Default: `{default}`."] if not flag and default is not None else []
    told = " ".join([parameter.help or "", *notes]).strip()
    return f"| `{_cell(shown)}` | {_cell(told)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _split(text: str) -> tuple[str, str]:
    """A docstring's prose as Markdown, and its example."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    prose, example = [], ""
    for paragraph in paragraphs:
        verbatim = paragraph.startswith("\b\n")
        body = paragraph.removeprefix("\b\n")
        if verbatim and body.startswith("Example:"):
            example = inspect.cleandoc(body.removeprefix("Example:").strip("\n"))
        elif verbatim:
            prose.append(f"```json\n{inspect.cleandoc(body)}\n```")
        else:
            prose.append(body)
    return "\n\n".join(prose), example


if __name__ == "__main__":
    import mechanism_table

    mechanism_table.write()
    page = Path(__file__).with_name("cli.md")
    page.write_text(reference(), encoding="utf-8")
    print(f"wrote {page.relative_to(Path.cwd()) if page.is_relative_to(Path.cwd()) else page}")
