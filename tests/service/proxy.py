"""A proxy in front of a service, on loopback, that loses, cuts and falsifies what passes it."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread

Fault = Callable[[socket.socket, socket.socket, bytes], None]
"""What happens to a request, between its client and the service, before both connections end."""


def message(connection: socket.socket) -> bytes:
    """One message of HTTP, whole; nothing where the connection ended."""
    found = b""
    while b"\r\n\r\n" not in found:
        piece = connection.recv(1 << 16)
        if not piece:
            return b""
        found += piece
    head, _, body = found.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
    while length and len(body) < int(length[1]):
        piece = connection.recv(1 << 16)
        if not piece:
            return b""
        found, body = found + piece, body + piece
    return found


def answered(far: socket.socket, request: bytes) -> bytes:
    """What the service answers."""
    far.sendall(request)
    return message(far)


def reset(near: socket.socket, far: socket.socket, request: bytes) -> None:
    """The answer is lost, and the connection reset."""
    answered(far, request)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def half(near: socket.socket, far: socket.socket, request: bytes) -> None:
    """The answer lacks its end."""
    near.sendall(answered(far, request)[:-20])


def first(count: int) -> Fault:
    """Only some bytes of the answer arrive."""
    return lambda near, far, request: near.sendall(answered(far, request)[:count])


def instead(answer: bytes) -> Fault:
    """Another answer arrives."""

    def replace(near: socket.socket, far: socket.socket, request: bytes) -> None:
        answered(far, request)
        near.sendall(answer)

    return replace


gateway = instead(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 5\r\n\r\n<html")
failure = instead(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")
nonsense = instead(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<html")

FAULTS: dict[str, Fault] = {
    "reset": reset,
    "half": half,
    "gateway": gateway,
    "failure": failure,
    "nonsense": nonsense,
}
"""Those that lose an answer."""


def followed(more: bytes) -> Fault:
    """The answer arrives, and later something that nobody asked for."""

    def follow(near: socket.socket, far: socket.socket, request: bytes) -> None:
        near.sendall(answered(far, request))
        time.sleep(0.02)  # so that it comes by itself
        near.sendall(more)

    return follow


def dropped(near: socket.socket, far: socket.socket, request: bytes) -> None:
    """The request does not reach the service."""


def cut(near: socket.socket, far: socket.socket, request: bytes) -> None:
    """The service gets a part of the request."""
    far.sendall(request[: len(request) - 10])


def repeated(near: socket.socket, far: socket.socket, request: bytes) -> None:
    """The request reaches the service twice, as from a proxy that tries again."""
    answered(far, request)
    near.sendall(answered(far, request))


def delayed(near: socket.socket, far: socket.socket, request: bytes) -> None:
    """The answer comes late."""
    answer = answered(far, request)
    time.sleep(0.3)
    near.sendall(answer)


@dataclass
class Proxy:
    """A proxy that runs, and what it saw."""

    url: str
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    """The first line of each."""


@contextmanager
def proxied(url: str, faults: Iterable[Fault | None] = (), refuse: bool = False) -> Iterator[Proxy]:
    """A proxy in front of a service; its requests meet these faults, one after another.

    With `refuse`, nothing listens any more once the faults are over. While the service is away,
    connections are closed without an answer.
    """
    host, _, port = url.removeprefix("http://").partition(":")
    coming = list(faults)
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    proxy = Proxy(f"http://127.0.0.1:{listener.getsockname()[1]}")

    def exchange(near: socket.socket, far: socket.socket, request: bytes) -> bool:
        """One request; whether the connections may be used again."""
        fault = coming.pop(0) if coming else None
        if fault is None:
            answer = answered(far, request)
            near.sendall(answer)
            return bool(answer)
        if refuse and not coming:
            close()
        fault(near, far, request)
        return False

    def serve(near: socket.socket) -> None:
        with near:
            try:
                with socket.create_connection((host, int(port))) as far:
                    while request := message(near):
                        proxy.requests.append(request.split(b"\r\n", 1)[0])
                        # Clients that know of a proxy send it the whole address.
                        if not exchange(
                            near, far, re.sub(rb" http://[^/ ]+", b" ", request, count=1)
                        ):
                            return
            except OSError:
                return  # One of the two ends is gone.

    def accept() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            proxy.connections += 1
            Thread(target=serve, args=(near,), daemon=True).start()

    def close() -> None:
        if listener.fileno() >= 0:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    thread = Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        close()
        thread.join()
