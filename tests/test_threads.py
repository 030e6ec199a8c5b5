"""Numbers do not depend on threads: cold processes with eight threads give what one thread gives.

And nothing in the package could make them: no module keeps mutable state.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import residua

SOURCE = Path(residua.__file__).parent
SCRIPT = Path(__file__).with_name("cold_threads.py")


def read_by(threads: int, seed: int) -> list[dict[str, object]]:
    """What each thread of a new process read."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), str(threads), str(seed)],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_eight_cold_threads_read_what_one_does(thorough: bool) -> None:
    (alone,) = read_by(1, 0)
    failed = {name: value for name, value in alone.items() if "Error:" in str(value)}
    assert len(alone) > 700 and not failed
    for seed in range(8 if thorough else 2):
        found = read_by(8, seed)
        assert len(found) == 8
        for each in found:
            differ = {
                name: (each[name], alone[name]) for name in alone if each[name] != alone[name]
            }
            assert not differ


# -- no state in modules ----------------------------------------------------------------------

MUTATORS = {
    *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "move_to_end", "pop"),
    *("popitem", "popleft", "remove", "setdefault", "update"),
}
RESOURCES = {
    ("individual/engines/duckdb.py", "_LOCKS"): "one lock for each file that is open, under a lock",
    (
        "ledger/operations/faults.py",
        "_passed",
    ): "counts the points at which a test kills the process",
    ("service/client/transport.py", "_TRANSPORTS"): "open connections, closed in a forked child",
    ("service/pages/html.py", "_templates"): "filled while the module is imported",
}
"""What is not a value but something of the process itself; no number depends on it."""


def assigned(node: ast.stmt) -> set[str]:
    """The names that an assignment binds."""
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return set()
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    parts = [part for t in targets for part in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return {part.id for part in parts if isinstance(part, ast.Name)}


def mutated_globals(source: str) -> set[str]:
    """Names bound at the top of a module that anything in it changes in place or binds again."""
    tree = ast.parse(source)
    bound = {name for node in tree.body for name in assigned(node)}
    found: set[str] = set()
    for node in ast.walk(tree):
        changed: list[ast.expr] = []
        if isinstance(node, ast.Global):
            found |= set(node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            changed = [node.func.value] if node.func.attr in MUTATORS else []
        elif isinstance(node, ast.Assign | ast.Delete):
            changed = [t.value for t in node.targets if isinstance(t, ast.Subscript)]
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
            changed = [node.target.value]
        for place in changed:
            while isinstance(place, ast.Attribute | ast.Subscript):
                place = place.value
            if isinstance(place, ast.Name) and place.id in bound:
                found.add(place.id)
    return found


def redefined_globals(source: str) -> set[str]:
    """Names that a module binds twice at its top."""
    seen: set[str] = set()
    twice: set[str] = set()
    for node in ast.parse(source).body:
        twice |= seen & assigned(node)
        seen |= assigned(node)
    return twice


def each_module() -> dict[str, str]:
    return {str(p.relative_to(SOURCE)): p.read_text() for p in sorted(SOURCE.rglob("*.py"))}


def test_no_module_keeps_mutable_state() -> None:
    found = {(name, each) for name, text in each_module().items() for each in mutated_globals(text)}
    assert found == RESOURCES.keys()


def test_no_constant_is_defined_twice() -> None:
    found = {name: redefined_globals(text) for name, text in each_module().items()}
    assert {name: twice for name, twice in found.items() if twice} == {}


def test_these_checks_find_what_they_look_for() -> None:
    growing = "_NODES = []\ndef rule(n):\n    while len(_NODES) < n:\n        _NODES.append(n)\n"
    assert mutated_globals(growing) == {"_NODES"}
    assert mutated_globals("_A = {}\ndef f(x):\n    _A[x] = x\n") == {"_A"}
    assert mutated_globals("_A = 0\ndef f():\n    global _A\n    _A += 1\n") == {"_A"}
    assert mutated_globals("_A = (1, 2)\ndef f():\n    a = []\n    a.append(1)\n") == set()
    assert redefined_globals("_FEW = 16\n_X = 1\n_FEW, _CROWD = 8, 256\n") == {"_FEW"}
