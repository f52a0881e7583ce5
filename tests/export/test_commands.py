"""`ranktron export` and `ranktron push`, the latter against a stand-in that notes method, path, headers and body."""

import base64
import json
import re
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ranktron.cli import main
from ranktron.export import pushing

SECRETS = (pushing.USER, pushing.PASSWORD, pushing.API_KEY)


@pytest.fixture
def run(capsys, tmp_path, monkeypatch, linear):
    """Runs a command in a folder with the model `my.model`: (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    for name in SECRETS:
        monkeypatch.delenv(name, raising=False)
    linear(scaling=("standard", (1.0, 2.0, 3.0), (1.0, 2.0, 3.0))).save("my.model")

    def run(*arguments):
        with pytest.raises(SystemExit) as exit:
            main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return exit.value.code, out, err

    return run


class StandIn:
    """An engine that answers what it is told to and remembers what it was asked."""

    def __init__(self):
        self.asked = []
        self.answers = {}
        self.delay = 0.0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self):
                length = int(self.headers.get("Content-Length") or 0)
                outer.asked.append((self.command, self.path, self.rfile.read(length), dict(self.headers)))
                time.sleep(outer.delay)
                place = (self.command, self.path.split("?")[0])
                status, body, *headers = outer.answers.get(place, (200, {"acknowledged": True}))
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                try:
                    self.send_response(status)
                    for key, value in headers:
                        self.send_header(key, value)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except ConnectionError:
                    pass  # whoever asked did not wait

            do_GET = do_PUT = do_POST = do_DELETE = answer

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def engine():
    stand_in = StandIn()
    yield stand_in
    stand_in.close()


def calls(engine):
    return [(method, path) for method, path, _, _ in engine.asked]


class TestExport:
    def test_a_file_and_what_to_know_of_it(self, run):
        code, out, err = run("export", "my.model", "--to", "elasticsearch", "-o", "m.json")
        assert code == 0
        assert "m.json: my for elasticsearch, checked on 64 queries drawn at random" in out
        assert "0 of 31,744 pairs swapped" in out
        assert "warning: scores can be negative" in err
        assert json.loads(Path("m.json").read_text())["model"]["name"] == "my"

    def test_standard_output_has_the_file_alone(self, run):
        code, out, err = run("export", "my.model", "--to", "solr", "--name", "x", "--store", "films")
        assert code == 0
        content = json.loads(out)
        assert (content["name"], content["store"]) == ("x", "films")
        assert err

    def test_one_json_object(self, run):
        code, out, err = run("export", "my.model", "--to", "vespa", "--normalizers", "fold", "--json", "-o", "p")
        summary = json.loads(out)
        assert (code, err) == (0, "")
        assert set(summary) == {"to", "name", "notes", "warnings", "check", "out"}
        assert summary["check"]["swapped"] == 0
        inline = json.loads(run("export", "my.model", "--to", "vespa", "--normalizers", "fold", "--json")[1])
        assert inline["content"] == Path("p").read_text()

    def test_the_engines_names_and_own_data(self, run):
        Path("names").write_text("one\ntwo\nthree\n")
        Path("data.txt").write_text("1 qid:a 1:1 2:2 3:3\n0 qid:a 1:2 2:1 3:0\n")
        code, out, _ = run("export", "my.model", "--to", "json", "--features", "names", "--data", "data.txt", "-o", "j")
        assert code == 0
        assert "checked on 1 queries of the data: 0 of 1 pairs" in out
        assert [f["name"] for f in json.loads(Path("j").read_text())["features"]] == ["one", "two", "three"]

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (("--to", "onnx"), 2, "name the file to write with -o"),
            (("--to", "lucene"), 2, "lucene"),
            ((), 2, "--to"),
            (("--to", "solr", "-o", "my.model"), 2, "overwritten"),
            (("--to", "solr", "--features", "my.model"), 1, "cannot read the names"),
            (("--to", "solr", "--average"), 1, "do not vote"),
            (("--to", "solr", "-o", "no/folder/m"), 1, "cannot be written"),
        ],
    )
    def test_errors_are_one_line(self, run, arguments, code, words):
        before = Path("my.model").read_bytes()
        found, out, err = run("export", "my.model", *arguments)
        assert (found, err.count("\n"), out) == (code, 1, "")
        assert words in err
        assert Path("my.model").read_bytes() == before

    def test_names_from_files(self, run):
        Path("my.model").rename("2026 model (new).bin")
        out = json.loads(run("export", "2026 model (new).bin", "--to", "vespa", "--json")[1])
        assert out["name"] == "ranker_2026_model_new"


class TestPush:
    ARGUMENTS = ("--to", "elasticsearch", "--featureset", "movies", "--version", "7")

    def test_elasticsearch_creates_then_clears_the_cache(self, run, engine):
        code, out, err = run("push", "my.model", *self.ARGUMENTS, "--url", engine.url + "/")
        assert code == 0, err
        assert calls(engine) == [("POST", "/_ltr/_featureset/movies/_createmodel"), ("POST", "/_ltr/_clearcache")]
        _, _, body, headers = engine.asked[0]
        sent = json.loads(body)
        run("export", "my.model", "--to", "elasticsearch", "--name", "my-7", "-o", "same.json")
        assert sent == json.loads(Path("same.json").read_text())
        assert sent["model"]["name"] == "my-7"
        assert headers["Content-Type"] == "application/json"
        assert "Authorization" not in headers
        assert engine.asked[1][2] == b""
        assert "Uploaded my-7" in out
        assert not any(method == "DELETE" for method, _ in calls(engine))  # old versions stay

    def test_a_store_of_its_own(self, run, engine):
        run("push", "my.model", "--to", "opensearch", "--featureset", "a b", "--store", "wiki/x", "--url", engine.url)
        assert calls(engine) == [
            ("POST", "/_ltr/wiki%2Fx/_featureset/a%20b/_createmodel"),
            ("POST", "/_ltr/wiki%2Fx/_clearcache"),
        ]

    def test_solr_stores_then_reloads(self, run, engine):
        code, _, err = run(
            "push", "my.model", "--to", "solr", "--collection", "films", "--store", "f", "--url", engine.url
        )
        assert code == 0, err
        assert calls(engine) == [
            ("PUT", "/films/schema/model-store"),
            ("GET", "/admin/collections?action=RELOAD&name=films"),
        ]
        model = json.loads(engine.asked[0][2])
        assert model["class"] == "org.apache.solr.ltr.model.LinearModel"
        assert model["store"] == "f"

    def test_solr_without_a_cloud_reloads_the_core(self, run, engine):
        engine.answers["GET", "/admin/collections"] = (400, {"error": {"msg": "not running in SolrCloud mode"}})
        code, out, err = run("push", "my.model", "--to", "solr", "--collection", "films", "--url", engine.url)
        assert code == 0, err
        assert calls(engine)[-1] == ("GET", "/admin/cores?action=RELOAD&core=films")
        assert "/admin/cores" in out
        engine.answers["GET", "/admin/cores"] = (400, {"error": {"msg": "No such core: films"}})
        code, _, err = run("push", "my.model", "--to", "solr", "--collection", "films", "--url", engine.url)
        assert code == 1
        assert "cannot reload the core" in err
        assert "completed: store the model" in err
        assert "No such core" in err

    def test_every_push_has_a_name_of_its_own(self, run, engine, monkeypatch):
        arguments = ("push", "my.model", "--to", "elasticsearch", "--featureset", "m", "--url", engine.url)
        for second in (0, 61):
            monkeypatch.setattr("ranktron.cli.push.time.gmtime", lambda second=second: time.struct_time(
                (2026, 1, 2, 3, second // 60, second % 60, 4, 2, 0)))  # fmt: skip
            assert run(*arguments)[0] == 0
        names = [json.loads(body)["model"]["name"] for _, path, body, _ in engine.asked if "_createmodel" in path]
        assert names == ["my-20260102-030000", "my-20260102-030101"]

    def test_a_dry_run_asks_nobody(self, run, engine):
        code, out, _ = run("push", "my.model", *self.ARGUMENTS, "--url", engine.url, "--dry-run")
        assert code == 0
        assert engine.asked == []
        assert f"POST {engine.url}/_ltr/_featureset/movies/_createmodel" in out
        assert '"name": "my-7"' in out
        summary = json.loads(run("push", "my.model", *self.ARGUMENTS, "--dry-run", "--json")[1])
        assert summary["dry_run"]
        assert [call["status"] for call in summary["calls"]] == [None, None]
        assert summary["calls"][0]["url"] == "http://localhost:9200/_ltr/_featureset/movies/_createmodel"
        assert summary["calls"][0]["body"]["model"]["name"] == "my-7"

    def test_one_json_object(self, run, engine):
        code, out, err = run("push", "my.model", *self.ARGUMENTS, "--url", engine.url, "--json")
        summary = json.loads(out)
        assert (code, err) == (0, "")
        assert [call["status"] for call in summary["calls"]] == [200, 200]
        assert summary["check"]["swapped"] == 0

    @pytest.mark.parametrize(
        ("variables", "header"),
        [
            ({pushing.USER: "alice-77", pushing.PASSWORD: "pässword"}, "Basic "),
            ({pushing.API_KEY: "abc=="}, "ApiKey abc=="),
        ],
    )
    def test_credentials_come_from_the_environment_and_go_nowhere_else(
        self, run, engine, monkeypatch, variables, header
    ):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        code, out, err = run("push", "my.model", *self.ARGUMENTS, "--url", engine.url)
        assert code == 0
        for _, _, _, headers in engine.asked:
            assert headers["Authorization"].startswith(header)
        if pushing.USER in variables:
            sent = base64.b64decode(engine.asked[0][3]["Authorization"].removeprefix("Basic "))
            assert sent.decode() == "alice-77:pässword"
        dry = run("push", "my.model", *self.ARGUMENTS, "--url", engine.url, "--dry-run")
        for value in variables.values():
            assert value not in out + err + dry[1] + dry[2]

    @pytest.mark.parametrize(
        ("variables", "words"),
        [
            ({pushing.USER: "me"}, "go together"),
            ({pushing.USER: "me", pushing.PASSWORD: "p", pushing.API_KEY: "k"}, "set one of them"),
            ({pushing.API_KEY: "k\nX-Evil: 1"}, "one line"),
            ({pushing.API_KEY: "schlüssel"}, "one line"),
        ],
    )
    def test_half_or_too_many_credentials(self, run, engine, monkeypatch, variables, words):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        code, _, err = run("push", "my.model", *self.ARGUMENTS, "--url", engine.url)
        assert (code, engine.asked) == (1, [])
        assert words in err

    @pytest.mark.parametrize(
        ("status", "body", "words"),
        [
            (
                401,
                {"error": {"reason": "missing authentication"}},
                r"401.*RANKTRON_ENGINE_USER.*missing authentication",
            ),
            (403, b"", "403.*do not allow"),
            (404, {"error": {"reason": "Unknown featureset [movies]"}}, "404.*check the plugin.*Unknown featureset"),
            (409, {"error": {"reason": "version conflict"}}, "409.*--version.*version conflict"),
            (400, {"error": {"reason": "Element of type [model] are not updatable, already exists"}}, "400.*--version"),
            (400, {"error": {"reason": "Unknown feature [x]"}}, r"400\. Unknown feature \[x\]"),
            (500, b"<html>\n\x1b[31mboom</html>", r"500\. <html> \[31mboom</html>"),
            (302, b"", "redirects"),
        ],
    )
    def test_refusals_are_one_line(self, run, engine, status, body, words):
        place = ("POST", "/_ltr/_featureset/movies/_createmodel")
        engine.answers[place] = (status, body, ("Location", engine.url + "/elsewhere"))
        code, out, err = run("push", "my.model", *self.ARGUMENTS, "--url", engine.url)
        assert (code, err.count("\n"), out) == (1, 1, "")
        assert re.search(words, err), err
        assert "cannot create the model" in err
        assert calls(engine) == [place]  # the cache is left alone, and no redirect followed

    def test_a_model_that_is_there_and_a_cache_that_is_not_cleared(self, run, engine):
        engine.answers["POST", "/_ltr/_clearcache"] = (500, b"")
        code, _, err = run("push", "my.model", *self.ARGUMENTS, "--url", engine.url)
        assert code == 1
        assert "cannot clear the cache of models" in err
        assert "completed: create the model" in err

    def test_solr_that_says_200_and_means_no(self, run, engine):
        engine.answers["PUT", "/c/schema/model-store"] = (
            200,
            {"responseHeader": {"status": 400}, "error": {"msg": "model 'x' already exists"}},
        )
        code, _, err = run("push", "my.model", "--to", "solr", "--collection", "c", "--url", engine.url)
        assert code == 1
        assert "already exists" in err
        assert "--version" in err

    def test_nobody_there_and_nobody_answering(self, run, engine):
        engine.delay = 0.6
        code, _, err = run("push", "my.model", *self.ARGUMENTS, "--url", engine.url, "--timeout", 0.1)
        assert (code, err.count("\n")) == (1, 1)
        assert "within 0.1 seconds" in err or "timed out" in err
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            port = nobody.getsockname()[1]
        code, _, err = run("push", "my.model", *self.ARGUMENTS, "--url", f"http://127.0.0.1:{port}")
        assert (code, err.count("\n")) == (1, 1)
        assert "is the engine running there?" in err

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (("--to", "vespa"), 2, "vespa deploy"),
            (("--to", "solr"), 2, "--collection"),
            (("--to", "elasticsearch"), 2, "--featureset"),
            ((*ARGUMENTS, "--url", "http://me:secret@host:9200"), 1, "must not hold credentials"),
            ((*ARGUMENTS, "--url", "file:///etc/passwd"), 1, "--url must be an address"),
            ((*ARGUMENTS, "--url", "http://host:port"), 1, "--url must be an address"),
            ((*ARGUMENTS, "--url", "http://127.0.0.1:1/a b"), 1, "cannot be reached"),
            ((*ARGUMENTS, "--url", "http://127.0.0.1:1/ä"), 1, "cannot be reached"),
            ((*ARGUMENTS, "--url", "http://[host"), 1, "--url must be an address"),
            ((*ARGUMENTS, "--version", "a b"), 1, "cannot name a model"),
        ],
    )
    def test_command_lines_that_cannot_be(self, run, arguments, code, words):
        found, out, err = run("push", "my.model", *arguments)
        assert (found, err.count("\n"), out) == (code, 1, "")
        assert words in err
        assert "secret" not in err
