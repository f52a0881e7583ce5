"""Logs: JSON with times and ids of requests, and answers that say which request they are of."""

import io
import json
import logging
from datetime import datetime

import numpy as np
import pytest

from ranktron import Client
from ranktron.service.http.logs import write_logs


@pytest.fixture
def lines():
    logger, requests = logging.getLogger("ranktron"), logging.getLogger("ranktron.requests")
    before, level = logger.handlers, requests.level
    stream = io.StringIO()

    def read(form, every_request):
        write_logs(form, every_request, stream)
        return lambda: [line for line in stream.getvalue().splitlines() if line]

    yield read
    logger.handlers, logger.propagate = before, True
    requests.setLevel(level)


def test_a_request_is_a_line_of_json(talk, lines):
    read = lines("json", True)
    talk.make()
    answer = talk.request("GET", "/v1/rankers/shop", x_request_id="shop-7.a_b")
    assert answer.headers["x-request-id"] == "shop-7.a_b"
    talk.rank(np.eye(3), query="what the user asked for")
    made, given, ranked = [json.loads(line) for line in read()]
    assert (given["request"], given["method"], given["path"], given["status"]) == (
        "shop-7.a_b",
        "GET",
        "/v1/rankers/shop",
        200,
    )
    assert given["seconds"] > 0.0
    assert abs(datetime.fromisoformat(given["time"]).timestamp() - datetime.now().timestamp()) < 60.0
    assert len({made["request"], ranked["request"], "shop-7.a_b"}) == 3
    assert not any("user asked" in line for line in read())
    assert ranked.keys() == {"time", "level", "logger", "message", "request", "method", "path", "status", "seconds"}


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, 'quo"te', "line\nbreak"])
def test_an_id_that_is_none_is_replaced(talk, given):
    made = talk.request("GET", "/healthz", x_request_id=given).headers["x-request-id"]
    assert made != given
    assert len(made) == 16


def test_refusals_and_missing_paths_have_an_id(talk):
    for path in ("/v1/rankers/none", "/nowhere"):
        assert talk.request("GET", path, x_request_id="7").headers["x-request-id"] == "7"


def test_only_failures_are_logged_unless_asked_for(talk, lines, monkeypatch):
    read = lines("json", False)
    talk.make()
    talk.ask("GET", "/v1/rankers/none", status=404)
    assert read() == []
    monkeypatch.setattr(talk.service.journal, "ready", False)
    talk.ask("GET", "/readyz", status=503)
    failed = json.loads(read()[0])
    assert (failed["level"], failed["status"], failed["logger"]) == ("error", 503, "ranktron.requests")


def test_text_lines_name_the_request_too(talk, lines):
    read = lines("text", True)
    talk.request("GET", "/healthz", x_request_id="seven")
    assert read()[0].endswith("INFO GET '/healthz': 200 (request seven)")


def test_an_exception_is_one_line(lines):
    read = lines("json", False)
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logging.getLogger("ranktron.service").exception("failed")
    assert json.loads(read()[0])["exception"].endswith("ValueError: two\nlines")


def test_a_server_takes_its_settings_from_the_environment(Program, tmp_path):
    environment = {"RANKTRON_LOG_FORMAT": "json", "RANKTRON_LOG_REQUESTS": "1", "RANKTRON_MAX_DOCUMENTS": "1"}
    program = Program(tmp_path, **environment)
    with Client(program.url, timeout=60) as client:
        client.create("shop", ["a"])
        with pytest.raises(Exception, match="2 documents; at most 1"):
            client.rank("shop", {"x": [1.0], "y": [2.0]})
    _, errors = program.stop()
    lines = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
    assert [line["status"] for line in lines] == [200, 413]
