"""Services for the tests: real ones, on loopback, in a thread or in processes of their own."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import uvicorn

import residua as rz
from residua.service import auth
from residua.service.auth import Authenticator
from residua.service.context import ServiceContext, open_context
from residua.service.limits import RateLimiter
from residua.service.serving import bound, config
from residua.service.settings import Settings

LAPLACE = {"kind": "laplace", "scale": 4.0}
FILTER = {"kind": "gdp_residue", "mu": 1.0}


@dataclass(frozen=True)
class Service:
    """A service that runs, and how to talk to it."""

    url: str
    office: ServiceContext
    tokens: dict[str, str]
    connection: httpx.Client

    def client(self, role: str = "admin", **options: Any) -> rz.Client:
        return rz.Client(self.url, self.tokens[role], **options)

    def token(self, role: str, **options: Any) -> str:
        made, text = auth.new_token(role, **options)
        self.office.tokens.add(made)
        return text

    def http(self, method: str, path: str, token: str | None = "admin", **options: Any) -> Any:
        headers = dict(options.pop("headers", {}))
        if token is not None:
            headers["Authorization"] = f"Bearer {self.tokens.get(token, token)}"
        return self.connection.request(method, path, headers=headers, **options)

    def budget(self, name: str, **fields: Any) -> None:
        body = {"name": name, "filter": FILTER, **fields}
        answer = self.http("POST", "/v1/budgets", json=body)
        assert answer.status_code == 201, answer.text

    def spend(self, name: str, token: str = "admin", **fields: Any) -> Any:
        body = {"mechanism": LAPLACE, **fields}
        return self.http("POST", f"/v1/budgets/{name}/spend", token, json=body)


@contextmanager
def serving(
    store: str,
    anchor: Path,
    known: dict[str, str] | None = None,
    clock: Callable[[], float] = time.monotonic,
    **options: Any,
) -> Iterator[Service]:
    """A service in a thread of this process, with a token for each role unless some are known."""
    limited = "rate" in options
    settings = Settings(**{"store": store, "port": 0, "rate": 0.0, **options})
    office = open_context(settings, rz.open_ledger(store, anchor=anchor))
    if not limited:
        office = replace(office, anonymous_limiter=RateLimiter(0.0, 1))
    office = replace(office, authenticator=Authenticator(office.tokens.find, settings.dev, clock))
    roles = auth.ROLES if known is None else ()
    made = {role: auth.new_token(role, principal=role) for role in roles}
    for token, _ in made.values():
        office.tokens.add(token)
    listener = bound(settings)
    server = uvicorn.Server(config(office))
    thread = Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.005)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        texts = {**{role: text for role, (_, text) in made.items()}, **(known or {})}
        with httpx.Client(base_url=url, timeout=200, verify=False) as connection:
            yield Service(url, office, texts, connection)
    finally:
        server.should_exit = True
        thread.join()
        office.close()


@contextmanager
def process(
    store: str, anchor: Path | None = None, port: int = 0, **environment: str
) -> Iterator[Process]:
    """`residua serve` in a process of its own; ended if it still runs."""
    more = {} if anchor is None else {"RESIDUA_ANCHOR": str(anchor)}
    child = subprocess.Popen(
        [sys.executable, "-c", "from residua.cli import main; main()", "serve", "--store", store,
         "--port", str(port), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        # Output is buffered, as it is for users.
        env={**os.environ, "PYTHONUNBUFFERED": "", **more, **environment},
    )  # fmt: skip
    try:
        yield Process(child)
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate()


@dataclass
class Process:
    """A service in a process of its own."""

    child: subprocess.Popen[str]
    _url: str | None = None

    @property
    def url(self) -> str:
        """Where it listens; waits until it does."""
        if self._url is None:
            assert self.child.stdout is not None and self.child.stderr is not None
            ready, _, _ = select.select([self.child.stdout], [], [], 60)
            said = ""
            while ready and not said.rstrip().endswith("}"):
                line = self.child.stdout.readline()
                if not line:
                    raise AssertionError(f"it did not start: {self.child.stderr.read()}")
                said += line
            self._url = json.loads(said)["url"]
        return self._url


def raw(url: str, sent: bytes, patience: float | None = None) -> bytes:
    """What a service answers to these very bytes; with patience, so far."""
    host, _, port = url.removeprefix("http://").partition(":")
    found = b""
    with socket.create_connection((host, int(port)), timeout=patience or 10) as connection:
        connection.sendall(sent)
        try:
            while piece := connection.recv(65536):
                found += piece
        except TimeoutError:
            if patience is None:
                raise
    return found
