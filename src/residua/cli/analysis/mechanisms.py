"""`residua mechanisms`: the kinds of mechanism and what each takes."""

import shutil
import textwrap
from typing import TYPE_CHECKING, Any

import typer

from residua.cli import descriptions, output
from residua.cli.command import Result, command

if TYPE_CHECKING:
    from residua.mechanisms import Mechanism

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@command(app)
def mechanisms(
    kind: str | None = None,
) -> Result:
    """List the mechanisms and their parameters.

    For each mechanism, show its parameters, the dominating pair that gives its privacy loss, the
    reference for that pair, and the neighbouring relations that are supported.

    Operands:
      kind (KIND): Show this kind in detail.

    Example:
      residua mechanisms
      residua mechanisms laplace
    """
    from residua.mechanisms import KINDS

    chosen = list(KINDS.values()) if kind is None else [descriptions.kind_named(kind)]
    shown = {"mechanisms": [_plain(cls) for cls in chosen]}
    return Result(shown, lambda: _print_all(chosen) if kind is None else _print_one(chosen[0]))


def _print_all(chosen: list[type["Mechanism"]]) -> None:
    wide = max(len(cls.kind) for cls in chosen) + 2
    columns = max(shutil.get_terminal_size().columns, wide + 40)
    for cls in chosen:
        lines = [
            ", ".join(str(p) for p in descriptions.parameters(cls)),
            cls.pair,
            cls.reference,
            ", ".join(cls.relations),
        ]
        for place, line in enumerate(lines):
            name = cls.kind if place == 0 else ""
            print(
                textwrap.fill(
                    line,
                    columns,
                    initial_indent=f"{name:<{wide}}",
                    subsequent_indent=" " * (wide + 2),
                )
            )
        print()
    print("residua mechanisms KIND shows one in detail; residua describe computes its loss")


def _print_one(cls: type["Mechanism"]) -> None:
    print(descriptions.summary(cls))
    rows = [
        (p.name, p.type, "required" if p.required else p.shown)
        for p in descriptions.parameters(cls)
    ]
    output.print_table(f"\n{cls.kind}", ("parameter", "type", "default"), rows)
    output.print_fields(
        [
            ("pair", cls.pair),
            ("reference", cls.reference),
            ("relations", ", ".join(cls.relations)),
            ("json", descriptions.shape(cls)),
            ("flag", descriptions.usage(cls)),
        ]
    )


def _plain(cls: type["Mechanism"]) -> dict[str, Any]:
    parameters = []
    for p in descriptions.parameters(cls):
        default = {} if p.required else {"default": p.default}
        parameters.append({"name": p.name, "type": p.type, "required": p.required, **default})
    return {
        "kind": cls.kind,
        "version": cls.version,
        "summary": descriptions.summary(cls),
        "parameters": parameters,
        "pair": cls.pair,
        "reference": cls.reference,
        "relations": list(cls.relations),
    }
