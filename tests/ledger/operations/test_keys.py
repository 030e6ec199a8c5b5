"""Keys that the library makes: nobody else makes them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from residua.ledger.domain import arguments

FORKED = """
import os
from residua.ledger.domain import arguments
made = [arguments.key(None)]
reading, writing = os.pipe()
child = os.fork()
made.append(arguments.key(None))
if child == 0:
    os.write(writing, " ".join(made).encode())
    os._exit(0)
os.waitpid(child, 0)
print(" ".join(made), os.read(reading, 200).decode())
"""


def test_keys_are_made_once() -> None:
    made = [arguments.key(None) for _ in range(10_000)]
    assert len(set(made)) == len(made) and all(len(each) == 32 for each in made)
    assert arguments.key(made[0]) == made[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_process_makes_others() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, check=True
    )
    first, mine, again, other = done.stdout.split()
    assert first == again and len({first, mine, other}) == 3
