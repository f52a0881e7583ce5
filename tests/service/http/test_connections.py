"""Connections that are slow, endless, idle or too many, against the program itself and without a token."""

import json
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from ranktron import Client
from ranktron.service.auth import new_token

HEAD = b"GET /v1/rankers HTTP/1.1\r\nHost: localhost\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def started(tmp_path, Program):
    """Starts a program with settings of its own."""
    with ExitStack() as stack:

        def start(tokens="", **settings):
            file = tmp_path / "ranktron.toml"
            file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()))
            environment = {"RANKTRON_TOKENS": tokens} if tokens else {}
            return stack.enter_context(Program(tmp_path / "state", "--config", str(file), **environment))

        yield start


@pytest.fixture(scope="module")
def program(tmp_path_factory, Program):
    with Program(tmp_path_factory.mktemp("state")) as program:
        yield program


@pytest.fixture
def connect():
    with ExitStack() as stack:

        def connected(program, content=b"", address="127.0.0.1"):
            connection = socket.create_connection(("127.0.0.1", program.port), 15, (address, 0))
            stack.enter_context(connection)
            connection.sendall(content)
            return connection

        yield connected


def received(connection, seconds=15.0):
    """All that comes until the other side closes, or for so many seconds."""
    connection.settimeout(seconds)
    got = b""
    try:
        while part := connection.recv(65536):
            got += part
    except ConnectionError:
        pass
    except TimeoutError:
        got += b"(still open)"
    return got


def status(answer):
    return int(answer.split()[1])


def refusals(program, reason, **client):
    with Client(program.url, **client) as asking:
        text = asking._send("GET", "/metrics", b"", "").decode()
    found = [line for line in text.splitlines() if line.startswith(f'ranktron_refused_total{{reason="{reason}"}}')]
    return int(float(found[0].split()[1])) if found else 0


def resident(program):
    fields = Path(f"/proc/{program.process.pid}/statm").read_text().split()
    return int(fields[1]) * 4096


def answered(connection):
    """One answer over a connection that stays open."""
    connection.settimeout(5.0)
    got = b""
    while b"}" not in got:
        part = connection.recv(65536)
        if not part:
            break
        got += part
    return got


def test_whoever_holds_a_thousand_connections_keeps_nobody_out(started, connect):
    program = started(header_seconds=60.0)
    for number in range(1_100):
        connect(program, HEAD + b"X-Slow: ", f"127.0.0.{2 + number % 8}")
    for path in (b"/healthz", b"/readyz", b"/v1/rankers"):
        start = time.monotonic()
        answer = answered(connect(program, b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path))
        assert status(answer) == 200
        assert time.monotonic() - start < 2.0
    assert refusals(program, "too_many_connections") >= 84


def test_an_address_has_its_share_and_a_load_balancer_all(started, connect):
    program = started(max_connections_per_address=20, proxies=["127.0.0.9"], header_seconds=60.0)
    held = [connect(program, HEAD) for _ in range(60)]
    time.sleep(0.2)
    still = 0
    for connection in held:
        connection.settimeout(0.01)
        try:
            connection.recv(1)
        except TimeoutError:
            still += 1
        except ConnectionError:
            pass
    assert still == 20 + 16
    proxied = [connect(program, HEAD, "127.0.0.9") for _ in range(60)]
    for connection in proxied:
        connection.sendall(b"\r\n")
        assert status(answered(connection)) == 200


def test_health_is_answered_while_every_connection_is_busy(started, connect):
    program = started(max_connections=8, request_seconds=30.0)
    with Client(program.url) as client:
        client.create("shop", ["a"])
    slow = b"POST /v1/rankers/shop/rank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for _ in range(8):
        connect(program, slow + b"Content-Length: 50\r\n\r\n{")
    time.sleep(0.2)
    for _ in range(40):  # more of those than there are spare places
        answer = received(connect(program, HEAD + b"\r\n"))
        assert (status(answer), json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"]) == (
            503,
            "too_many_connections",
        )
        connect(program, HEAD)  # and stays
        assert status(answered(connect(program, HEALTH))) == 200


def test_headers_have_a_deadline_that_no_byte_puts_off(started, connect):
    program = started(header_seconds=1.0)
    connection = connect(program, HEAD)
    start = time.monotonic()
    connection.settimeout(0.1)
    answer = b""
    while time.monotonic() - start < 10.0:
        try:
            answer = connection.recv(1000)
            break
        except TimeoutError:
            connection.sendall(b"X-Slow: 1\r\n")
    assert time.monotonic() - start < 4.0
    assert status(answer) == 408
    assert b"headers_too_slow" in answer
    again = connect(program, HEALTH)  # the second request of a connection has the same
    assert status(answered(again)) == 200
    again.sendall(HEAD)
    assert status(received(again, 4.0)) == 408
    assert received(connect(program), 4.0) == b""  # whoever says nothing is told nothing
    assert refusals(program, "headers_too_slow") == 2


def test_idle_connections_are_closed(started, connect):
    program = started(idle_seconds=0.5)
    connection = connect(program, HEALTH)
    answer = answered(connection)
    assert status(answer) == 200
    start = time.monotonic()
    while time.monotonic() - start < 5.0:
        connection.settimeout(0.2)
        try:
            if connection.recv(100) == b"":
                break
        except TimeoutError:
            connection.sendall(b"\r\n")  # an empty line is no request
        except ConnectionError:
            break
    assert time.monotonic() - start < 3.0


@pytest.mark.parametrize(
    "endless",
    [
        HEAD + b"X: " + b"a" * 100_000,
        HEAD + b"X: a\r\n" * 20_000,
        b"GET /" + b"a" * 100_000,
        b"POST /v1/rankers/shop/rank HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ",
        b"POST /v1/rankers/shop/rank HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1;x=",
    ],
    ids=["one header", "many headers", "the path", "a trailer", "the extension of a chunk"],
)
def test_endless_headers_cost_no_memory(program, connect, endless):
    counted = refusals(program, "headers_too_large")
    connection = connect(program)
    before, sent = resident(program), 0
    try:
        connection.sendall(endless)
        while sent < 200_000_000:
            sent += connection.send(b"a" * 1_000_000)
    except OSError:
        pass
    answer = received(connection, 1.0)
    assert sent < 20_000_000
    assert resident(program) - before < 20_000_000
    assert not answer or status(answer) in (404, 413, 415, 431)
    assert refusals(program, "headers_too_large") == counted + 1


def test_headers_are_few_and_short(started, connect):
    program = started(max_headers=10, max_header_bytes=1_000)
    assert status(answered(connect(program, HEAD + b"X: 1\r\n" * 9 + b"\r\n"))) == 200
    for many in (b"X: 1\r\n" * 10, b"X: " + b"1" * 1_000 + b"\r\n"):
        answer = received(connect(program, HEAD + many + b"\r\n"))
        assert status(answer) == 431
        assert b"at most 10 headers of 1000 bytes in all" in answer


def test_a_body_that_nobody_reads_has_a_deadline(started, connect):
    """It was refused before its body, for want of a token; what is left of it may not come for ever."""
    _, line = new_token("shop", ["rank"])
    program = started(tokens=line, request_seconds=0.5)
    head = b"POST /v1/rankers/shop/rank HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
    connection = connect(program, head)
    assert status(answered(connection)) == 401
    start = time.monotonic()
    try:
        while time.monotonic() - start < 15.0:
            connection.sendall(b"a")
            time.sleep(0.1)
    except OSError:
        pass
    assert time.monotonic() - start < 8.0


def test_a_client_that_does_not_read_is_left(started, connect):
    program = started(answer_seconds=1.0, idle_seconds=1.0)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with connection:
        connection.settimeout(1.0)
        connection.connect(("127.0.0.1", program.port))
        start = time.monotonic()
        gone = False
        while time.monotonic() - start < 20.0 and not gone:
            try:
                connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 8)
            except TimeoutError:
                pass
            except OSError:
                gone = True
            time.sleep(0.05)
    assert gone
    assert refusals(program, "slow_client") >= 1


def test_trailers_are_no_headers(started, connect):
    token, line = new_token("shop", ["admin"])
    program = started(tokens=line)
    head = b"POST /v1/rankers/shop/versions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = answered(connect(program, head + b"0\r\nAuthorization: Bearer " + token.encode() + b"\r\n\r\n"))
    assert status(answer) == 401


def test_requests_that_do_not_wait_for_answers(program, connect):
    connection = connect(program, HEALTH * 10)
    got = b""
    while got.count(b"HTTP/1.1 200") < 10:
        got += connection.recv(65536)
    many = connect(program, HEALTH * 5_000)
    assert received(many).count(b"HTTP/1.1 200") < 100
    assert refusals(program, "malformed_http") == 1


def test_what_is_wrong_in_a_body_is_said(program, connect):
    head = b"POST /v1/rankers/shop/rank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    answer = received(connect(program, head + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n"))
    assert (status(answer), b"malformed_http" in answer) == (400, True)


def test_a_request_in_the_body_of_another_is_no_request(started, connect):
    _, line = new_token("shop", ["admin"])
    program = started(tokens=line)
    hidden = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = b"POST /v1/rankers/shop/rank HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n" % len(hidden)
    for pause in (0.0, 0.2):  # refused before the body is there
        connection = connect(program, head + b"\r\n")
        time.sleep(pause)
        connection.sendall(hidden)
        assert received(connection, 1.0).count(b"content-length") == 1
    for how in (b"Transfer-Encoding: chunked\r\n", b"Content-Length: 0\r\n", b"Transfer-Encoding: xchunked\r\n"):
        answer = received(connect(program, head + how + b"\r\n" + hidden))
        assert answer == b"" or status(answer) == 400
        assert answer.count(b"content-length") <= 1


def test_bodies_that_arrive_together_have_a_limit(started, connect):
    program = started(max_body=1_000_000, max_arriving=3_000_000)
    with Client(program.url) as client:
        client.create("shop", ["a"])
    head = b"POST /v1/rankers/shop/rank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for _ in range(3):
        connect(program, head + b"Content-Length: 1000000\r\n\r\n ")
    time.sleep(0.2)
    assert b"too_many_bodies" in received(connect(program, head + b"Content-Length: 1000000\r\n\r\n "))
    assert b"too_many_bodies" in received(connect(program, head + b"Transfer-Encoding: chunked\r\n\r\n"))
    assert status(answered(connect(program, HEALTH))) == 200
