"""The search page's other side: the documents, their features, and a ranker that gets better by being voted on."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from dataclasses import replace

import numpy as np
import pytest

from ranktron.cli import main
from ranktron.errors import DataError
from ranktron.service.demo import standard_library as library
from ranktron.service.demo.inventory import SKIPPED
from ranktron.service.demo.routes import DEFINITION, EXAMPLES, QUERIES, RANKER, K
from ranktron.service.demo.search import CANDIDATES, FEATURES, Index
from ranktron.service.demo.standard_library import LibraryEntry, standard_library

COLUMN = {name: j for j, name in enumerate(FEATURES)}


def test_the_library_is_read_by_another_interpreter():
    before = set(sys.modules)
    heard = []
    names = {each.id for each in standard_library(lambda done, total: heard.append((done, total)))}
    assert {"os.path.join", "open", "str.join", "json.loads", "collections.Counter.most_common", "asyncio"} <= names
    assert not {name.split(".")[0] for name in names} & set(SKIPPED)
    assert not any(part.startswith("_") for name in names for part in name.split("."))
    assert not {"ftplib", "mailbox", "xmlrpc"} & (set(sys.modules) - before)
    assert [done for done, _ in heard] == list(range(1, heard[0][1] + 1))


@pytest.mark.parametrize("script", ["", "print('many')", "print(3); print('[]')", "print(1); print('[{')", "1/0"])
def test_a_reader_that_fails_is_an_error(script, tmp_path, monkeypatch):
    (tmp_path / "script.py").write_text(script)
    monkeypatch.setattr(library, "SCRIPT", tmp_path / "script.py")
    with pytest.raises(DataError, match="could not be read"):
        standard_library()


def test_a_reader_that_hangs_is_ended(tmp_path, monkeypatch):
    (tmp_path / "script.py").write_text("import time; print(9, flush=True); time.sleep(600)")
    monkeypatch.setattr(library, "SCRIPT", tmp_path / "script.py")
    monkeypatch.setattr(library, "TIMEOUT", 1.0)
    with pytest.raises(DataError, match="could not be read"):
        standard_library()


def test_a_summary_is_not_a_signature(index):
    known = {each.id: each for each in index.documents}
    assert known["time.sleep"].summary.startswith("Delay execution")
    assert known["json.loads"].summary.startswith("Deserialize")


@pytest.mark.parametrize("query", [*EXAMPLES, "x", "getLogger", "the", "é", "", "'; --", "a" * 200])
def test_features_are_shares(index, query):
    found = index.search(query)
    assert found.X.shape == (len(found.documents), len(FEATURES))
    assert found.X.dtype == np.float32
    assert len(found.documents) <= CANDIDATES
    assert (found.X >= 0.0).all()
    assert (found.X <= 1.0).all()
    assert len({each.id for each in found.documents}) == len(found.documents)


def test_features_mean_what_they_say(index):
    found = index.search("read text")
    rows = {each.id: dict(zip(FEATURES, row, strict=True)) for each, row in zip(found.documents, found.X, strict=True)}
    row = rows["pathlib.Path.read_text"]
    assert (
        row["exact_name"] == row["name_starts"] == row["name_contains"] == row["words_in_name"] == row["is_method"] == 1
    )
    assert row["is_function"] == row["module_asked"] == 0
    assert row["shallow"] == pytest.approx(1 / 3)
    assert index.search("json load").X[:, COLUMN["module_asked"]].max() == 1.0
    kinds = found.X[:, COLUMN["is_function"] : COLUMN["is_exception"] + 1]
    assert (kinds.sum(axis=1) == 1.0).all()


@pytest.mark.parametrize(
    ("query", "exact", "starts"),
    [("shuffle", 1.0, 1.0), ("random.shuffle", 1.0, 0.0), ("shuff", 0.0, 1.0), ("huffl", 0.0, 0.0)],
)
def test_half_a_word_finds_the_name(index, query, exact, starts):
    found = index.search(query)
    row = found.X[[each.id for each in found.documents].index("random.shuffle")]
    assert (row[COLUMN["exact_name"]], row[COLUMN["name_starts"]]) == (exact, starts)
    assert row[COLUMN["name_contains"]] == float(query != "random.shuffle")


def test_what_is_not_there_is_not_found(service):
    assert service.ask("POST", "/demo/candidates", {"query": "qqqzzz"}) == (200, {"documents": []})


def test_bad_questions_are_refused(service):
    for body in (b'{"query": ""}', b'{"query": 1}', b"{}", b"[", json.dumps({"query": "a" * 201}).encode()):
        status, answer = service.ask("POST", "/demo/candidates", content=body)
        assert status in (400, 422), body
        assert answer["error"]["message"]


def likes(features):
    """The taste of the simulated voter (see pages/voter.js)."""
    return float(features["words_in_name"] == 1.0 and features["is_class"] + features["is_exception"] > 0.0)


def begin(service):
    service.ask("DELETE", f"/v1/rankers/{RANKER}")
    return service.done("PUT", f"/v1/rankers/{RANKER}", service.done("GET", "/demo/setup")["definition"])


def ask(service, query):
    """The candidates of a query, and the ranker's answer."""
    found = service.done("POST", "/demo/candidates", {"query": query})["documents"]
    bare = [{"id": each["id"], "features": each["features"]} for each in found]
    return found, service.done("POST", f"/v1/rankers/{RANKER}/rank", {"query": query, "documents": bare})


def session(service, queries, grade):
    """Asks, votes on the first k, and goes on: of each round, how many of the liked that could be there were there."""
    begin(service)
    shares = []
    for query in queries:
        found, answer = ask(service, query)
        features = {each["id"]: each["features"] for each in found}
        first = [each["id"] for each in answer["ranking"][:K]]
        best = sum(sorted(map(likes, features.values()), reverse=True)[:K])
        shares.append(sum(likes(features[name]) for name in first) / best)
        labels = {name: grade(features[name]) for name in first}
        assert service.done("POST", f"/v1/rankers/{RANKER}/feedback", {"round": answer["round"], "labels": labels})[
            "learned"
        ]
    return shares


def test_votes_help(service):
    shares = session(service, QUERIES, likes)
    assert np.mean(shares[-20:]) > 0.9 > 0.7 > np.mean(shares[:5])
    board = service.done("GET", f"/v1/rankers/{RANKER}/dashboard")
    quality = [point["value"] for point in board["curve"]]
    assert np.mean(quality[-20:]) > np.mean(quality[:5]) + 0.2
    weights = {each["feature"]: each["weight"] for each in board["weights"]}
    assert weights["is_class"] > 0.0 > weights["is_method"]


def test_the_same_votes_teach_the_same(start, tmp_path):
    both = [session(start(folder=tmp_path / name), QUERIES[:15], likes) for name in ("one", "two")]
    assert both[0] == both[1]


def test_votes_against_what_one_likes_do_harm(service):
    shares = session(service, QUERIES, lambda features: 1.0 - likes(features))
    assert np.mean(shares[-20:]) < 0.3


def test_the_first_list_is_that_of_plain_search(service, index):
    begin(service)
    found, answer = ask(service, "join")
    assert [each["id"] for each in found] == [each.id for each in index.search("join").documents]
    assert not answer["explored"]
    assert [each["id"] for each in answer["ranking"]] == [each["id"] for each in found]


def test_the_ranker_hears_of_as_many_as_the_page_says(service):
    setup = service.done("GET", "/demo/setup")
    assert setup["k"] == DEFINITION.parameters["k"] == K
    assert list(setup["features"]) == setup["definition"]["features"] == list(FEATURES)


def test_names_that_are_markup_stay_what_they_are():
    evil = LibraryEntry("<img src=x onerror=alert(1)>", "<b>", "function", "(<i>)", "Join <script>alert(2)</script>.")
    assert Index([evil]).search("join").documents == [evil]
    assert replace(evil, id="a.b").name == "b"


@pytest.mark.parametrize("lacking", ["bm25s", "uvicorn", "msgspec"])
def test_what_is_not_installed_is_said(lacking, tmp_path):
    code = f"import sys; sys.modules[{lacking!r}] = None\nfrom ranktron.cli import main; main(['demo', '--web'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("pip install 'ranktron[serve]'")


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["--port", "1"], "--port"),
        (["--dir", "x"], "--dir"),
        (["--web", "--seed", "1"], "--seed"),
        (["--web", "--json"], "--json"),
    ],
)
def test_options_of_the_other_demonstration_are_refused(arguments, option, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["demo", *arguments])
    assert exit.value.code == 2
    assert option in capsys.readouterr().err


def status_of(address):
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return answer.status
    except OSError:
        return 0


@pytest.mark.slow
def test_one_command_in_an_empty_folder(tmp_path, eventually):
    command = [sys.executable, "-u", "-m", "ranktron", "demo", "--web"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        try:
            address = re.search(r"http://\S+/search", program.stdout.readline())[0]
            program.stdout.readline()
            eventually(lambda: status_of(address) == 200)
            with urllib.request.urlopen(address, timeout=30) as answer:
                page = answer.read().decode()
            assert "Search Python's standard library" in page
            assert "Simulated:" in page
        finally:
            program.send_signal(signal.SIGINT)
            program.wait(30)
    assert program.returncode == 0
    assert not list(tmp_path.iterdir())
