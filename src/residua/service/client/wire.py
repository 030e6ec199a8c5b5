"""HTTP/1.1 as far as a client of the service needs it: a request in one piece, and its answer.

`http.client` makes the connection, and has the exceptions. Its requests go out in two pieces, head
and body, and it reads the head of an answer with a parser for mail, which takes longer than all the
rest of a spend on this side.
"""

from __future__ import annotations

import http.client
import re
import select
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

_LONGEST_LINE, _MOST_HEADERS = 65536, 100
_LENGTH, _SIZE = re.compile(rb"[0-9]{1,15}"), re.compile(rb"[0-9A-Fa-f]{1,12}")
_STATUS = re.compile(rb"HTTP/1\.([01]) (\d{3})(?: .*)?\r?\n")
_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_BREAK = re.compile(r"[\x00\r\n]")


class Got(NamedTuple):
    """An answer."""

    status: int
    headers: dict[bytes, bytes]
    content: bytes


def common(url: str, headers: Mapping[str, str]) -> bytes:
    """The lines of the head that all requests to an address share."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    host = parts.hostname
    if not host.isascii():
        host = host.encode("idna").decode("ascii")
    elif ":" in host:
        host = f"[{host}]"
    if parts.port not in (None, 443 if parts.scheme == "https" else 80):
        host += f":{parts.port}"
    lines = []
    for name, value in {"Host": host, "Accept-Encoding": "identity", **headers}.items():
        if _BREAK.search(value):
            raise ValueError(f"header {name} must be one line")
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode("latin-1")


class Wire:
    """An open connection, for one request at a time."""

    def __init__(self, connection: http.client.HTTPConnection):
        self._connection = connection
        self._reader = connection.sock.makefile("rb")
        self.is_open = True

    @property
    def is_quiet(self) -> bool:
        """Whether nothing came since the last answer, neither an end nor what nobody asked for."""
        if not hasattr(select, "poll"):  # pragma: no cover
            return not select.select([self._connection.sock], [], [], 0)[0]
        poll = select.poll()
        poll.register(self._connection.sock, select.POLLIN)
        return not poll.poll(0)

    def ask(self, method: str, path: str, common: bytes, content: bytes | None) -> Got:
        """Send a request and read its answer, all of it."""
        if _CONTROL.search(path):
            raise http.client.InvalidURL(f"URL can't contain control characters. {path!r}")
        head = b"%s %s HTTP/1.1\r\n%s" % (method.encode("ascii"), path.encode("ascii"), common)
        if content is None and method == "GET":
            self._connection.sock.sendall(head + b"\r\n")
        else:
            body = content or b""
            self._connection.sock.sendall(
                b"%sContent-Length: %d\r\n\r\n%s" % (head, len(body), body)
            )
        return self._answer()

    def _answer(self) -> Got:
        while True:
            line = self._line("status line")
            if not line:
                raise http.client.RemoteDisconnected(
                    "Remote end closed connection without response"
                )
            found = _STATUS.fullmatch(line)
            if found is None:
                raise http.client.BadStatusLine(line.decode("latin-1").strip())
            status, headers = int(found[2]), self._headers()
            if status >= 200:  # those below come before the answer
                break
        said = headers.get(b"connection", b"").lower()
        self.is_open = b"close" not in said and (found[1] == b"1" or b"keep-alive" in said)
        return Got(status, headers, b"" if status in (204, 304) else self._content(headers))

    def _content(self, headers: Mapping[bytes, bytes]) -> bytes:
        if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
            return self._chunks()
        length = headers.get(b"content-length")
        if length is None:
            self.is_open = False
            return self._reader.read()
        if not _LENGTH.fullmatch(length):
            raise http.client.HTTPException(f"Content-Length must be a number, got {length[:40]!r}")
        return self._exactly(int(length))

    def _chunks(self) -> bytes:
        pieces: list[bytes] = []
        while True:
            found = self._line("chunk size").partition(b";")[0].strip()
            if not _SIZE.fullmatch(found):
                raise http.client.IncompleteRead(b"".join(pieces))
            size = int(found, 16)
            if size == 0:
                self._headers()  # what comes behind the last one
                return b"".join(pieces)
            pieces.append(self._exactly(size))
            self._line("end of a chunk")

    def _exactly(self, size: int) -> bytes:
        found = self._reader.read(size)
        if len(found) < size:
            raise http.client.IncompleteRead(found, size - len(found))
        return found

    def _headers(self) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for _ in range(_MOST_HEADERS):
            line = self._line("header line")
            if line in (b"\r\n", b"\n"):
                return found
            if not line.endswith(b"\n"):
                raise http.client.IncompleteRead(line)
            name, _, value = line.partition(b":")
            found[name.strip().lower()] = value.strip()
        raise http.client.HTTPException(f"got more than {_MOST_HEADERS} headers")

    def _line(self, what: str) -> bytes:
        line = self._reader.readline(_LONGEST_LINE + 1)
        if len(line) > _LONGEST_LINE:
            raise http.client.LineTooLong(what)
        return line

    def close(self) -> None:
        """Let it go."""
        self.is_open = False
        self._reader.close()
        self._connection.close()
