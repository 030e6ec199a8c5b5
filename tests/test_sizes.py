"""Descriptions are bounded in size, the same for every reader, and read in linear time."""

import json
import pickle

import pytest

import residua as rz
from residua import mechanisms as m
from residua import sizes
from residua.filters.codec import from_dict as filter_from_dict
from residua.mechanisms.codec import from_dict
from residua.verify.descriptions.configurations import misconfigured
from residua.verify.descriptions.fields import Malformed, read

LAPLACE = {"kind": "laplace", "scale": 2.0}
LONG = sizes.LONGEST_LIST


def nested(levels, width=1):
    inner = LAPLACE
    for _ in range(levels):
        inner = {"kind": "composed", "mechanisms": [inner] * width}
    return inner


def rdp(count):
    return {"kind": "rdp", "orders": [2.0 + i for i in range(count)], "epsilons": [0.1] * count}


LARGE = {
    "orders": rdp(LONG + 1),
    "atoms": {"kind": "from_atoms", "losses": [0.0] * (LONG + 1), "masses": [1.0] * (LONG + 1)},
    "components": {
        "kind": "mixture_of_gaussians", "sigma": 1.0,
        "sensitivities": [1.0] * (LONG + 1), "probabilities": [0.5] * (LONG + 1),
    },
    "mechanisms": {"kind": "composed", "mechanisms": [LAPLACE] * (LONG + 1)},
    "values": {"kind": "composed", "mechanisms": [nested(1, LONG)] * 8},
    "depth": nested(sizes.DEEPEST),
    "steps": {**nested(sizes.DEEPEST - 1), "steps": 2},
    "count": {"kind": "self_composed", "mechanism": LAPLACE, "count": sizes.LARGEST_COUNT + 1},
    "buckets": {"kind": "randomized_response", "eps": 1.0, "num_buckets": sizes.LARGEST_COUNT + 1},
}  # fmt: skip


@pytest.mark.parametrize("name", LARGE)
def test_library_and_verifier_reject_what_is_too_large(name):
    with pytest.raises(rz.ResiduaError, match=r"too large|nested|at most|between"):
        from_dict(LARGE[name])
    with pytest.raises(Malformed):
        read(LARGE[name])


@pytest.mark.parametrize(
    "given",
    [
        rdp(LONG),
        nested(sizes.DEEPEST - 1),
        {"kind": "self_composed", "mechanism": LAPLACE, "count": sizes.LARGEST_COUNT},
        nested(1, LONG),
    ],
    ids=["orders", "depth", "count", "mechanisms"],
)
def test_library_and_verifier_accept_the_largest(given):
    from_dict(given)
    read(given)


@pytest.mark.parametrize(
    "config",
    [
        {"kind": "renyi_curve", "curve": [[2.0 + i, 1.0] for i in range(LONG + 1)]},
        {"kind": "menu", "eps": 1.0, "delta": 1e-6, "menu": [LAPLACE] * (LONG + 1)},
        {"kind": "plan", "eps": 1.0, "delta": 1e-6, "plan": [nested(1, LONG)] * 8},
    ],
    ids=["curve", "menu", "plan"],
)
def test_filters_and_their_verifier_reject_what_is_too_large(config):
    with pytest.raises(rz.ResiduaError, match="filter is too large"):
        filter_from_dict(config)
    assert "too large" in misconfigured(config)


def test_a_ledger_takes_only_what_it_can_read_again(tmp_path):
    ledger = rz.open_ledger(f"sqlite:///{tmp_path}/budgets.db")
    ledger.create_budget("b", rz.PureFilter(1.0))
    wide = m.Composed([m.Laplace(scale=1e9)] * (LONG + 1))
    with pytest.raises(rz.ResiduaError, match="query is too large: lists must have at most"):
        ledger.spend("b", wide)
    assert ledger.budget("b").remaining == rz.PureFilter(1.0).remaining
    ledger.close()


def test_reading_is_linear_in_the_size_at_every_depth(monkeypatch):
    """Each mechanism is hashed and measured once, however deep it is nested."""
    hashed = []
    plain = m.Mechanism._hash.func  # type: ignore[attr-defined]
    monkeypatch.setattr(m.Mechanism._hash, "func", lambda self: hashed.append(1) or plain(self))  # type: ignore[func-returns-value]
    description = {"kind": "composed", "mechanisms": [LAPLACE] * 1000}
    for _ in range(sizes.DEEPEST - 2):
        description = {"kind": "composed", "mechanisms": [description, LAPLACE]}
    made = from_dict(description)
    assert made.depth == sizes.DEEPEST
    assert hashed == []
    hash(made)
    assert len(hashed) == 1000 + 2 * (sizes.DEEPEST - 2) + 1


def test_a_hash_does_not_travel_to_another_process():
    one = m.PureDp(eps=1.0, relation="add-remove")
    hash(one), one.depth
    assert set(one.__getstate__()) == {"eps", "relation", "unit"}
    again = pickle.loads(pickle.dumps(one))
    assert again == one and hash(again) == hash(one)
    assert "_hash" not in vars(pickle.loads(pickle.dumps(one)))


def test_json_of_a_large_description_is_rejected_before_anything_is_made():
    text = json.dumps(LARGE["mechanisms"])
    with pytest.raises(rz.ResiduaError, match="mechanism is too large"):
        m.Mechanism.from_json(text)
