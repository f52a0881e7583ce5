"""Requests to the leader, on the event loop: a few connections that stay open, and no dependency."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import NamedTuple
from urllib.parse import urlsplit

from ranktron.errors import DataError
from ranktron.store.errors import RequestError

_CONNECTIONS = 64  # at one time
_FRESH = 20.0  # seconds after which an idle connection is not used again: the leader might be closing it
_LARGEST = 1 << 31  # bytes of an answer
Headers = Sequence[tuple[bytes, bytes]]


class LeaderAnswer(NamedTuple):
    """What the leader answered."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class LeaderClient:
    """Sends requests to one server.

    Parameters
    ----------
    url : str
        Address of the leader, as `http://10.0.0.5:8080`.
    token : str, optional
        A token with the scope `admin`, for what a follower asks for itself.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
            raise DataError(f"{url!r} is not the address of a server, as http://10.0.0.5:8080")
        self.url, self._host = url.rstrip("/"), parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._ssl = ssl.create_default_context() if parts.scheme == "https" else None
        self._name = parts.netloc.encode()
        self._own = [(b"authorization", b"Bearer " + token.encode())] if token else []
        self._idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._places = asyncio.Semaphore(_CONNECTIONS)

    async def ask(self, path: str, body: bytes, seconds: float = 10.0) -> bytes:
        """What the leader answers to the follower itself; a RequestError if it refuses, or is away."""
        headers = [(b"content-type", b"application/octet-stream"), *self._own]
        answer = await self.send("POST", path.encode(), headers, body, seconds)
        if answer.status != 200:
            raise RequestError(answer.status, "leader_refused", f"the leader refuses: {answer.body.decode()[:500]}")
        return answer.body

    async def send(self, method: str, path: bytes, headers: Headers, body: bytes, seconds: float) -> LeaderAnswer:
        """The answer to a request, which is sent once: whether it arrived is not known if the connection breaks."""
        try:
            async with asyncio.timeout(seconds), self._places:
                reader, writer = await self._connection()
                try:
                    lines = [method.encode() + b" " + path + b" HTTP/1.1", b"host: " + self._name]
                    lines += [name + b": " + value for name, value in headers]
                    lines.append(b"content-length: " + str(len(body)).encode())
                    writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
                    await writer.drain()
                    answer = await _read_answer(reader)
                except BaseException:
                    writer.close()
                    raise
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError) as error:
            away = f"the leader at {self.url} cannot be reached ({type(error).__name__})"
            raise RequestError(503, "leader_away", f"{away}: try again; feedback may be sent again") from None
        if (b"connection", b"close") in answer.headers:
            writer.close()
        else:
            self._idle.append((monotonic(), reader, writer))
        return answer

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            since, reader, writer = self._idle.pop()
            if monotonic() - since < _FRESH and not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(self._host, self._port, ssl=self._ssl, limit=1 << 20)

    async def close(self) -> None:
        for _, _, writer in self._idle:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        self._idle = []


async def _read_answer(reader: asyncio.StreamReader) -> LeaderAnswer:
    head = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
    pairs = [line.partition(b":") for line in head[1:-2]]
    headers = [(name.strip().lower(), value.strip()) for name, _, value in pairs]
    length = int(dict(headers)[b"content-length"]) if b"content-length" in dict(headers) else 0
    if length > _LARGEST:
        raise ValueError("too large an answer")
    return LeaderAnswer(int(head[0].split()[1]), headers, await reader.readexactly(length))
