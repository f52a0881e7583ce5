"""A client for requests to the leader, with a pool of connections: asyncio and no other dependency."""

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

_MAX_CONNECTIONS = 64
_MAX_IDLE = 20.0  # seconds after which an idle connection is not reused: the leader may be closing it
_MAX_ANSWER = 1 << 31  # bytes
Headers = Sequence[tuple[bytes, bytes]]


class LeaderAnswer(NamedTuple):
    """An HTTP response of the leader."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class LeaderClient:
    """Sends requests to the leader.

    Parameters
    ----------
    url : str
        Address of the leader, as `http://10.0.0.5:8080`.
    token : str, optional
        A token with the scope `admin`, for the follower's own requests.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
            raise DataError(f"{url!r} is not the address of a server, as http://10.0.0.5:8080")
        self.url, self._host = url.rstrip("/"), parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._ssl = ssl.create_default_context() if parts.scheme == "https" else None
        self._netloc = parts.netloc.encode()
        self._authorization = [(b"authorization", b"Bearer " + token.encode())] if token else []
        self._idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._slots = asyncio.Semaphore(_MAX_CONNECTIONS)

    async def ask(self, path: str, body: bytes, seconds: float = 10.0) -> bytes:
        """The body of the answer to a request of the follower's own; a RequestError unless its status is 200."""
        headers = [(b"content-type", b"application/octet-stream"), *self._authorization]
        answer = await self.send("POST", path.encode(), headers, body, seconds)
        if answer.status != 200:
            raise RequestError(answer.status, "leader_refused", f"the leader refuses: {answer.body.decode()[:500]}")
        return answer.body

    async def send(self, method: str, path: bytes, headers: Headers, body: bytes, seconds: float) -> LeaderAnswer:
        """The answer to a request. Never retries: if the connection breaks, the request may have arrived."""
        try:
            async with asyncio.timeout(seconds), self._slots:
                reader, writer = await self._connection()
                try:
                    lines = [method.encode() + b" " + path + b" HTTP/1.1", b"host: " + self._netloc]
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
            if monotonic() - since < _MAX_IDLE and not reader.at_eof() and not writer.is_closing():
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
    if length > _MAX_ANSWER:
        raise ValueError("the answer is too large")
    return LeaderAnswer(int(head[0].split()[1]), headers, await reader.readexactly(length))
