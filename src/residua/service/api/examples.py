"""Example answers for the API description: one budget, a spend, a refusal, a reservation."""

from __future__ import annotations

from typing import Any

from residua.filters.balance import Balance, Detail
from residua.pld.constructors import gaussian

LAPLACE = {"kind": "laplace", "scale": 4.0, "sensitivity": 1.0}
HASH = "fd50c61ff87edb72ad58ee102349945d310fac7e3976a1be12d8b09886b1c482"
BEFORE = "db8a09b9792d8fd47676d47d8e7df1954a54494eaff727188f60ac1733eec0f1"
HOLD = "421948568af34151bd03291b07586236"
MADE, EXPIRES = "2026-11-16T11:43:09.448Z", "2026-11-16T12:43:09.448Z"


def _gaussian(mu: float, text: str) -> dict[str, Any]:
    return {"kind": "gaussian", "sigma": 1.0, "sensitivity": mu, "text": text}


_WHOLE = _gaussian(1.0, "mu² 1 (mu 1)")
_LEFT = _gaussian(0.970412173915536, "mu² 0.941699 (mu 0.970412)")


def _state(left: str) -> dict[str, Any]:
    return {"kind": "gdp_residue", "left": [left], "of": "00dbce7cda98ab79"}


_DETAIL = Detail("gdp_residue", "mu²", 0.941699, 1.0, 0.941699)
_BALANCE = Balance(0.941699, gaussian(mu=1.0), 0.782575, 15, False, (_DETAIL,))
_ADMITTED = "admitted: Laplace(scale=4.0) costs mu² 0.058301"
_RECEIPT = {
    "admitted": True,
    "reason": _ADMITTED,
    "remaining": _LEFT,
    "remaining_is": "left after this",
    "seq": 1,
    "key": "q-17",
    "replayed": False,
    "head": HASH,
    "binding": None,
    "largest": None,
    "budgets": {"web": {"seq": 1, "head": HASH}},
}
_REFUSAL = {
    "admitted": False,
    "reason": "would be refused: Laplace(scale=0.5) needs mu² 3.24326 (mu 1.80091);"
    " 100 % left (mu² 1); Laplace(scale=1.03571) would fit",
    "remaining": _WHOLE,
    "remaining_is": "left now",
    "binding": "web",
    "largest": {"kind": "laplace", "scale": 1.03571, "sensitivity": 1.0},
}
_BUDGET: dict[str, Any] = {
    "name": "web",
    "filter": {"kind": "gdp_residue", "mu": 1.0},
    "relation": "add-remove",
    "unit": "person",
    "data": None,
    "parent": None,
    "partition": None,
    "window": None,
    "generation": 0,
    "seq": 1,
    "head": HASH,
    "retired": False,
    "state": _state("0.941699787283476572"),
    "remaining": _LEFT,
    "capacity": _WHOLE,
    "balance": _BALANCE.to_dict(),
    "guarantee": {
        "text": "one person under add-remove: gaussian(mu=1.0)",
        "pld": _gaussian(1.0, "gaussian(mu=1.0)"),
    },
    "holds": [],
}
_RECORD = {
    "v": 1,
    "ledger": "df958be28a154114a1eaee93c7c2d343",
    "budget": "web",
    "seq": 1,
    "prev": BEFORE,
    "type": "spend",
    "time": MADE,
    "by": "query-engine",
    "key": "q-17",
    "request": "b731237c96590d3ed9ab42c818437af71e2576d87cbd1710691c75ee7e9297f6",
    "mechanism": LAPLACE,
    "relation": "add-remove",
    "assumed": False,
    "group": [{"budget": "web", "prev": BEFORE, "seq": 1}],
    "admitted": True,
    "binding": None,
    "reason": _ADMITTED,
    "tables": {},
    "holds": [],
    "before": _state("1"),
    "after": _state("0.941699787283476572"),
    "hash": HASH,
}
_CURVE = {
    "hockey_stick": {"eps": [0.0, 6.17393504667095], "delta": [0.3829249225480298, 1e-09]},
    "tradeoff": {"alpha": [0.0, 0.5, 1.0], "beta": [1.0, 0.15865525393145424, 0.0]},
}
ANSWERS: dict[str, list[dict[str, Any]]] = {
    "Receipted": [_RECEIPT],
    "Decided": [_REFUSAL],
    "Reserved": [
        {**_RECEIPT, "remaining_is": "left beside this", "id": HOLD, "expires": EXPIRES}
    ],
    "Holds": [
        {
            "items": [
                {
                    "id": HOLD,
                    "budgets": ["web"],
                    "mechanism": '{"kind":"laplace","scale":4.0,"sensitivity":1.0}',
                    "by": "query-engine",
                    "made": MADE,
                    "expires": EXPIRES,
                    "age": 12.5,
                    "overdue": False,
                }
            ]
        }
    ],
    "Budgeted": [_BUDGET],
    "Budgets": [{"items": [_BUDGET], "next": None}],
    "History": [{"items": [_RECORD], "next": None}],
    "Curves": [
        {"budget": "web", "seq": 1, "capacity": _CURVE, "spent": _CURVE, "remaining": _CURVE,
         "guarantee": _CURVE}
    ],
    "Planned": [
        {
            "how_many": 15,
            "rounds": 15,
            "counting_ended": False,
            "n": 3,
            "least_noise": [{"kind": "laplace", "scale": 1.80098, "sensitivity": 1.0}],
            "remaining": _LEFT,
        }
    ],
    "Me": [
        {
            "principal": "ana",
            "role": "analyst",
            "scope": ["web", "team-a-*"],
            "token": "f12a7f2e162b",
            "permissions": ["check", "plan", "read"],
        }
    ],
    "Health": [{"status": "ok", "version": "0.1.0"}],
    "Verification": [
        {"running": False, "finished": "2026-11-16T11:45:00+00:00", "ok": True, "proven": 260,
         "refuted": 0, "undecided": 0, "said": None}
    ],
}  # fmt: skip
"""By the name of the answer's model."""
