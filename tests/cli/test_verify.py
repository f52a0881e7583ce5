"""Comparing with a running engine: a stand-in answers the documented requests from documents that it holds."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

from ranktron import Model
from ranktron.export import export
from ranktron.export.elasticsearch import LearningToRankPlugin
from ranktron.export.lucene_expression import LuceneExpression
from ranktron.export.solr import Solr

NAMES = ("bm25", "age", "clicks")
X = np.random.default_rng(0).uniform(0.0, 5.0, (12, 3)).astype(np.float32)
IDS = [f"d{i}" for i in range(12)]
MODEL = Model("linear", {}, {"coef": np.array([0.3, 0.5, -0.1]), "constant": 0.0}, 3, feature_names=NAMES)


class StandIn(HTTPServer):
    """Searches as Elasticsearch with the LTR plugin, and as Solr, do: by ids, scored by the model that it holds."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.table, self.asked = dict(zip(IDS, X.copy(), strict=True)), []
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def answer(self, path, body):
        self.asked.append((path, body))
        if path == "/films/query":
            ids = body["params"]["ids"].split("\t")
            assert body["query"] == "{!terms f=id separator='\t' v=$ids}"
            assert re.fullmatch(r"\{!ltr model='my' reRankDocs=\d+( efi\.text='it\\'s')?\}", body["params"]["rq"])
            scores = self.scores(Solr(), export(MODEL, "solr", name="my").content, ids)
            docs = [{"id": docid, "score": score} for docid, score in scores.items()]
            return {"responseHeader": {"status": 0}, "response": {"docs": docs[: body["limit"]]}}
        assert path == "/films/_search"
        query = body["query"]
        if "bool" in query:
            ((sltr,),) = ([clause["sltr"] for clause in query["bool"]["should"]],)
            assert sltr["model"] == "my"
            ids = query["bool"]["filter"][0]["ids"]["values"]
            scores = self.scores(LearningToRankPlugin(), export(MODEL, "elasticsearch", name="my").content, ids)
            hits = [{"_id": docid, "_score": score} for docid, score in scores.items()]
        else:
            script = json.dumps({"script": body["script_fields"]["score"]["script"]}).encode()
            scores = self.scores(LuceneExpression(), script, query["ids"]["values"])
            hits = [{"_id": docid, "fields": {"score": [score]}} for docid, score in scores.items()]
        return {"hits": {"hits": sorted(hits, key=lambda hit: hit["_id"])[: body["size"]]}}

    def scores(self, engine, file, ids):
        there = [docid for docid in ids if docid in self.table]
        rows = np.array([self.table[docid] for docid in there], np.float32).reshape(-1, 3)
        return dict(zip(there, engine.scores(file, NAMES, rows, np.array([0, len(rows)])).tolist(), strict=True))


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps(self.server.answer(self.path, body)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def engine():
    server = StandIn()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def verify(run, engine, tmp_path):
    MODEL.save(tmp_path / "my.model")
    rows = [f"0 qid:{i // 4} 1:{a} 2:{b} 3:{c} # docid = {IDS[i]}" for i, (a, b, c) in enumerate(X)]
    (tmp_path / "data.txt").write_text("\n".join(rows) + "\n")

    def call(to, *more):
        return run("verify", "my.model", "data.txt", "--to", to, "--index", "films", "--against", engine.url, *more)

    return call


TARGETS = ["elasticsearch", "opensearch", "solr", "lucene-expression"]


@pytest.mark.parametrize("to", TARGETS)
def test_an_engine_that_scores_as_the_model_does(verify, engine, to):
    code, out, err = verify(to)
    assert (code, err) == (0, "")
    assert "12 documents of 3 queries" in out
    assert "scores as the model does" in out
    assert len(engine.asked) == 3
    code, out, _ = verify(to, "--json", "--queries", 2)
    found = json.loads(out)
    assert (code, found["fits"], found["documents"], found["swapped"], found["missing"]) == (0, True, 8, 0, 0)
    assert found["error"] < 1e-6


@pytest.mark.parametrize("to", TARGETS)
def test_an_engine_with_other_features(verify, engine, to):
    last = IDS[4 + int(np.argmin(MODEL.predict(X[4:8])))]  # of the second query, becomes its first
    engine.table[last] = engine.table[last] + np.float32([0.0, 9.0, 0.0])
    code, out, err = verify(to)
    assert (code, err.count("\n")) == (1, 1)
    assert "3 pairs swapped" in out
    assert f"document {last} of query 1" in err
    code, out, _ = verify(to, "--json")
    assert (code, json.loads(out)["fits"]) == (1, False)
    assert json.loads(out)["swapped"] == 3


@pytest.mark.parametrize("to", TARGETS)
def test_an_engine_that_lacks_a_document(verify, engine, to):
    del engine.table["d5"]
    code, _, err = verify(to)
    assert code == 1
    assert "did not return 1 documents: are all of them in films?" in err


def test_parameters_of_queries_reach_the_features(verify, engine, tmp_path):
    (tmp_path / "params.json").write_text('{"1": {"text": "it\'s"}}')
    assert verify("solr", "--params", "params.json")[0] == 0
    assert [("efi.text" in body["params"]["rq"]) for _, body in engine.asked] == [False, True, False]
    engine.asked.clear()
    assert verify("opensearch", "--params", "params.json")[0] == 0
    assert [body["query"]["bool"]["should"][0]["sltr"]["params"] for _, body in engine.asked] == [
        {},
        {"text": "it's"},
        {},
    ]
    (tmp_path / "params.json").write_text("[]")
    assert "must hold" in verify("opensearch", "--params", "params.json")[2]


def test_what_cannot_be_asked(verify, engine, run, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "answer", lambda path, body: {"took": 1})
    code, _, err = verify("solr")
    assert (code, err.count("\n")) == (1, 1)
    assert "the engine's answer is not one of solr" in err
    (tmp_path / "bare.txt").write_text("0 qid:1 1:1 2:2 3:3\n")
    arguments = ("verify", "my.model", "bare.txt", "--to", "solr", "--index", "films", "--against")
    assert "no document ids" in run(*arguments, engine.url)[2]
    assert "--against must be an address" in run(*arguments, "nowhere")[2]
