"""Style, scripts and the icon: read once, named by their contents, cached by browsers for good."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from residua.service.problems import Problem

router = APIRouter()

_KINDS = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
FILES = {
    each.name: each.read_bytes()
    for each in files("residua.service.pages").joinpath("static").iterdir()
    if each.name.rpartition(".")[2] in _KINDS
}
VERSION = hashlib.sha256(b"".join(FILES[name] for name in sorted(FILES))).hexdigest()[:12]
"""Changes with any of them, since scripts import each other by bare names beside them."""


def address(name: str) -> str:
    """Where a file is served."""
    assert name in FILES, name
    return f"/static/{VERSION}/{name}"


@router.get("/static/{version}/{name}")
async def static(request: Request, version: str, name: str) -> Response:
    """One file."""
    if name not in FILES or version != VERSION:
        raise Problem(404, "not-found", "there is nothing at this address")
    return Response(
        FILES[name],
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
        media_type=_KINDS[name.rpartition(".")[2]],
    )
