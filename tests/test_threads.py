"""Numbers do not depend on threads: cold processes with eight threads give what one thread gives.

And nothing in the package could make them: no module keeps mutable state.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest

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
    for seed in range(8 if thorough else 1):
        found = read_by(8, seed)
        assert len(found) == 8
        for each in found:
            differ = {
                name: (each[name], alone[name]) for name in alone if each[name] != alone[name]
            }
            assert not differ


def test_no_plain_cache_keeps_counted_work() -> None:
    script = SCRIPT.with_name("plain_caches.py")
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == []


# -- no state in modules ----------------------------------------------------------------------

MUTATORS = {
    *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "move_to_end", "pop"),
    *("popitem", "popleft", "remove", "setdefault", "update"),
}
EMPTY = {"bytearray", "defaultdict", "deque", "dict", "list", "set", "Counter", "OrderedDict"}
"""Containers that are state when a module starts with an empty one: nothing else could fill it."""

STATEFUL = {
    *("WeakKeyDictionary", "WeakSet", "WeakValueDictionary", "ContextVar", "local"),
    *("count", "cycle", "iter", "Random", "default_rng", "Generator", "SimpleNamespace"),
    *("BoundedSemaphore", "Condition", "Event", "Lock", "Queue", "RLock", "Semaphore"),
}
"""What is state by its nature."""

RESOURCES = {
    ("individual/duckdb.py", "_LOCKS"): "one lock for each file that is open",
    ("individual/duckdb.py", "_REGISTER"): "the lock around the locks of files",
    (
        "ledger/operations/committer.py",
        "_PASSES",
    ): "counts the points at which a test kills the process",
    ("service/pages/html.py", "_templates"): "filled while the module is imported",
    (
        "work_limit.py",
        "_budget",
    ): "the work that a decision may still do; each thread and task has its own",
    (
        "work_limit.py",
        "_groundwork",
    ): "what cached values cost, so that it is the same object for equal arguments",
    ("work_limit.py", "_lock"): "the lock around it",
    (
        "verify/arithmetic.py",
        "_share",
    ): "the work that a step may still do; each thread and task has its own",
}
"""State of the process itself, each with the reason why it stays. No number depends on it."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def assigned(node: ast.AST) -> set[str]:
    """The names that an assignment binds."""
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return set()
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    parts = [part for t in targets for part in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return {part.id for part in parts if isinstance(part, ast.Name)}


def top_level(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is imported, also under `if`, `try` and `with`; no scopes inside."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, Scope):
            yield from top_level(child)


def called(node: ast.expr | None) -> str:
    """The last part of the name that an expression calls: `count` of `itertools.count(1)`."""
    if isinstance(node, ast.Subscript):
        return called(node.value)
    if isinstance(node, ast.Call):
        node = node.func.value if isinstance(node.func, ast.Subscript) else node.func
        return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return ""


def changes_itself(node: ast.ClassDef) -> bool:
    """Whether methods of a class, other than those that make it, change an object of it."""
    makes = {"__init__", "__new__", "__post_init__", "__setstate__"}
    for method in node.body:
        if not isinstance(method, Function) or method.name in makes or not method.args.args:
            continue
        own = method.args.args[0].arg
        if own == "cls" or own in changed_names(method, {}):
            return own != "cls"
    return False


def root(place: ast.expr) -> str | None:
    """The name that an expression starts with: `a` of `a.b[c]`."""
    while isinstance(place, ast.Attribute | ast.Subscript):
        place = place.value
    return place.id if isinstance(place, ast.Name) else None


def changed_names(tree: ast.AST, changing: Mapping[str, set[int | str]]) -> set[str]:
    """Names that code changes in place: itself, with `next`, or through a function that does.

    `changing` has the parameters that functions of the module change, by place and by name.
    """
    found: set[str | None] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
                found.add(root(node.func.value))
            if isinstance(node.func, ast.Name) and node.func.id in {"next", "setattr", "delattr"}:
                found |= {root(each) for each in node.args[:1]}
            which = changing.get(called(node), set())
            found |= {root(each) for at, each in enumerate(node.args) if at in which}
            found |= {root(each.value) for each in node.keywords if each.arg in which}
        elif isinstance(node, ast.Assign | ast.Delete | ast.AugAssign | ast.AnnAssign):
            one = isinstance(node, ast.AugAssign | ast.AnnAssign)
            targets = [node.target] if one else node.targets
            parts = [p for t in targets for p in (t.elts if isinstance(t, ast.Tuple) else [t])]
            found |= {root(p) for p in parts if isinstance(p, ast.Subscript | ast.Attribute)}
    return {name for name in found if name is not None}


def changing_functions(tree: ast.Module) -> dict[str, set[int | str]]:
    """The parameters that functions of a module change, also by passing them on."""
    functions = [node for node in tree.body if isinstance(node, Function)]
    found: dict[str, set[int | str]] = {}
    while True:
        now: dict[str, set[int | str]] = {}
        for each in functions:
            names = changed_names(each, found)
            places = [*each.args.posonlyargs, *each.args.args]
            now[each.name] = {at for at, one in enumerate(places) if one.arg in names}
            now[each.name] |= {a.arg for a in (*places, *each.args.kwonlyargs) if a.arg in names}
        if now == found:
            return found
        found = now


def mutated_globals(source: str) -> set[str]:
    """Names bound at the top of a module that anything in it changes in place or binds again."""
    tree = ast.parse(source)
    bound = {name for node in top_level(tree) for name in assigned(node)}
    bound |= {node.name for node in tree.body if isinstance(node, Function | ast.ClassDef)}
    changing = changing_functions(tree)
    found: set[str] = set()
    for node in tree.body:
        if not isinstance(node, Function | ast.ClassDef):
            found |= changed_names(node, changing) & bound
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            found |= set(node.names)
        elif isinstance(node, Function | ast.Lambda):
            every = (node.args.posonlyargs, node.args.args, node.args.kwonlyargs)
            local = {each.arg for some in every for each in some}
            for inner in ast.walk(node):
                local |= assigned(inner)
            found |= changed_names(node, changing) & (bound - local)
    return found


def stateful_globals(source: str, mutable: Collection[str] = ()) -> set[str]:
    """Names of a module, or of its classes, that start as state; `name()` for defaults.

    An empty container is state, since only a later change could make it useful. So are counters,
    weak containers, locks, generators, and objects of classes whose methods change them: those of
    this module, and `mutable` ones of others. So is what a function returns that returns one.
    """
    tree = ast.parse(source)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    unsafe = {*mutable, *(each.name for each in classes if changes_itself(each))}

    def is_state(value: ast.expr | None) -> bool:
        if isinstance(value, ast.Dict | ast.List | ast.Set | ast.Tuple):
            parts = value.values if isinstance(value, ast.Dict) else value.elts
            empty = not parts and not isinstance(value, ast.Tuple)
            # An empty list inside a constant, as in an example of JSON, is part of its value.
            return empty or any(is_state(each) for each in parts if isinstance(each, ast.Call))
        if isinstance(value, ast.NamedExpr | ast.Starred):
            return is_state(value.value)
        if isinstance(value, ast.BoolOp):
            return any(map(is_state, value.values))
        if isinstance(value, ast.IfExp):
            return is_state(value.body) or is_state(value.orelse)
        name = called(value)
        if name in EMPTY and isinstance(value, ast.Call):
            filled = [a for a in value.args if not is_state(a)] + value.keywords
            return not filled or name in {"defaultdict", "deque"}
        return isinstance(value, ast.GeneratorExp) or name in STATEFUL | unsafe

    for node in tree.body:
        if isinstance(node, Function):
            given = [each.value for each in ast.walk(node) if isinstance(each, ast.Return)]
            if any(isinstance(value, ast.Call) and is_state(value) for value in given):
                unsafe.add(node.name)
    found: set[str] = set()
    for place in (tree, *classes):
        for node in top_level(place):
            value = getattr(node, "value", None)
            if isinstance(node, ast.Assign | ast.AnnAssign) and is_state(value):
                found |= assigned(node)
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.Lambda) and any(
            map(is_state, (*node.args.defaults, *node.args.kw_defaults))
        ):
            found.add(f"{getattr(node, 'name', 'lambda')}()")
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


def mutable_classes() -> set[str]:
    """The classes of the package whose methods change their objects."""
    trees = map(ast.parse, each_module().values())
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    found = {each.name for each in nodes if changes_itself(each)}
    while True:
        bases = {each.name: {getattr(base, "id", "") for base in each.bases} for each in nodes}
        more = {name for name, above in bases.items() if above & found} - found
        if not more:
            return found
        found |= more


def test_no_module_keeps_mutable_state() -> None:
    mutable = mutable_classes()
    assert len(mutable) > 20
    found = {
        (name, each)
        for name, text in each_module().items()
        for each in mutated_globals(text) | stateful_globals(text, mutable)
    }
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
    assert mutated_globals("A = {1: 2}\ndef f(A):\n    A[1] = 3\n") == set()
    assert redefined_globals("_FEW = 16\n_X = 1\n_FEW, _CROWD = 8, 256\n") == {"_FEW"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        # A full container that another function changes, directly, further on, or by keyword.
        (
            "_A = {1: 2}\ndef f(k): keep(_A, k)\ndef keep(known, k): known[k] = k\n",
            {"_A"},
        ),
        (
            "_A = {1: 2}\ndef f(k): keep(known=_A, k=k)\n"
            "def keep(*, known, k): store(k, known)\ndef store(k, into): into.update(k)\n",
            {"_A"},
        ),
        ("_A = iterator()\ndef f(): return next(_A)\n", {"_A"}),
        ("def f(): f.calls = 1\n", {"f"}),
        ("class C: pass\ndef f(): C.known = 1\n", {"C"}),
        ("_A = thing()\ndef f(): _A.b.c = 1\n", {"_A"}),
        ("_A = thing()\ndef f(): setattr(_A, 'b', 1)\n", {"_A"}),
        ("_A = {1: 2}\ndef f(k): read(_A, k)\ndef read(known, k): return known[k]\n", set()),
        ("_A = {1: 2}\ndef f(k): keep({}, _A)\ndef keep(a, b): a[1] = b\n", set()),
    ],
)
def test_changes_are_found(source: str, expected: set[str]) -> None:
    assert mutated_globals(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("_A = {}", {"_A"}),
        ("_A: dict[str, int] = dict()", {"_A"}),
        ("_A = _B = []", {"_A", "_B"}),
        ("import itertools\n_A = itertools.count(1)", {"_A"}),
        ("_A, _B = 3, count()", {"_A", "_B"}),
        ("_A: WeakValueDictionary[str, int] = WeakValueDictionary()", {"_A"}),
        ("_A = defaultdict(list)", {"_A"}),
        ("_A = deque([1], maxlen=3)", {"_A"}),
        ("_A = Lock()", {"_A"}),
        ("_A = (n for n in range(3))", {"_A"}),
        ("_A = {'a': count()}", {"_A"}),
        ("try:\n    _A = set()\nexcept ValueError:\n    pass", {"_A"}),
        ("class C:\n    known = {}", {"known"}),
        ("def f(x, known={}): return known", {"f()"}),
        ("def _new(): return dict()\n_A = _new()", {"_A"}),
        # An object whose methods change it, of this module or another; and one that they do not.
        ("class C:\n    def step(self): self.at = 1\n_A = C()", {"_A"}),
        ("class C:\n    def step(self): self.seen.add(1)\n_A = C()", {"_A"}),
        ("_A = Cache()", {"_A"}),
        ("class C:\n    def __init__(self): self.at = 1\n_A = C()", set()),
        ("_A = {'a': 1}\n_B = [1]\n_C = ()\n_D = dict(a=1)\n_E = frozenset()", set()),
        ("_A = {'holds': []}", set()),
        ("def f():\n    known = {}\n    return known", set()),
        ("class C:\n    def __init__(self): self.known = {}", set()),
        ("@lru_cache(maxsize=8)\ndef f(x): return x", set()),
    ],
)
def test_state_is_found(source: str, expected: set[str]) -> None:
    assert stateful_globals(source, {"Cache"}) == expected
