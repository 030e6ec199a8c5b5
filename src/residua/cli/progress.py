"""A progress bar on standard error, for what takes longer than a second."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["patience"]

DELAY = 1.0


@contextmanager
def patience(
    title: str, console: "Console | None" = None, delay: float = DELAY, plain: bool = False
) -> Iterator[Callable[[str, int, int], None]]:
    """Show `title`, and what is told of how far it is; only to a terminal, and only after a while.

    Tell it what comes next, how much is done, and of how much. Where there is no terminal, `plain`
    makes each of these a line.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = console or Console(stderr=True)
    bar = Progress(console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(title, total=None)

    def tell(what: str, done: int, total: int) -> None:
        if plain and not console.is_terminal:
            print(f"{what or title} ({done + 1} of {total})", file=console.file, flush=True)
        bar.update(task, description=what or title, completed=done, total=total)

    timer = Timer(delay, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield tell
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
