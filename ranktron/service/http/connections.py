"""Limits of connections: their number, the size of headers, and a timeout for each step.

They apply before authentication. A connection is either waiting (for a request, or for the rest of its headers) or busy
(a request is being answered). At the limit, the connection that has waited longest is closed for a new one, so idle
connections cannot keep others out. If all are busy, requests get a 503; health checks are answered even then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from ipaddress import IPv6Address, ip_address
from itertools import chain
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ranktron.service.config import Config
from ranktron.store.messages import ErrorAnswer, ErrorBody

HEALTH = (b"/healthz", b"/readyz")
SPARE = 16  # connections beyond a limit, where requests other than health checks get a 503
_PIPELINE = 16  # pipelined requests of one connection
_GRACE = 2.0  # seconds to answer before a connection is closed
_MIN_PROGRESS = 65_536  # bytes of an answer that a slow client must read to get more time
_PHRASES = {400: "Bad Request", 408: "Request Timeout", 431: "Request Header Fields Too Large"}
_BUSY = ErrorAnswer(ErrorBody("too_many_connections", "the server has too many connections: try again in a moment"))


class ConnectionLimit:
    """The connections that share a limit: all, or those of one address."""

    __slots__ = ("busy", "limit", "total")

    def __init__(self, limit: float) -> None:
        self.limit = limit  # of busy connections; `SPARE` more are admitted; fixed
        self.total = 0  # connections, waiting and busy; Connections.join and leave
        self.busy = 0  # those with a request under way; Connections.begin, end and leave

    @property
    def full(self) -> bool:
        return self.total >= self.limit + SPARE


class Connections:
    """The pool of all connections; `refused` is called with the code of each refusal.

    >>> Connections(Config(), print).protocol is not None
    True
    """

    def __init__(self, config: Config, refused: Callable[[str], None]) -> None:
        self.config, self.refused = config, refused
        self.all = ConnectionLimit(config.max_connections)  # the limit that all share
        self.addresses: dict[str, ConnectionLimit] = {}  # limits of addresses with connections; join and leave
        self.members: set[Connection] = set()  # open connections; join and leave
        # Waiting connections, longest wait first, which is the order of eviction; those in `new` are evicted first.
        self.new: dict[Connection, None] = {}  # before their first request; join, begin and leave
        self.idle: dict[Connection, None] = {}  # between requests; end, begin and leave
        self._proxies = frozenset(map(address_group, config.proxies))  # addresses without a limit of their own
        timeouts = (config.header_seconds, config.request_seconds, config.idle_seconds)
        self._period = min(1.0, *(timeout / 4.0 for timeout in timeouts))  # seconds between sweeps

    @property
    def protocol(self) -> Any:
        """The protocol factory for uvicorn."""
        return partial(Connection, self)

    def join(self, connection: Connection) -> bool:
        """Admits a connection; false if all others are busy."""
        address = self.addresses.get(connection.address)
        if address is None:
            limit = float("inf") if connection.address in self._proxies else self.config.max_connections_per_address
            address = self.addresses[connection.address] = ConnectionLimit(limit)
        if not self.members:
            connection.loop.call_later(self._period, self._sweep, connection.loop)
        self.members.add(connection)
        self.new[connection] = None
        connection.groups = (self.all, address)
        full = [group for group in (address, self.all) if group.full]
        for group in connection.groups:
            group.total += 1
        return not full or self._evict(connection, full[0])

    def _evict(self, newcomer: Connection, group: ConnectionLimit) -> bool:
        """Closes the connection that has waited longest; false if all are busy."""
        for connection in chain(self.new, self.idle):
            if connection is not newcomer and group in connection.groups:
                self.refused("too_many_connections")
                connection.leave()
                return True
        return False

    def leave(self, connection: Connection) -> None:
        if connection not in self.members:
            return
        self.members.discard(connection)
        self.new.pop(connection, None)
        self.idle.pop(connection, None)
        for group in connection.groups:
            group.total -= 1
            group.busy -= connection.requests > 0
        if not connection.groups[1].total:
            del self.addresses[connection.address]

    def begin(self, connection: Connection) -> None:
        """Marks a connection as busy."""
        self.new.pop(connection, None)
        self.idle.pop(connection, None)
        for group in connection.groups:
            group.busy += 1

    def end(self, connection: Connection) -> None:
        """Marks a connection as waiting."""
        if connection in self.members:
            self.idle[connection] = None
            for group in connection.groups:
                group.busy -= 1

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Closes connections that are past their deadline; one sweep is cheaper than a timer for each step."""
        now = loop.time()
        for connection in [member for member in self.members if member.deadline <= now]:
            connection.expire(now)
        if self.members:
            loop.call_later(self._period, self._sweep, loop)


class Connection(HttpToolsProtocol):
    """One connection. A deadline is set when a step begins, and arriving bytes do not extend it."""

    groups: tuple[ConnectionLimit, ConnectionLimit]  # the limits that it counts for; Connections.join

    def __init__(self, connections: Connections, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.pool, self.limits = connections, connections.config
        self.application: Any = self.app  # answers admitted requests; fixed, where `app` changes with each request
        self.address = ""  # key of the limit per address; connection_made
        self.deadline = float("inf")  # of the present step, in the event loop's time; _within
        self.step = "idle"  # of reading a request: idle, head, body; the parser's callbacks
        self.requests = 0  # requests not answered yet; on_headers_complete and on_response_complete
        self.received = 0  # bytes of this step; data_received
        self.content = 0  # bytes of the body; on_body
        self.unsent = 0  # bytes of the answer that the client had not read at the last deadline; expire
        self.complaint: tuple[int, str, str] | None = (
            None  # why the parser stops: status, code, message; on_headers_complete
        )

    def _within(self, seconds: float) -> None:
        self.deadline = self.loop.time() + seconds

    # Reading

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = address_group(self.client[0]) if self.client else ""
        self._within(self.limits.header_seconds)
        if not self.pool.join(self):
            self._refuse(503, _BUSY.error.code, _BUSY.error.message)

    def connection_lost(self, exc: Exception | None) -> None:
        self.pool.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        super().data_received(data)
        # The parser buffers headers, trailers and chunk sizes until they are complete.
        if self.received > self.limits.max_header_bytes + 8 * self.content and not self.transport.is_closing():
            self._refuse(*self._too_large())

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self.step == "idle" and not self.requests and self not in self.pool.new:
            self._within(self.limits.header_seconds)
        self.step, self.received, self.content = "head", 0, 0

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(map(len, chain.from_iterable(self.headers)))
        if size > self.limits.max_header_bytes or len(self.headers) > self.limits.max_headers:
            self.complaint = self._too_large()
            raise ValueError
        if self.requests >= _PIPELINE:
            self.complaint = 400, "malformed_http", f"more than {_PIPELINE} requests were sent without waiting"
            raise ValueError
        self.step, self.received, self.unsent = "body", 0, 0
        if not self.requests:
            self.pool.begin(self)
            self._within(self.limits.request_seconds + _GRACE)
        self.requests += 1
        admitted = all(group.busy <= group.limit for group in self.groups)
        self.app = self.application if admitted or self.url.partition(b"?")[0] in HEALTH else self._unavailable
        super().on_headers_complete()
        self.headers = []  # trailers are no headers

    def on_body(self, body: bytes) -> None:
        self.content += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self.step = "idle"
        self._within(self.limits.answer_seconds + _GRACE if self.requests else self.limits.idle_seconds)

    def _too_large(self) -> tuple[int, str, str]:
        limits = self.limits
        complaint = f"a request may have at most {limits.max_headers} headers of {limits.max_header_bytes} bytes in all"
        return 431, "headers_too_large", complaint

    # Writing

    def on_response_complete(self) -> None:
        self.requests -= 1
        if not self.requests:
            self.pool.end(self)
            if self.step == "idle":
                self._within(self.limits.idle_seconds)
            elif self.step == "head":
                self._within(self.limits.header_seconds)
        if self.transport.is_closing():
            self._within(_GRACE)
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answers a request that the parser or a limit has refused."""
        self._refuse(*(self.complaint or (400, "malformed_http", "this is not valid HTTP/1.1")))

    def _refuse(self, status: int, code: str, message: str) -> None:
        self.pool.refused(code)
        answerable = self.requests == 1 and self.step == "body" and not self.cycle.response_started
        if self.requests and not answerable:  # the client would take the error for an earlier request's answer
            self.transport.abort()
            return
        body = msgspec.json.encode(ErrorAnswer(ErrorBody(code, message)))
        head = f"HTTP/1.1 {status} {_PHRASES.get(status, 'Service Unavailable')}\r\ncontent-type: application/json\r\n"
        self.transport.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
        self.transport.close()
        self._within(_GRACE)

    async def _unavailable(self, _scope: Any, _receive: Any, send: Any) -> None:
        self.pool.refused(_BUSY.error.code)
        body = msgspec.json.encode(_BUSY)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += [(b"connection", b"close"), (b"retry-after", b"1")]
        await send({"type": "http.response.start", "status": 503, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    # Timeouts

    def leave(self) -> None:
        """Closes the connection at once."""
        self.pool.leave(self)
        self.transport.abort()

    def expire(self, now: float) -> None:
        """Closes a connection past its deadline, unless the client is reading a large answer slowly."""
        unsent, before = self.transport.get_write_buffer_size(), self.unsent
        if unsent and (not before or before - unsent >= _MIN_PROGRESS):
            self.unsent, self.deadline = unsent, now + self.limits.answer_seconds
        elif self.transport.is_closing() or self.requests:
            self.pool.refused("slow_client")
            self.leave()
        elif self.step == "head":
            self._refuse(408, "headers_too_slow", "the headers of the request took too long to arrive")
        else:  # idle
            self.transport.close()
            self._within(_GRACE)


def address_group(address: str) -> str:
    """The key of the limit per address: of IPv6 the /64 network, which one host may own.

    >>> address_group("192.0.2.1"), address_group("2001:db8::1:2"), address_group("::ffff:192.0.2.1")
    ('192.0.2.1', '2001:db8::', '192.0.2.1')
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or IPv6Address(int(parsed) >> 64 << 64))
    return address
