"""Nobody where they do not belong: tokens, scopes, hosts, limits; bad input is refused and nothing leaks."""

import gzip
import json
import logging
from time import monotonic

import pytest

from ranktron import DataError
from ranktron.service.auth import Bucket, Tokens, new_token, read_tokens
from ranktron.service.config import Config, read_config
from ranktron.service.http.listening import is_loopback
from ranktron.service.http.server import run
from ranktron.service.service import RankingService

LIST = {"documents": [{"id": "a", "features": [1, 2, 3]}, {"id": "b", "features": [0, 0, 0]}]}
FEEDBACK = {"round": 0, "labels": {"a": 1}}
FULL = {**LIST, "labels": {"a": 1, "b": 0}}
ONE, TRIAL = "/v1/rankers/shop", "/v1/experiments/shop"
NEEDED = {
    ("PUT", "/v1/rankers/other"): ("admin", {"features": ["x"]}),
    ("POST", f"{ONE}/rank"): ("rank", LIST),
    ("POST", f"{ONE}/rank/batch"): ("rank", {"requests": [LIST]}),
    ("POST", f"{ONE}/feedback"): ("feedback", FEEDBACK),
    ("POST", f"{ONE}/feedback/batch"): ("feedback", {"requests": [FEEDBACK]}),
    ("POST", f"{ONE}/full"): ("feedback", FULL),
    ("POST", f"{ONE}/full/batch"): ("feedback", {"requests": [FULL]}),
    ("GET", "/v1/rankers"): ("rank", None),
    ("GET", ONE): ("rank", None),
    ("GET", f"{ONE}/dashboard"): ("rank", None),
    ("GET", f"{ONE}/explain/0"): ("rank", None),
    ("GET", f"{ONE}/model"): ("rank", None),
    ("GET", f"{ONE}/versions"): ("rank", None),
    ("POST", f"{ONE}/versions"): ("admin", None),
    ("DELETE", f"{ONE}/versions/1"): ("admin", None),
    ("DELETE", f"{ONE}/users/u1"): ("admin", None),
    ("POST", f"{ONE}/rollback"): ("admin", {"version": 0}),
    ("POST", f"{ONE}/model"): ("admin", None),
    ("PUT", TRIAL): ("admin", {"arms": [{"ranker": "shop"}], "method": "apprentice"}),
    ("POST", f"{TRIAL}/rank"): ("rank", {**LIST, "shown": ["b", "a"]}),
    ("POST", f"{TRIAL}/feedback"): ("feedback", FEEDBACK),
    ("POST", f"{TRIAL}/promote"): ("admin", None),
    ("GET", "/v1/experiments"): ("rank", None),
    ("GET", TRIAL): ("rank", None),
    ("DELETE", TRIAL): ("admin", None),
    ("POST", f"{ONE}/ingest"): ("feedback", {}),
    ("GET", "/v1/sources/clicks"): ("feedback", None),
    ("POST", "/v1/follow"): ("admin", None),
    ("POST", "/v1/follow/rounds"): ("admin", None),
    ("GET", "/metrics"): ("rank", None),
    ("DELETE", ONE): ("admin", None),
}
OPEN = {("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/"), ("GET", "/static/{file}"), ("GET", "/openapi.json")}


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def test_every_route_needs_its_scope_and_no_other(guarded):
    talk, tokens = guarded
    talk.ask("PUT", ONE, {"features": ["a", "b", "c"]}, **bearer(tokens["admin"]))
    for (method, path), (needed, body) in NEEDED.items():
        assert talk.ask(method, path, body, status=401) == "no_token"
        assert talk.ask(method, path, body, status=401, **bearer("rt_guess")) == "no_token"
        assert talk.ask(method, path, body, status=401, authorization=f"Basic {tokens[needed]}") == "no_token"
        for scope, token in tokens.items():
            if scope not in (needed, "admin"):
                assert talk.ask(method, path, body, status=403, **bearer(token)) == "wrong_scope"
    for (method, path), (needed, body) in NEEDED.items():
        for scope in dict.fromkeys((needed, "admin")):
            content = b"" if body is None else json.dumps(body).encode()
            answer = talk.request(method, path, content, content_type="application/json", **bearer(tokens[scope]))
            assert answer.status not in (401, 403), path


def test_the_table_above_is_complete(talk):
    paths = talk.ask("GET", "/openapi.json")["paths"]
    known = {
        (method, path.replace("shop", "{name}").replace("/0", "/{round}").replace("/1", "/{version}"))
        for method, path in NEEDED
    }
    known = {
        (method, path.replace("other", "{name}").replace("clicks", "{source}").replace("/u1", "/{user}"))
        for method, path in known
    } | OPEN
    assert {(method.upper(), path) for path, methods in paths.items() for method in methods} == known - {
        ("GET", "/openapi.json")
    }


def test_a_token_is_needed_before_anything_is_told(guarded):
    talk, _ = guarded
    for path in ("/v1/rankers/nobody", "/v1/rankers/nobody/dashboard"):
        assert talk.ask("GET", path, status=401) == "no_token"
    assert talk.ask("POST", f"{ONE}/rank", status=401, content=b"{") == "no_token"
    assert talk.ask("GET", "/healthz") == {"ready": True}
    assert talk.request("GET", "/").status == 200


def test_tokens_never_reach_a_log(guarded, caplog):
    talk, tokens = guarded
    caplog.set_level(logging.DEBUG)
    for token in tokens.values():
        talk.request("GET", "/v1/rankers", **bearer(token))
        talk.request("POST", f"{ONE}/rank", b"nonsense", **bearer(token))
    assert not [token for token in tokens.values() if token in caplog.text]


def test_tokens_are_hashed_and_refused_in_the_clear(tmp_path):
    token, line = new_token("shop", ["rank"])
    assert token not in line
    assert len(token) > 40
    with pytest.raises(DataError, match="line 1 of the tokens is not") as refused:
        Tokens([token])
    assert token not in str(refused.value)
    with pytest.raises(DataError, match="with scopes from rank,feedback,admin"):
        Tokens([line.replace(" rank ", " everything ")])
    file = tmp_path / "tokens"
    other, second = new_token("admin", ["admin"])
    file.write_text(f"# who may do what\n{line}  # the shop\n\n")
    tokens = read_tokens(file, {"RANKTRON_TOKENS": second})
    assert (tokens.holder(token).name, tokens.holder(other).name) == ("shop", "admin")
    assert len(read_tokens(None, {})) == 0
    with pytest.raises(DataError, match="cannot read the tokens"):
        read_tokens(tmp_path / "nowhere", {})


def test_beyond_this_machine_only_with_tokens(tmp_path, monkeypatch):
    monkeypatch.delenv("RANKTRON_TOKENS", raising=False)
    for host in ("0.0.0.0", "::", "192.168.1.1", "example.org"):
        with pytest.raises(DataError, match="without tokens would admit anyone"):
            run(str(tmp_path), None, host, 0)
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost")] == [True] * 3


def test_without_tokens_only_this_machine_is_answered(talk):
    for host in ("localhost", "127.0.0.1", "localhost:8080", "127.0.0.1:1", "[::1]", "[::1]:8080", "LOCALHOST:1"):
        assert talk.ask("GET", "/v1/rankers", host=host) == {"rankers": [], "set_aside": []}
    for host in (
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "127.0.0.1.evil.example:80",
        "",
        "localhost:1, a",
    ):
        assert talk.ask("GET", "/v1/rankers", status=403, host=host) == "bad_host"


def test_a_form_on_another_page_cannot_write(talk):
    talk.make()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        code = talk.ask("POST", f"{ONE}/rank", status=415, content=b"{}", content_type=kind)
        assert code == "wrong_content_type"
    assert talk.ask("POST", f"{ONE}/rank", LIST, content_type="Application/JSON; charset=utf-8")


def test_a_compressed_body_is_refused_by_name(talk):
    talk.make()
    for content in (gzip.compress(json.dumps(LIST).encode()), json.dumps(LIST).encode()):
        kind = {"content_type": "application/json", "content_encoding": "gzip"}
        assert talk.ask("POST", f"{ONE}/rank", status=415, content=content, **kind) == "compressed"
    assert talk.ask("POST", f"{ONE}/rank", LIST, content_encoding="Identity")["round"] == 0


CHANGES = [
    ("POST", f"{ONE}/versions", None),
    ("DELETE", f"{ONE}/versions/1", None),
    ("DELETE", ONE, None),
    ("POST", f"{ONE}/rank", LIST),
    ("POST", f"{ONE}/rollback", {"version": 0}),
    ("PUT", "/v1/rankers/other", {"features": ["x"]}),
]


@pytest.mark.parametrize(("method", "path", "body"), CHANGES, ids=[path for _, path, _ in CHANGES])
def test_a_page_from_elsewhere_changes_nothing(talk, method, path, body):
    talk.make()
    for said in (
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:9999", "host": "localhost:8080"},  # the same site, and yet another program
        {"origin": "https://localhost.evil.example", "sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"origin": "http://localhost", "sec_fetch_site": "cross-site"},
    ):
        assert talk.ask(method, path, body, status=403, **said) == "foreign_page"
    assert talk.ask("GET", ONE)["rounds"] == 0
    assert talk.ask("GET", f"{ONE}/versions") == {"version": 0, "kept": []}


def test_the_dashboard_itself_and_pages_of_configured_origins_may_change(tmp_path, serving):
    with serving(tmp_path, origins=["https://a.example"]) as talk:
        talk.make()
        for said in (
            {"origin": "http://localhost:8080", "host": "localhost:8080", "sec_fetch_site": "same-origin"},
            {"origin": "http://LOCALHOST:8080", "host": "localhost:8080"},
            {"origin": "https://a.example", "sec_fetch_site": "cross-site"},
            {},
        ):
            assert talk.ask("POST", f"{ONE}/rank", LIST, **said)["version"] == 0


def test_a_header_that_decides_something_is_there_once(talk):
    async def twice(name):
        got = []
        headers = [(b"host", b"localhost"), (b"x", b"1"), (b"x", b"2"), *[(name, b"localhost")] * 2]
        scope = {"type": "http", "method": "GET", "path": "/v1/rankers", "query_string": b"", "headers": headers}

        async def send(message):
            got.append(message)

        await talk.app(scope, None, send)
        return got[0]["status"]

    for name in (b"host", b"authorization", b"origin", b"content-type", b"content-length"):
        assert talk.runner.run(twice(name)) == 400
    assert talk.runner.run(twice(b"y")) == 200


def test_a_changed_file_of_tokens_is_read_again(tmp_path, serving, monkeypatch, caplog):
    file = tmp_path / "tokens"
    (first, one), (second, two) = new_token("one", ["rank"]), new_token("two", ["rank"])
    file.write_text(f"{one}\n{two}\n")
    tokens = read_tokens(file, {})
    now = [monotonic()]
    monkeypatch.setattr("ranktron.service.auth.monotonic", lambda: now[0])
    with serving(tmp_path / "state", tokens) as talk:

        def statuses():
            now[0] += 1.1
            return [talk.request("GET", "/v1/rankers", **bearer(token)).status for token in (first, second)]

        assert statuses() == [200, 200]
        file.write_text(two)
        assert statuses() == [401, 200]
        file.write_text(f"nonsense\n{one}\n")  # a line that is wrong does not keep another from being revoked
        assert statuses() == [200, 401]
        assert "line 1 of the tokens is not" in caplog.text
        file.unlink()
        assert statuses() == [200, 401]
        assert "the previous tokens stay valid" in caplog.text
        file.write_text("# nobody\n")
        assert statuses() == [401, 401]
        assert talk.request("GET", "/v1/rankers").status == 401  # and not: authentication off


def test_no_page_from_elsewhere_may_read_unless_configured(talk, serving, tmp_path):
    assert "access-control-allow-origin" not in talk.request("GET", "/v1/rankers", origin="https://a.example").headers
    assert talk.request("OPTIONS", ONE, origin="https://a.example").status == 405
    with serving(tmp_path / "other", origins=["https://a.example"]) as other:
        allowed = other.request("GET", "/v1/rankers", origin="https://a.example").headers
        assert allowed["access-control-allow-origin"] == "https://a.example"
        assert (
            "access-control-allow-origin" not in other.request("GET", "/v1/rankers", origin="https://b.example").headers
        )
        preflight = other.request("OPTIONS", ONE, origin="https://a.example", access_control_request_method="PUT")
        assert preflight.status == 204
        assert "PUT" in preflight.headers["access-control-allow-methods"]
        assert "authorization" in preflight.headers["access-control-allow-headers"]
        assert other.request("OPTIONS", ONE, origin="https://b.example").status == 405


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", ONE, 404),
        ("PATCH", ONE, 405),
        ("POST", f"{ONE}/rank", 415),
        ("GET", "/readyz", 503),
    ],
)
def test_a_page_that_may_call_can_read_why_it_was_refused(tmp_path, serving, method, path, status):
    with serving(tmp_path, origins=["https://a.example"]) as talk:
        talk.service.journal.ready = status != 503
        refused = talk.request(method, path, origin="https://a.example")
        assert (refused.status, refused.headers["access-control-allow-origin"]) == (status, "https://a.example")
        assert refused.headers["vary"] == "Origin"
        assert "access-control-allow-origin" not in talk.request(method, path, origin="https://b.example").headers


def test_a_page_can_read_that_it_lacks_a_token_or_that_the_server_failed(tmp_path, serving, monkeypatch, caplog):
    _, line = new_token("one", ["rank"])
    with serving(tmp_path / "one", Tokens([line]), origins=["https://a.example"]) as talk:
        refused = talk.request("GET", "/v1/rankers", origin="https://a.example")
        assert refused.status == 401
        assert refused.headers["access-control-allow-origin"] == "https://a.example"
        assert refused.headers["www-authenticate"] == "Bearer"
    with serving(tmp_path / "two", origins=["https://a.example"]) as talk:
        monkeypatch.setattr(type(talk.service), "live", lambda _service, _name: 1 / 0)
        failed = talk.request("GET", f"{ONE}/versions", origin="https://a.example")
        assert (failed.status, failed.headers["access-control-allow-origin"]) == (500, "https://a.example")
        assert "ZeroDivisionError" in caplog.text


def test_rates_are_limited_for_each_token(tmp_path, serving):
    made = [new_token(name, ["rank"]) for name in ("one", "two")]
    with serving(tmp_path, Tokens([line for _, line in made]), rate=3.0) as talk:
        statuses = [talk.request("GET", "/v1/rankers", **bearer(made[0][0])).status for _ in range(10)]
        assert statuses[:6] == [200] * 6
        assert statuses[-1] == 429
        assert talk.request("GET", "/v1/rankers", **bearer(made[1][0])).status == 200
        assert talk.request("GET", "/healthz").status == 200


def test_a_bucket_fills_again():
    now = [0.0]
    bucket = Bucket(2.0, lambda: now[0])
    assert [bucket.take() for _ in range(5)] == [True] * 4 + [False]
    now[0] = 0.5
    assert (bucket.take(), bucket.take()) == (True, False)
    now[0] = 100.0
    assert [bucket.take() for _ in range(5)] == [True] * 4 + [False]


def test_sizes_are_limited(tmp_path, serving):
    limits = {"max_documents": 3, "max_features": 4, "max_body": 2000, "max_k": 5}
    with serving(tmp_path, **limits) as talk:
        features = [f"f{j}" for j in range(5)]
        assert talk.ask("PUT", ONE, {"features": features}, status=413) == "too_many_features"
        assert talk.ask("PUT", ONE, {"features": ["a"], "parameters": {"k": 6}}, status=422) == "bad_parameters"
        talk.make()
        many = {"documents": [{"id": f"d{i}", "features": [1, 2, 3]} for i in range(4)]}
        assert talk.ask("POST", f"{ONE}/rank", many, status=413) == "too_many_documents"
        assert talk.ask("POST", f"{ONE}/rank", {**LIST, "query": "q" * 3000}, status=413) == "too_large"
        assert talk.ask("POST", f"{ONE}/rank", {**LIST, "query": "q" * 1001}, status=422) == "invalid"
        long = {"documents": [{"id": "a" * 201, "features": [1, 2, 3]}]}
        assert talk.ask("POST", f"{ONE}/rank", long, status=422) == "invalid"
        assert talk.ask("PUT", "/v1/rankers/a", {"features": ["f" * 201]}, status=422) == "invalid"


MALFORMED = [
    b"",
    b"{",
    b"null x",
    b'{"documents": NaN}',
    b'{"documents": [{"id": "a", "features": [NaN, 1, 2]}]}',
    b'{"documents": [{"id": "a", "features": [Infinity, 1, 2]}]}',
    b'{"documents": [{"id": "a", "features": [01, 1, 2]}]}',
    b'{"documents": [{"id": "a", "features": [1, 2, 3,]}]}',
    b"{'documents': []}",
    b"\xff\xfe",
    b'{"documents": [{"id": "\xff", "features": [1, 2, 3]}]}',
    b"[" * 100_000,
    b'{"documents": [{"id": "a", "features": ' + b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"documents": [{"id": "a", "features": ' + b"[" * 50_000 + b"]" * 50_000 + b"}]}",
]


@pytest.mark.parametrize("content", MALFORMED, ids=lambda content: repr(content[:50]))
def test_what_is_not_strict_json_is_refused(talk, content):
    talk.make()
    answer = talk.request("POST", f"{ONE}/rank", content, content_type="application/json")
    assert answer.status in (400, 422), answer
    assert len(answer.content) < 1000
    assert talk.ask("GET", ONE)["rounds"] == 0


def test_numbers_beyond_all_bounds_are_refused(talk):
    talk.make()
    for number in ("1e39", "-1e39", "1e999", "1" * 400, "1e99999999999"):
        content = f'{{"documents": [{{"id": "a", "features": [{number}, 1, 2]}}]}}'.encode()
        answer = talk.request("POST", f"{ONE}/rank", content, content_type="application/json")
        assert answer.status in (400, 422), (number, answer)
    shown = talk.rank([[1e38, -1e38, 1e38], [1, 1, 1]])
    for number in ("1e999", "-1", "1e400"):
        content = f'{{"round": {shown["round"]}, "labels": {{"d0": {number}}}}}'.encode()
        assert talk.request("POST", f"{ONE}/feedback", content, content_type="application/json").status in (400, 422)
    for number in ("-1", "1.5", "1e30", "99999999999999999999", '"0"'):
        content = f'{{"round": {number}, "labels": {{"d0": 1}}}}'.encode()
        assert talk.request("POST", f"{ONE}/feedback", content, content_type="application/json").status in (400, 422)


def test_weights_that_would_overflow_stay_as_they_were(talk):
    talk.make(algorithm="listnet", parameters={"eta": 1e300})
    for _ in range(3):
        shown = talk.rank([[3e38, 3e38, 3e38], [-3e38, 0, 1]])
        told = talk.answer(shown)
    assert not told["learned"]
    assert [abs(weight) < 1e308 for weight in talk.weights().tolist()] == [True] * 3
    assert talk.answer(shown) == told


def test_nothing_is_told_of_what_went_wrong_inside(talk, monkeypatch, caplog):
    def broken(name):
        raise KeyError("secret")

    talk.make()
    monkeypatch.setattr(talk.service.live("shop"), "rank", broken)
    answer = talk.request("POST", f"{ONE}/rank", json.dumps(LIST).encode(), content_type="application/json")
    assert answer.status == 500
    assert b"secret" not in answer.content
    assert b"Traceback" not in answer.content
    assert "secret" in caplog.text  # the server's own log has it


def test_the_configuration_is_checked(tmp_path):
    file = tmp_path / "ranktron.toml"
    file.write_text("max_open = 5\nrate = 2.5\n")
    assert read_config(file) == Config(max_open=5, rate=2.5)
    for text, complaint in {
        "max_open = 0": "max_open",
        "max_opened = 3": "max_opened",
        "rate = 'fast'": "rate",
        "rate =": "Invalid value",
    }.items():
        file.write_text(text)
        with pytest.raises(DataError, match=complaint):
            read_config(file)
    with pytest.raises(DataError, match="cannot read"):
        read_config(tmp_path / "nowhere.toml")


def test_too_many_waiting(tmp_path, serving, monkeypatch):
    with serving(tmp_path, max_waiting=1) as talk:
        talk.make()
        shown = talk.rank([[1, 2, 3], [0, 0, 0]])
        monkeypatch.setattr(type(talk.service.journal), "__len__", lambda self: 1)
        assert talk.tell(shown["round"], {"d0": 1}, status=503) == "busy"


def test_a_service_is_closed_if_it_cannot_be_read(tmp_path):
    service = RankingService(tmp_path)
    service.journal.close()
    (tmp_path / "log.sqlite").write_bytes(b"x" * 10_000)
    for ending in ("-wal", "-shm"):
        (tmp_path / f"log.sqlite{ending}").unlink(missing_ok=True)
    for _ in range(2):  # the lock was let go the first time
        with pytest.raises(DataError, match="is damaged"):
            RankingService(tmp_path)
