"""The client: the ledger's own values, and repetitions that spend nothing twice."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import residua as rz
from residua.errors import (
    AccessDenied,
    BudgetExists,
    KeyReused,
    OutcomeUnknown,
    RetiredBudget,
    ServiceError,
    StoreUnavailable,
    UnknownBudget,
    UnknownHold,
)
from residua.ledger.api.ledger import Ledger
from service.proxy import first, followed, instead, proxied
from service.running import LAPLACE, Service

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy")


def use(books: Any) -> list[Any]:
    """The same work at a ledger or at a service; everything that was answered."""
    seen: list[Any] = []
    made = books.create_budget("w", rz.GdpResidueFilter(mu=1.0), unit="household", data="census")
    seen += [made.name, made.filter, made.unit, made.remaining, made.guarantee.text]
    books.create_budget("quota", rz.PureFilter(eps=0.5), parent="w")
    for query in (rz.laplace(scale=4.0), rz.mechanisms.Gaussian(sigma=5.0), rz.pure_dp(0.2)):
        answer = books.check("w", query)
        receipt = books.spend("w", query, key=f"key of {query!r}")
        again = books.spend("w", query, key=f"key of {query!r}")
        seen += [answer, answer.remaining, receipt.remaining, receipt.admitted, receipt.reason]
        seen += [receipt.seq, receipt.key, again.replayed, again.head == receipt.head]
    refused = books.check("w", rz.laplace(scale=0.5))
    seen += [refused, refused.largest, refused.binding]
    never = books.spend("w", rz.laplace(scale=0.5), key="never")
    assert isinstance(never.largest, rz.mechanisms.Laplace)
    seen += [never.admitted, never.reason, never.largest]
    both = books.spend(["w", "quota"], rz.laplace(scale=50.0), key="both")
    seen += [both.remaining, set(both.budgets)]
    hold = books.reserve("w", rz.laplace(scale=9.0), key="held", ttl=60.0)
    seen += [hold.admitted, hold.remaining, [one.budgets for one in books.holds()]]
    done = hold.commit()
    seen += [done.admitted, done.reason, done.remaining]
    books.reserve("w", rz.laplace(scale=9.0)).cancel("not needed")
    seen += [[(one.seq, one.type, one.key, one.mechanism) for one in books.history("w")][:6]]
    seen += [[one.seq for one in books.history("w", after=2, limit=3)]]
    books.retire("quota", "over")
    found = {one.name: one for one in books.budgets()}
    seen += [found["quota"].retired, found["quota"].remaining, found["w"].state, found["w"].spent]
    return seen


def test_embedded_and_service_answer_alike(service: Service, tmp_path: Path) -> None:
    with rz.open_ledger(tmp_path / "embedded.db", principal="admin") as ledger:
        embedded = use(ledger)
    with service.client() as client:
        served = use(client)
    assert served == embedded


def test_the_verbs_are_those_of_the_ledger() -> None:
    """Code moves from one to the other by changing the line that opens it."""
    for verb in ("create_budget", "budget", "budgets", "check", "spend", "reserve", "commit",
                 "cancel", "guard", "holds", "history", "retire", "refresh", "status",
                 "export", "verify"):  # fmt: skip
        own = inspect.signature(getattr(Ledger, verb)).parameters
        for client in (rz.Client, rz.AsyncClient):
            theirs = inspect.signature(getattr(client, verb)).parameters
            # Questions are recorded where the tables are.
            assert [(p.name, p.kind, p.default) for p in own.values() if p.name != "question"] == [
                (p.name, p.kind, p.default) for p in theirs.values()
            ], verb


def test_a_guard_behind_the_service(service: Service, name: str) -> None:
    """Paid over HTTP before it runs; a key runs once; one error whatever goes wrong."""
    runs = []
    with rz.Client(service.url, service.tokens["admin"]) as client:
        client.create_budget(name, rz.PureFilter(eps=1.0))

        @client.guard(name, rz.pure_dp(0.25))
        def count(rows: list[int]) -> int:
            runs.append(client.budget(name).remaining)
            return len(rows) // (rows[0] - 1)

        assert count([2, 2], guard_key=f"{name}-monday") == 2
        assert runs == [rz.pure_dp(0.75)]
        with pytest.raises(rz.AlreadySpent):
            count([2, 2], guard_key=f"{name}-monday")
        with pytest.raises(rz.MechanismFailed) as failed:
            count([1])
        assert failed.value.__context__ is None and "division" not in str(failed.value)
        with client.guard(name, rz.pure_dp(0.25)) as receipt:
            assert receipt.admitted
        with pytest.raises(rz.Refused), client.guard(name, rz.pure_dp(0.5)):
            pytest.fail("entered without budget")
        assert client.budget(name).remaining == rz.pure_dp(0.25) and len(runs) == 2
        assert not [hold for hold in client.holds() if name in hold.budgets]


def test_a_guard_that_is_awaited(service: Service, name: str) -> None:
    runs: list[int] = []

    async def work() -> None:
        async with rz.AsyncClient(service.url, service.tokens["admin"]) as client:
            await client.create_budget(name, rz.PureFilter(eps=1.0))

            @client.guard(name, rz.pure_dp(0.25))
            async def count(rows: list[int]) -> int:
                runs.append(len(rows))
                return len(rows) // (rows[0] - 1)

            asked = (count([2, 2], guard_key=f"{name}-monday") for _ in range(4))
            found = await asyncio.gather(*asked, return_exceptions=True)
            assert [one for one in found if not isinstance(one, rz.AlreadySpent)] == [2]
            with pytest.raises(rz.MechanismFailed) as failed:
                await count([1])
            assert failed.value.__context__ is None and "division" not in str(failed.value)
            async with client.guard(name, rz.pure_dp(0.25)) as receipt:
                assert receipt.admitted
            with pytest.raises(rz.Refused):
                async with client.guard(name, rz.pure_dp(0.5)):
                    pytest.fail("entered without budget")
            with pytest.raises(rz.ArgumentTypeError, match="must be awaited"):
                client.guard(name, rz.pure_dp(0.25))(len)([1])
            assert (await client.budget(name)).remaining == rz.pure_dp(0.25)
            assert not [hold for hold in await client.holds() if name in hold.budgets]

    asyncio.run(work())
    assert runs == [2, 1]


def test_the_client_that_is_awaited(service: Service, name: str) -> None:
    async def work() -> None:
        async with rz.AsyncClient(service.url, service.tokens["admin"]) as client:
            await client.create_budget(name, rz.GdpResidueFilter(mu=1.0))
            keys = [f"{name}-{n % 4}" for n in range(8)]
            spends = (client.spend(name, rz.laplace(scale=20.0), key=key) for key in keys)
            receipts = await asyncio.gather(*spends)
            assert sorted(receipt.replayed for receipt in receipts) == 4 * [False] + 4 * [True]
            hold = await client.reserve(name, rz.laplace(scale=20.0))
            assert hold and hold.admitted and (await hold.commit()).admitted
            await (await client.reserve(name, rz.laplace(scale=20.0))).cancel("no")
            assert (await client.check(name, rz.pure_dp(9.0))).admitted is False
            assert len(await client.history(name)) == (await client.budget(name)).seq + 1
            assert name in [one.name for one in await client.budgets()]
            with pytest.raises(UnknownBudget):
                await client.budget(f"{name} is not")

    asyncio.run(work())


def test_errors_are_those_of_the_ledger(service: Service, name: str) -> None:
    with service.client() as client:
        client.create_budget(name, rz.GdpResidueFilter(mu=1.0))
        client.spend(name, LAPLACE, key=f"{name}-k")
        with pytest.raises(BudgetExists, match=name):
            client.create_budget(name, rz.GdpResidueFilter(mu=1.0))
        with pytest.raises(UnknownBudget, match="none such"):
            client.spend("none such", LAPLACE)
        with pytest.raises(KeyReused, match="nothing was"):
            client.spend(name, rz.pure_dp(0.1), key=f"{name}-k")
        with pytest.raises(UnknownHold):
            client.commit("none")
        with pytest.raises(ValueError, match="scale must be positive"):
            client.spend(name, {"kind": "laplace", "scale": -1.0})
        with pytest.raises(TypeError, match="budget must be a name"):
            client.spend(7, LAPLACE)
        client.retire(name, "over")
        with pytest.raises(RetiredBudget):
            client.spend(name, LAPLACE)
    with service.client("analyst") as client, pytest.raises(AccessDenied, match="got analyst"):
        client.spend(name, LAPLACE)
    with rz.Client(service.url) as client, pytest.raises(AccessDenied, match="a token is needed"):
        client.budgets()


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x",
        "nowhere",
        "http://",
        "http://a:b@c",
        "http://a/?q",
        "http://a:99999",
        "http://a b",
        7,
    ],
)
def test_addresses_that_are_none(url: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="url must be"):
        rz.Client(url)


def test_a_token_is_never_shown() -> None:
    with pytest.raises(ValueError, match="token must be") as caught:
        rz.Client("http://127.0.0.1:1", "sécret")
    assert "cret" not in str(caught.value)
    with rz.Client("http://127.0.0.1:1", "secret") as client:
        assert "secret" not in repr(client)


# -- a network that fails -------------------------------------------------------------------


@pytest.mark.parametrize("after", [5, 17, 40])
def test_half_an_answer_is_none(service: Service, name: str, after: int) -> None:
    """Cut in its first line, behind it, or within its head."""
    service.budget(name)
    token = service.tokens["engine"]
    with proxied(service.url, [first(after)]) as proxy, rz.Client(proxy.url, token) as client:
        assert client.spend(name, LAPLACE).admitted
    assert service.http("GET", f"/v1/budgets/{name}").json()["seq"] == 1


def test_what_nobody_asked_for_is_no_answer(service: Service, name: str) -> None:
    """Some proxies say why they close a connection that rests."""
    service.budget(name)
    token = service.tokens["engine"]
    gone = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n"
    faults = 2 * [followed(gone)]
    with proxied(service.url, faults) as proxy, rz.Client(proxy.url, token) as client:
        for place in range(2):
            assert client.spend(name, LAPLACE, key=f"{name}-{place}").admitted
            time.sleep(0.1)


def test_another_s_receipt_permits_nothing(service: Service, name: str) -> None:
    service.budget(name)
    receipt = service.spend(name, key=f"{name}-other").content
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(receipt), receipt)
    with (
        proxied(service.url, [instead(answer)]) as proxy,
        rz.Client(proxy.url, service.tokens["engine"]) as client,
        pytest.raises(OutcomeUnknown, match=f"repeat the call with the key '{name}-mine'"),
    ):
        client.spend(name, LAPLACE, key=f"{name}-mine")


FORKS = """
import os, sys
import residua as rz
url, token, name = sys.argv[1:]
client = rz.Client(url, token)
client.spend(name, rz.laplace(scale=400.0))
child = os.fork()
for place in range(10):
    key = f"{name}-{child == 0}-{place}"
    assert client.spend(name, rz.laplace(scale=400.0), key=key).key == key
client.close()
if child == 0:
    os._exit(0)
sys.exit(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_who_forks_shares_no_connection(service: Service, name: str) -> None:
    service.budget(name)
    with proxied(service.url) as proxy:
        asked = [sys.executable, "-c", FORKS, proxy.url, service.tokens["engine"], name]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert service.http("GET", f"/v1/budgets/{name}").json()["seq"] == 21


def test_an_address_of_ipv6_needs_no_port() -> None:
    with (
        rz.Client("http://[::1]", attempts=1, timeout=5) as client,
        pytest.raises((StoreUnavailable, ServiceError)) as caught,
    ):
        client.budget("web")
    assert "not known" not in str(caught.value)


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with (
        rz.Client(f"http://127.0.0.1:{port}", attempts=2) as client,
        pytest.raises(StoreUnavailable, match="nothing was spent"),
    ):
        client.spend("web", LAPLACE)


def test_somebody_else_there() -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<html"
    gone = b"HTTP/1.1 418 I'm a teapot\r\nContent-Length: 0\r\n\r\n"
    server = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        for text in (page, gone):
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(text)

    thread = Thread(target=answer, daemon=True)
    thread.start()
    with server, rz.Client(f"http://127.0.0.1:{server.getsockname()[1]}") as client:
        with pytest.raises(ServiceError, match="not come from a budget service"):
            client.budget("web")
        with pytest.raises(ServiceError, match="418"):
            client.budget("web")
        thread.join()
