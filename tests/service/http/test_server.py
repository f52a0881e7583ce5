"""The program itself: `ranktron serve` in a process of its own, its client, and what arrives through a bare socket."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from itertools import takewhile
from threading import Thread

import pytest

from ranktron import Client, DataError, ServiceError
from ranktron.data.synthetic import Separable
from ranktron.service.auth import new_token
from ranktron.service.http.listening import open_socket
from ranktron.store.journal.tables import read_rankers
from ranktron.training.fit import Schedule, TrainingPlan, train
from ranktron.training.model import Model


@pytest.fixture(scope="module")
def program(tmp_path_factory, Program):
    folder = tmp_path_factory.mktemp("state")
    config = folder / "ranktron.toml"
    config.write_text("request_seconds = 1.0\nmax_body = 100_000\n")
    with Program(folder / "state", "--config", str(config)) as program:
        with Client(program.url) as client:
            client.create("shop", ["a", "b", "c"])
        yield program
        assert program.process.poll() is None  # nothing that was sent has brought it down


HEAD = b"POST /v1/rankers/shop/rank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def code(answer):
    return json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"]


def test_the_client(program):
    with Client(program.url) as client:
        assert client.create("demo", ["x", "y"], "topk", {"k": 2})["k"] == 2
        assert "demo" in [ranker["name"] for ranker in client.rankers()]
        shown = client.rank("demo", {"a": [1.0, 2.0], "b": {"x": 0.5, "y": 3.0}}, query="chairs")
        first = shown["ranking"][0]["id"]
        told = client.feedback("demo", shown["round"], {first: 1})
        assert told == client.feedback("demo", shown["round"], {first: 1}) == {"learned": True, "version": 1}
        assert client.explain("demo", shown["round"])["labels"] == {first: 1.0}
        assert client.dashboard("demo")["version"] == 1
        model = client.model("demo")
        assert Model.from_bytes(model).kind == "topk"
        assert client.keep("demo")["kept"] == [1]
        client.set_model("demo", model)
        assert client.rollback("demo", 1)["version"] == 3
        assert client.versions("demo")["version"] == 3
        client.create("all", ["x"], "hinge")
        assert client.full("all", {"a": [1.0], "b": [3.0]}, {"a": 0, "b": 1})["learned"]
        client.delete("demo")
        with pytest.raises(ServiceError, match="no ranker 'demo'") as refused:
            client.rank("demo", {"a": [1.0, 2.0]})
        assert (refused.value.status, refused.value.code) == (404, "unknown_ranker")
        client.close()
        assert client.rankers()  # it opens the connection again


def test_a_client_without_a_service():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(ServiceError, match=r"no answer from the service at 127\.0\.0\.1:"):
            Client(f"http://127.0.0.1:{unused.getsockname()[1]}").rankers()


def test_a_client_sends_only_finite_numbers():
    with pytest.raises(DataError, match="a NaN or an infinite number cannot be sent"):
        Client().rank("shop", {"a": [float("nan")]})


def test_a_client_goes_on_after_a_restart(tmp_path, Program):
    with Program(tmp_path) as program:
        clients = [Client(program.url) for _ in range(4)]
        clients[0].create("shop", ["x"])
        shown = clients[0].rank("shop", {"a": [1.0], "b": [3.0]})
        for client in clients:
            client.rankers()
        program.stop()
    with Program(tmp_path, "--port", str(program.port)):
        rankers, rank, feedback, create = clients
        assert len(rankers.rankers()) == 1
        assert rank.rank("shop", {"a": [1.0], "b": [3.0]})["round"] > shown["round"]
        assert feedback.feedback("shop", shown["round"], {"a": 1})["version"] == 1
        assert create.create("shop", ["x"])["features"] == ["x"]
        for client in clients:
            client.close()


def test_what_would_be_learnt_twice_is_sent_once():
    """A service that answers each connection's first request, and hangs up when it has read the second."""
    heard = []

    def serve(listening):
        with suppress(OSError):  # the test has ended, and closed the socket
            while True:
                connection, _ = listening.accept()
                with connection, connection.makefile("rb") as stream:
                    for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", b""):
                        head = b"".join(takewhile(bytes.strip, stream))
                        if not head:
                            break
                        stream.read(int(re.search(rb"Content-Length: (\d+)|$", head)[1] or 0))
                        heard.append(head.split()[1].decode())
                        connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        Thread(target=serve, args=[listening], daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        for repeated, ask in {
            2: lambda client: client.rank("shop", {"a": [1.0]}),
            1: lambda client: client.full("shop", {"a": [1.0]}, {"a": 1}),
        }.items():
            with Client(url) as client:
                client.keep("shop")
                heard.clear()
                if repeated == 1:
                    with pytest.raises(ServiceError, match=r"no answer from the service at 127\.0\.0\.1:"):
                        ask(client)
                else:
                    assert ask(client) == {}
            assert len(heard) == repeated


def test_a_body_that_is_too_large(program):
    assert code(program.raw(HEAD + b"Content-Length: 100001\r\n\r\n")) == "too_large"
    assert code(program.raw(HEAD + b"Content-Length: 99999999999999\r\n\r\n")) == "too_large"
    chunk = b"%x\r\n%s\r\n" % (30_000, b" " * 30_000)
    assert code(program.raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", chunk, chunk, chunk, chunk)) == "too_large"


def test_a_body_in_chunks(program):
    body = json.dumps({"documents": [{"id": "a", "features": [1, 2, 3]}]}).encode()
    chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:10], body[10:11], body[11:])]
    answer = program.raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *chunks, b"0\r\n\r\n", pause=0.02)
    assert answer.startswith(b"HTTP/1.1 200")


def test_a_body_that_never_arrives(program):
    start = time.monotonic()
    assert code(program.raw(HEAD + b"Content-Length: 100\r\n\r\n{")) == "too_slow"
    assert time.monotonic() - start < 10.0


def test_a_client_that_leaves_in_the_middle(program):
    for length in (1, 50):
        with socket.create_connection(("127.0.0.1", program.port)) as connection:
            connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n" + b"{" * length)
    with Client(program.url) as client:
        assert client.rankers()


@pytest.mark.parametrize(
    "content",
    [
        b"\x00\xff\x00",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello",
        HEAD + b"Content-Length: 4\r\n\r\nnull",
        HEAD + b"Content-Length: 3\r\n\r\nNaN",
        HEAD + b"Content-Length: 50000\r\n\r\n" + b"[" * 50_000,
        HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nnull",
    ],
    ids=range(11),
)
def test_nonsense_through_a_socket_is_never_an_internal_error(program, content):
    answer = program.raw(content)
    assert not answer.startswith(b"HTTP/1.1 5"), answer
    with Client(program.url) as client:
        assert client.rankers()


def test_it_runs_from_one_command_and_ends_in_order(tmp_path, Program):
    with Program(tmp_path / "new" / "folder") as program:
        assert "Serving 0 rankers from" in program.line
        with Client(program.url) as client:
            client.create("shop", ["a"])
            shown = client.rank("shop", {"x": [1.0], "y": [0.0]})
            client.feedback("shop", shown["round"], {"x": 1})
            waiting = client.rank("shop", {"x": [1.0], "y": [0.0]})
        again = [sys.executable, "-m", "ranktron", "serve", "--dir", str(tmp_path / "new" / "folder"), "--port", "0"]
        second = subprocess.run(again, capture_output=True, text=True, check=False)
        assert second.returncode == 1
        assert second.stderr.count("\n") == 1
        assert f"in use by process {program.process.pid}" in second.stderr
        out, err = program.stop()
        assert program.process.returncode == 0, err
        assert (out.count("\n"), err) == (1, "")
        assert "All acknowledged feedback is saved in" in out
    with Program(tmp_path / "new" / "folder") as program, Client(program.url) as client:
        assert "Serving 1 ranker from" in program.line
        assert client.versions("shop") == {"version": 1, "kept": [1]}
        assert client.feedback("shop", waiting["round"], {"y": 0})["version"] == 2


def test_a_model_file_is_served(tmp_path, Program):
    lists = Separable(documents=5, features=3).rounds(9)
    train(TrainingPlan("ranksvm"), lists).model.save(tmp_path / "shop.model")
    train(TrainingPlan("hinge"), lists).model.save(tmp_path / "learning.model")
    models = [text for name in ("shop", "learning") for text in ("--model", str(tmp_path / f"{name}.model"))]
    for attempt in range(2):
        with Program(tmp_path / "state", *models) as program, Client(program.url) as client:
            assert "Serving 2 rankers from" in program.line
            assert client.rank("shop", {"a": [1.0, 2.0, 3.0]})["version"] == 1
            documents, labels = {"a": [1.0, 2.0, 3.0], "b": [0.0, 0.0, 0.0]}, {"a": 0, "b": 1}
            assert client.full("learning", documents, labels)["version"] == attempt + 2
    other = Model("hinge", {}, train(TrainingPlan("hinge", schedule=Schedule(seed=1)), lists).model.state, 3)
    other.save(tmp_path / "shop.model")
    (tmp_path / "a b.model").write_bytes(other.to_bytes())
    (tmp_path / "text.model").write_text("nonsense")
    for name, complaint in {
        "shop": "was not made from this model",
        "a b": "a ranker's name has",
        "text": "not a",
    }.items():
        command = [sys.executable, "-m", "ranktron", "serve", "--dir", str(tmp_path / "state"), "--port", "0"]
        done = subprocess.run(
            [*command, "--model", str(tmp_path / f"{name}.model")], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.count("\n") == 1
        assert complaint in done.stderr


FULL_DISK = """
import sqlite3
from ranktron.cli import main
from ranktron.store.journal.sqlite_journal import SQLiteJournal

def refuse(journal, write):
    raise sqlite3.OperationalError("database or disk is full")

SQLiteJournal._write_one = refuse
main()
"""


def test_a_start_on_a_full_disk_says_so_and_gives_no_address(tmp_path, Program):
    with Program(tmp_path / "state") as program, Client(program.url) as client:
        client.create("shop", ["a"])
    command = [sys.executable, "-c", FULL_DISK, "serve", "--dir", str(tmp_path / "state"), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "database or disk is full" in done.stderr


def test_it_says_at_once_which_rankers_are_set_aside(tmp_path, Program):
    with Program(tmp_path) as program, Client(program.url) as client:
        for name in ("shop", "other"):
            client.create(name, ["a"])
        client.close()
        program.stop()
    with closing(sqlite3.connect(tmp_path / "log.sqlite")) as connection, connection:
        read_rankers(connection)[0][0]._replace(definition=b"").write(connection)
    connection.close()
    with Program(tmp_path) as program:
        assert "Serving 1 ranker from" in program.line
        assert "1 set aside: shop (DecodeError: " in program.line
        with Client(program.url) as client:
            with pytest.raises(ServiceError, match=r"'shop' is set aside at version 0: .*DELETE") as refused:
                client.rank("shop", {"x": [1.0]})
            assert (refused.value.status, refused.value.code) == (409, "set_aside")
            assert client.rank("other", {"x": [1.0]})["round"] == 0
            client.delete("shop")
        _, err = program.stop()
        assert err.count("\n") == 1
        assert " ERROR ranker 'shop' is set aside at version 0: " in err


def test_tokens_come_from_the_environment_and_stay_out_of_the_log(tmp_path, Program):
    token, line = new_token("shop", ["admin"])
    with Program(tmp_path, RANKTRON_TOKENS=line) as program:
        with Client(program.url) as client, pytest.raises(ServiceError, match="valid token"):
            client.rankers()
        with Client(program.url, token=token) as client:
            client.create("shop", ["a"])
        program.raw(f"GET /?token={token} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        out, err = program.stop(signal.SIGINT)
        assert token not in program.line + out + err


def test_a_revoked_token_is_refused_at_once_after_sighup(tmp_path, Program):
    (kept, first), (revoked, second) = new_token("kept", ["admin"]), new_token("revoked", ["admin"])
    (tmp_path / "tokens").write_text(f"{first}\n{second}\n")
    (tmp_path / "ranktron.toml").write_text('tokens = "tokens"\n')
    with Program(tmp_path / "state", "--config", str(tmp_path / "ranktron.toml")) as program:
        with Client(program.url, token=revoked) as client:
            client.create("shop", ["a"])
            client.keep("shop")
            (tmp_path / "tokens").write_text(f"{first}\n")
            program.process.send_signal(signal.SIGHUP)
            time.sleep(0.5)
            with pytest.raises(ServiceError, match="valid token"):
                client.rankers()
        with Client(program.url, token=kept) as client:
            assert client.rankers()
        _, err = program.stop()
        assert program.process.returncode == 0
        assert ": 1 accepted" in err
    for path in [tmp_path / "state", *(tmp_path / "state").rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path
    (tmp_path / "state").chmod(0o755)
    (tmp_path / "state" / "log.sqlite").chmod(0o644)
    with Program(tmp_path / "state") as program:
        _, err = program.stop()
    assert err == f"Other users of this machine can read {tmp_path / 'state'}: chmod -R go= {tmp_path / 'state'}\n"


def test_a_token_is_made_by_the_command_line():
    command = [sys.executable, "-m", "ranktron", "token", "shop", "--scope", "rank"]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"shop rank sha256:[0-9a-f]{64}\n", made.stdout)
    assert "rt_" in made.stderr


def test_faults_of_the_command_line(tmp_path):
    (tmp_path / "bad.toml").write_text("speed = 3")
    for options, complaint in {
        ("--host", "0.0.0.0"): "without tokens would admit anyone",
        ("--config", str(tmp_path / "bad.toml")): "unknown field `speed`",
        ("--host", "127.0.0.1", "--port", "1"): "cannot listen at 127.0.0.1, port 1",
    }.items():
        if "1" in options and os.geteuid() == 0:
            continue  # root may
        command = [sys.executable, "-m", "ranktron", "serve", "--dir", str(tmp_path / "state"), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert complaint in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_port_in_use_leads_to_the_option():
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        with pytest.raises(DataError, match="in use: choose another with --port"):
            open_socket("127.0.0.1", used.getsockname()[1])


def test_a_service_that_does_not_run_is_named():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(ServiceError, match=rf"at {re.escape(where)}: .* is `ranktron serve` running there\?"):
            Client(f"http://{where}").rankers()
