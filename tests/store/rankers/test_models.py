"""Model files that clients send: whatever they hold, they are taken or refused in a sentence, and others are served."""

import asyncio
import json
import os
import struct
import threading
import zlib

import numpy as np
import pytest

from ranktron.data.rounds import Rounds
from ranktron.data.serialization import same
from ranktron.data.synthetic import WebSearch
from ranktron.service.config import Config
from ranktron.store.journal.sqlite_journal import SQLiteJournal
from ranktron.store.rankers.models import read_upload
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.fit import TrainingPlan, train
from ranktron.training.model import Model

BYTES = "application/octet-stream"
MAGIC = b"ranktron\n"
LONE = "\ud800"  # half of a pair: no UTF-8 can have it
DEEP = [[] for _ in range(1)]
for _ in range(300):
    DEEP = [DEEP]
STRANGE = [
    *(LONE, "", "\x00", "x" * 3000, None, True, False, -1, 0, 1.5, 1e308, 2**63, -(2**63), 10**30, 10**400),
    *([], {}, [LONE], {LONE: 1}, {"$array": 0}, {"$array": 99}, {"$array": LONE}, DEEP, float("nan"), float("inf")),
]

EACH = int(os.environ.get("RANKTRON_STRANGE", "2"))  # of these at each place; all of them take a minute or two


def forge(header, arrays):
    """A model file with this header, its checksum right."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = MAGIC + struct.pack("<Q", len(raw)) + raw + arrays
    return body + struct.pack("<I", zlib.crc32(body))


def split(data):
    """The header of a model file, and the bytes of its arrays."""
    start = len(MAGIC) + 8
    (length,) = struct.unpack("<Q", data[len(MAGIC) : start])
    return json.loads(data[start : start + length]), data[start + length : -4]


def changed(data, path, value):
    """The file with another value at one place of its header."""
    header, arrays = split(data)
    node = header
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return forge(header, arrays)


def positions(tree, path=()):
    """The ways to all values of a header."""
    if path:
        yield path
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else list(enumerate(tree))[:3]:
            yield from positions(value, (*path, key))


def send(talk, method, data, name="shop"):
    path = f"/v1/rankers/{name}" if method == "PUT" else f"/v1/rankers/{name}/model"
    answer = talk.request(method, path, data, content_type=BYTES)
    return answer.status, json.loads(answer.content)


@pytest.fixture(scope="module")
def files():
    """Model files of several kinds, with all that a header can hold."""
    lists = WebSearch(features=3, documents=6).rounds(12)
    X = np.array(lists.X)
    X[::3, 1] = np.nan
    gaps = Rounds.from_arrays(
        X, lists.labels, group=np.diff(lists.offsets), feature_names=("price", "age", "size"), missing=True
    )
    models = [
        train(TrainingPlan("topk", scaling="standard"), lists).model,
        train(TrainingPlan("hinge", map="bins:4"), lists).model,
        train(TrainingPlan("hinge", nan="indicator"), gaps).model,
        train(TrainingPlan("committee"), lists).model,
        train(TrainingPlan("kernel", {"budget": 9}), lists).model,
    ]
    return [model.to_bytes() for model in models]


def refused(talk, data, method="PUT", name="new"):
    """Why a file is refused; nothing has changed then."""
    before = talk.ask("GET", "/v1/rankers")
    status, answer = send(talk, method, data, name)
    assert 400 <= status < 500, answer
    assert talk.ask("GET", "/v1/rankers") == before
    return answer["error"]["message"]


CASES = {
    ("content", "n_features"): (LONE, 2.0, True, "3", None),
    ("content", LONE): (1,),
    ("format",): (LONE, 1, None),
    ("content",): ([], 3, {"$array": 0}, None),
    ("content", "feature_names"): ({"$array": 0}, [LONE, "b", "c"], [1, 2, 3], "abc", ["a"] * 3),
    ("content", "first_index"): (1.5, -1, 10**30, LONE, None),
    ("content", "record"): (DEEP,),
    ("content", "parameters", LONE): (1,),
    ("arrays", 0, "shape"): ([-1], [3, -1], [LONE], LONE, [1.5]),
    ("arrays", 0, "dtype"): (LONE, "O", None),
}


@pytest.mark.parametrize("path", CASES, ids=ascii)
def test_a_file_whose_checksum_is_right_is_refused_in_a_sentence(talk, files, path):
    assert send(talk, "PUT", files[0])[0] == 200
    for value in CASES[path]:
        data = changed(files[0], path, value)
        for method, name in (("PUT", "new"), ("POST", "shop")):
            message = refused(talk, data, method, name)
            assert message.isascii()
            assert len(message) < 2_100


@pytest.mark.parametrize("depth", [200, 900, 990, 100_000])
def test_however_deep_it_is(talk, files, depth):
    header, arrays = split(files[0])
    header["content"]["record"] = "DEEP"
    raw = json.dumps(header).encode().replace(b'"DEEP"', b'{"a":' * depth + b"1" + b"}" * depth)
    refused(talk, forge(raw, arrays))


def test_strange_values_at_every_place_of_a_header(talk, files):
    """Each is refused, or makes a ranker that can be looked at, ranked with and deleted."""
    rng = np.random.default_rng(0)
    taken = 0
    for data in files:
        header, _ = split(data)
        assert send(talk, "PUT", data)[0] == 200
        for path in positions(header):
            for index in rng.permutation(len(STRANGE))[:EACH]:
                forged = changed(data, path, STRANGE[index])
                if send(talk, "POST", forged)[0] == 200:
                    look(talk, "shop")
                    assert send(talk, "POST", data)[0] == 200
                status, answer = send(talk, "PUT", forged, "new")
                assert status in (200, 422), (path, STRANGE[index], answer)
                if status == 200:
                    taken += 1
                    look(talk, "new")
                    talk.ask("DELETE", "/v1/rankers/new")
                assert [each["name"] for each in talk.ask("GET", "/v1/rankers")["rankers"]] == ["shop"]
        talk.ask("DELETE", "/v1/rankers/shop")
    assert taken > 5


def look(talk, name):
    """Whatever is there can be seen."""
    features = talk.ask("GET", f"/v1/rankers/{name}")["features"]
    documents = [{"id": f"d{i}", "features": [float(i)] * len(features)} for i in range(3)]
    body = json.dumps({"documents": documents}).encode()
    assert talk.request("POST", f"/v1/rankers/{name}/rank", body, content_type="application/json").status in (200, 422)
    talk.ask("GET", f"/v1/rankers/{name}/dashboard")
    served = talk.ask("GET", f"/v1/rankers/{name}/model")
    assert Model.from_bytes(served).to_bytes() == served


def test_a_ranker_has_its_model_as_soon_as_it_is_there(tmp_path, serving, files, monkeypatch):
    """The process ends when the ranker is on disk, before anyone has been told."""
    talk = serving(tmp_path).__enter__()
    with monkeypatch.context() as patch:
        patch.setattr(SQLiteJournal, "_call_back", lambda *_items_decoder: None)

        async def never():
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(talk.service.create_from_model("shop", files[0]), 1.0)

        talk.runner.run(never())
    talk.service.journal.close()
    talk.runner.close()
    with serving(tmp_path) as talk:
        model = Model.from_bytes(files[0])
        found = talk.ask("GET", "/v1/rankers/shop")
        assert found["version"] == 1
        assert found["rounds"] >= model.learner().rounds > 0
        served = Model.from_bytes(talk.ask("GET", "/v1/rankers/shop/model"))
        assert served.weights.tolist() == model.weights.tolist()
        assert served.weights.any()
        shown = talk.rank(np.eye(3))
        assert shown["round"] >= model.learner().rounds
        talk.answer(shown)
        left = talk.ask("GET", "/v1/rankers/shop")
        assert send(talk, "PUT", files[0]) == (200, left)


def test_reading_a_model_leaves_it_as_it_was(files):
    """A twin ranks and learns once, to see whether it can: what is kept is the file's own state."""
    for data in files:
        upload = read_upload(data, None, Config())
        assert same(upload.model.state, Model.from_bytes(data).state)
        assert read_upload(upload.body, upload.definition, Config()).body == upload.body


def test_others_are_served_while_a_model_is_read(talk, files, monkeypatch):
    reading, go = threading.Event(), threading.Event()

    def slowly(*arguments):
        reading.set()
        assert go.wait(20.0)
        return read_upload(*arguments)

    monkeypatch.setattr("ranktron.service.service.read_upload", slowly)
    talk.make("other")

    async def session():
        making = [asyncio.ensure_future(talk.service.create_from_model(f"r{i}", files[0])) for i in range(12)]
        while not reading.is_set():
            await asyncio.sleep(0.001)
        assert talk.service.ranker("other").version == 0
        go.set()
        return await asyncio.gather(*making, return_exceptions=True)

    answers = talk.runner.run(session())
    assert [answer.version for answer in answers[:10]] == [1] * 10
    assert [answer.code for answer in answers[10:]] == ["busy"] * 2  # no more than ten are in memory


def test_a_model_for_a_ranker_that_was_replaced_meanwhile(talk, files, monkeypatch):
    """It was read for the features of another one."""

    def read_and_replace(data, definition, config, new):
        upload = read_upload(data, definition, config, new)

        async def replace():
            await talk.service.delete("shop")
            await talk.service.create("shop", definition)

        asyncio.run_coroutine_threadsafe(replace(), talk.runner.get_loop()).result(20.0)
        return upload

    send(talk, "PUT", files[0])
    talk.ask("DELETE", "/v1/rankers/shop")
    talk.make(features=["1", "2", "3"])
    monkeypatch.setattr("ranktron.service.service.read_upload", read_and_replace)
    status, answer = send(talk, "POST", files[0])
    assert (status, answer["error"]["code"]) == (409, "replaced")
    assert talk.ask("GET", "/v1/rankers/shop")["version"] == 0


def test_a_header_that_would_take_long_to_read_is_refused(talk, files):
    header, arrays = split(files[0])
    for record in ([[]] * 60_000, "x" * 4_000_000):
        header["content"]["record"] = {"a": record}
        assert "must be stored as arrays" in refused(talk, forge(header, arrays))


def test_what_a_kernel_cannot_compare_is_not_taken(talk, files):
    """A document of its support that is too large would make the ranker's own model one that is refused."""
    header, arrays = split(files[4])
    assert send(talk, "PUT", files[4])[0] == 200
    sizes = [int(np.prod(spec["shape"])) * int(spec["dtype"][-1]) for spec in header["arrays"]]
    index = header["content"]["state"]["X"]["$array"]
    start = sum(sizes[:index])
    forged = arrays[:start] + np.float32(3.4e38).tobytes() + arrays[start + 4 :]
    for method, name in (("PUT", "new"), ("POST", "shop")):
        assert "too large for the kernel" in refused(talk, forge(header, forged), method, name)


@pytest.mark.parametrize("kind", [name for name in ALGORITHMS if ALGORITHMS[name].learner(3, {}).learns_online])
def test_what_is_got_can_be_put(talk, lists, kind):
    """The model of a ranker, whatever it has learnt, makes another one with the same model."""
    talk.make(algorithm=kind)
    for X, labels in lists(12):
        shown = talk.rank(X * 10.0 ** float(labels[0] * 4 - 8))
        talk.answer(shown, labels[:2].tolist())
    data = talk.ask("GET", "/v1/rankers/shop/model")
    assert send(talk, "PUT", data, "copy")[0] == 200
    assert talk.ask("GET", "/v1/rankers/copy/model") == data
