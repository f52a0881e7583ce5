"""The store: rankers in a folder, used from Python; what it says, learns, keeps and refuses."""

import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import ranktron
from ranktron.errors import DataError
from ranktron.store.config import StoreConfig
from ranktron.store.errors import RequestError
from ranktron.store.store import Store

NAMES = ["bm25", "price", "stars"]


@pytest.fixture
def store(tmp_path):
    with ranktron.open(tmp_path / "state") as store:
        yield store


@pytest.fixture
def shop(store):
    return store.ranker("shop", features=NAMES, scale="none")


def page(rng, documents=6, features=3):
    return {f"d{i}": row for i, row in enumerate(rng.normal(size=(documents, features)).tolist())}


def use(ranker, rng, times=20):
    """Shows lists and clicks the first document whose first feature is positive; the ids of the rankings."""
    shown = []
    for _ in range(times):
        documents = page(rng)
        ranking = ranker.rank(documents)
        ranker.feedback(ranking.id, clicked=[item for item in ranking.items if documents[item][0] > 0][:1])
        shown.append(ranking.id)
    return shown


def test_documents_in_any_form_are_the_same(shop):
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    ids = ["a", "b", "c", "d"]
    frame = pandas.DataFrame(X, columns=NAMES)[["price", "stars", "bm25"]].assign(sku=ids, other="x")
    use(shop, np.random.default_rng(1))
    by_id = dict(zip(ids, X.tolist(), strict=True))
    forms = [
        shop.rank(by_id),
        shop.rank({id: tuple(row) for id, row in by_id.items()}),
        shop.rank({id: dict(zip(NAMES[::-1], row[::-1], strict=True)) for id, row in by_id.items()}),
        shop.rank(X, ids),
        shop.rank(X.tolist(), ids),
        shop.rank(X.astype(float), tuple(ids)),
        shop.rank(frame, "sku"),
        shop.rank(frame, frame["sku"]),
    ]
    scores = [dict(zip(form.items, form.scores, strict=True)) for form in forms]
    assert all(each == scores[0] for each in scores)
    assert sorted(shop.rank(X).items) == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("documents", "items", "complaint"),
    [
        ({}, None, "no documents"),
        ({"a": [1.0, 2.0]}, None, "should have 3 features"),
        ({"a": {"bm25": 1.0, "price": 2.0}}, None, "lacks 'stars'"),
        ({"a": {"bm25": 1.0, "price": 2.0, "stars": 1, "sold": 2}}, None, "has 'sold'"),
        ({"a": ["1.0", 2.0, 3.0]}, None, "features of document 'a'"),
        ({"a": [None, 2.0, 3.0]}, None, "got `null`"),
        ({"a": [float("nan"), 2.0, 3.0]}, None, "'bm25' of document 'a' is missing"),
        ({"a": [1e300, 2.0, 3.0]}, None, "too large"),
        ({7: [1.0, 2.0, 3.0]}, None, "strings, and 7"),
        (np.zeros((2, 3)), ["a"], "2 documents and 1 items"),
        (np.zeros((2, 3)), ["a", "a"], "two documents have the id 'a'"),
        (np.zeros((2, 2)), ["a", "b"], "3 features each"),
        (np.array([["x", "y", "z"]]), ["a"], "numbers"),
        ({"a": [1.0, 2.0, 3.0]}, ["a"], "leave `items` out"),
    ],
)
def test_documents_that_are_refused(shop, documents, items, complaint):
    with pytest.raises(RequestError, match=complaint):
        shop.rank(documents, items)
    assert shop.state.rounds == 0


def test_what_is_learnt_is_there_after_opening_again(tmp_path):
    with ranktron.open(tmp_path) as store:
        shop = store.ranker("shop", features=NAMES)
        use(shop, np.random.default_rng(0))
        open_ranking = shop.rank(page(np.random.default_rng(9)), query="lamp", user="u7")
        model, weights = shop.model.to_bytes(), shop.weights
    with ranktron.open(tmp_path) as store:
        assert store.rankers == ["shop"]
        shop = store.ranker("shop", features=NAMES)
        assert (shop.model.to_bytes(), shop.weights, shop.version) == (model, weights, 20)
        assert shop.explain(open_ranking.id).query == "lamp"
        assert shop.feedback(open_ranking.id, clicked=open_ranking.items[:1]).version == 21


def test_feedback_late_repeated_and_gone(shop):
    rng = np.random.default_rng(0)
    first, second, never = (shop.rank(page(rng)) for _ in range(3))
    answer = shop.feedback(second.id, clicked=second.items[:1])
    assert shop.feedback(first.id, clicked=[]).version == 2
    assert shop.feedback(second.id, clicked=second.items[:1]) == answer
    assert shop.feedback(second.id, gains={second.items[0]: 4.0}).version == 3
    assert shop.feedback(second.id, gains={second.items[0]: 2.0}).version == 3
    with pytest.raises(RequestError, match="does not exist"):
        shop.feedback(never.id + 1, clicked=[])
    assert shop.state.open == 1


@pytest.mark.parametrize(
    ("feedback", "complaint"),
    [
        ({}, "either `clicked` or `gains` or `labels`"),
        ({"clicked": [], "gains": {}}, "either `clicked` or `gains` or `labels`"),
        ({"clicked": "d0"}, r"list of items: \['d0'\]"),
        ({"clicked": [3]}, "strings, and 3"),
        ({"clicked": ["x"]}, "'x' is not among"),
        ({"gains": {"d0": -1}}, "0 or more"),
        ({"gains": {"d0": float("nan")}}, "0 or more"),
        ({"labels": {"d0": "good"}}, "numbers by item"),
        ({"labels": {}}, "one item at least"),
        ({"labels": {"d0": 9}}, "between 0 and 4"),
    ],
)
def test_feedback_that_is_refused_changes_nothing(shop, feedback, complaint):
    ranking = shop.rank(page(np.random.default_rng(0)))
    with pytest.raises(RequestError, match=complaint):
        shop.feedback(ranking.id, **feedback)
    assert (shop.version, shop.state.open) == (0, 1)


@pytest.mark.parametrize(("learns_from", "kind"), [("clicks", "pdgd"), ("top-labels", "topk"), ("labels", "hinge")])
def test_what_comes_back_chooses_the_algorithm(store, learns_from, kind):
    ranker = store.ranker("shop", features=NAMES, learns_from=learns_from)
    assert ranker.model.kind == kind
    assert store.ranker("shop", features=NAMES, algorithm=kind).definition == ranker.definition
    if kind == "hinge":
        labels = {f"d{i}": float(i % 3) for i in range(6)}
        assert ranker.learn(page(np.random.default_rng(0)), labels).learned
        ranking = ranker.rank(page(np.random.default_rng(0)))
        with pytest.raises(RequestError, match="send labels"):
            ranker.feedback(ranking.id, clicked=[])
    else:
        with pytest.raises(RequestError, match="learns from what it showed"):
            ranker.learn({"a": [1, 2, 3]}, {"a": 1})


def test_another_definition_is_an_error_that_says_what_differs(store, shop):
    with pytest.raises(RequestError, match=r"features: it has \['bm25', 'price', 'stars'\], not \['bm25'\]"):
        store.ranker("shop", features=["bm25"], scale="none")
    with pytest.raises(RequestError, match=r"\(k: it has 10, not 3\)"):
        store.ranker("shop", features=NAMES, parameters={"k": 3}, scale="none")
    with pytest.raises(RequestError, match=r"\(algorithm: it has 'pdgd', not 'topk'\)"):
        store.ranker("shop", features=NAMES, learns_from="top-labels", scale="none")
    with pytest.raises(RequestError, match="no ranker 'other'"):
        store.ranker("other")
    with pytest.raises(RequestError, match="leave it or `algorithm` out"):
        store.ranker("other", features=NAMES, learns_from="clicks", algorithm="topk")
    with pytest.raises(TypeError, match="unexpected keyword argument 'featurs'"):
        store.ranker("other", features=NAMES, featurs=NAMES)


def test_a_ranker_starts_from_a_linear_model_of_any_kind(store, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    estimator = ranktron.HingePerceptron().fit(X, (X @ [1.0, 0.5, 0.0] > 0).astype(int), qid=np.arange(40) // 4)
    estimator.save(tmp_path / "start.model")
    by_name = store.ranker("name", features=NAMES, start={"bm25": 2.0}, trust=1.0)
    assert by_name.weights == {"bm25": 2.0, "price": 0.0, "stars": 0.0}
    given = store.ranker("array", features=NAMES, start=[1.0, 0.0, 0.5], algorithm="topk", history="keep")
    assert given.weights == {"bm25": 1.0, "price": 0.0, "stars": 0.5}
    trained = store.ranker("file", start=tmp_path / "start.model", labels=(0.0, 1.0), trust=0.5)
    assert trained.model.kind == "pdgd"
    assert trained.model.scaler.name == estimator.model_.scaler.name
    assert trained.weights == store.ranker("estimator", start=estimator, trust=0.5).weights
    first = dict(trained.weights)
    for _ in range(2):  # the same start opens the same ranker, whatever it has learnt since
        again = store.ranker("file", start=tmp_path / "start.model", labels=(0.0, 1.0), trust=0.5)
        ranking = again.rank(X[:6])
        again.feedback(ranking.id, clicked=ranking.items[5:6])
    assert 0.0 < np.linalg.norm(np.subtract(list(again.weights.values()), list(first.values()))) <= 0.5 + 1e-9
    with pytest.raises(RequestError, match=r"made differently .*labels"):
        store.ranker("file", start=tmp_path / "start.model", trust=0.5)
    with pytest.raises(RequestError, match="not made from this model"):
        store.ranker("file", start=tmp_path / "start.model", labels=(0.0, 1.0))
    with pytest.raises(RequestError, match=r"trust: it has 1.0, not None"):
        store.ranker("name", features=NAMES, start={"bm25": 2.0})
    with pytest.raises(RequestError, match="not both"):
        store.ranker("both", start=estimator, model=estimator.model_)
    with pytest.raises(DataError, match="does not start"):
        store.ranker("kernel", start=estimator, algorithm="kernel")
    with pytest.raises(RequestError, match="own scaling"):
        store.ranker("scaled", start=estimator, scale="none")


def test_versions_models_and_deletion(store, shop, tmp_path):
    rng = np.random.default_rng(0)
    use(shop, rng)
    kept, weights = shop.keep(), shop.weights
    use(shop, rng)
    shop.save(tmp_path / "shop.model")
    shop.rollback(kept)
    assert shop.weights == weights != dict.fromkeys(NAMES, 0.0)
    copy = store.ranker("copy", model=tmp_path / "shop.model")
    assert shop.set_model(ranktron.load(tmp_path / "shop.model")) == ""
    assert copy.weights == shop.weights != weights
    store.delete("shop")
    assert store.rankers == ["copy"]
    with pytest.raises(RequestError, match="no ranker 'shop'"):
        shop.rank(page(rng))


def test_threads_share_a_store(store, shop):
    """Every feedback is learnt once, and commits are shared."""
    commits = store._engine.journal._commits
    barrier = threading.Barrier(8)

    def work(seed):
        barrier.wait()
        return use(shop, np.random.default_rng(seed), 25)

    with ThreadPoolExecutor(8) as pool:
        shown = [id for ids in pool.map(work, range(8)) for id in ids]
    assert len(set(shown)) == 200
    assert (shop.version, shop.state.open) == (200, 0)
    assert store._engine.journal._commits - commits < 200


def test_batches_return_at_once_and_flush_waits(tmp_path):
    with ranktron.open(tmp_path, durability="batch") as store:
        shop = store.ranker("shop", features=NAMES)
        use(shop, np.random.default_rng(0), 50)
        store.flush()
        assert shop.version == 50
        use(shop, np.random.default_rng(1), 5)
    with ranktron.open(tmp_path) as store:
        assert store.ranker("shop").version == 55


def test_flush_raises_what_a_batch_could_not_write(tmp_path, monkeypatch):
    with ranktron.open(tmp_path, durability="batch") as store:
        shop = store.ranker("shop", features=NAMES)
        ranking = shop.rank(page(np.random.default_rng(0)))
        with monkeypatch.context() as patch:
            patch.setattr(store._engine.journal, "_write_batch", lambda jobs: (_ for _ in ()).throw(OSError("full")))
            assert shop.feedback(ranking.id, clicked=[]) is None
            with pytest.raises(RequestError, match="full"):
                store.flush()
        shop.feedback(ranking.id, clicked=[])
        store.flush()
        assert shop.version == 1


def test_a_disk_that_refuses_leaves_the_ranking_open(store, shop, monkeypatch):
    ranking = shop.rank(page(np.random.default_rng(0)))
    with monkeypatch.context() as patch:
        patch.setattr(store._engine.journal, "_write_batch", lambda jobs: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(RequestError, match="full"):
            shop.feedback(ranking.id, clicked=[])
    assert shop.feedback(ranking.id, clicked=[]).version == 1


def test_rankings_without_feedback_are_closed(tmp_path):
    with ranktron.open(tmp_path) as store:
        shop = store.ranker("shop", features=NAMES, close_after=0.05)
        shop.rank(page(np.random.default_rng(0)))
        for _ in range(200):
            if shop.version:
                break
            threading.Event().wait(0.05)
        assert (shop.version, shop.state.open) == (1, 0)


def test_one_process_at_a_time(store):
    with pytest.raises(DataError, match=r"in use by this process.*ranktron serve --dir"):
        ranktron.open(store.path)
    code = f"import ranktron; ranktron.open({str(store.path)!r})"
    second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"in use by process {os.getpid()}: close it there first" in second.stderr


def test_a_closed_store_refuses_and_frees_its_folder(tmp_path):
    store = ranktron.open(tmp_path)
    shop = store.ranker("shop", features=NAMES)
    store.close()
    store.close()
    with pytest.raises(DataError, match="closed"):
        shop.rank({"a": [1, 2, 3]})
    ranktron.open(tmp_path).close()


def test_a_store_is_refused_after_a_fork(store, shop):
    """The child can use nothing, and does not hold the folder once the parent has gone."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            shop.rank({"a": [1.0, 2.0, 3.0]})
        except DataError as error:
            os.write(writing, str(error).encode())
        store.close()
        os.write(writing, b"!")
        os.read(0, 1) if False else threading.Event().wait(3.0)
        os._exit(0)
    os.close(writing)
    told = os.read(reading, 4096)
    assert f"opened in process {os.getpid()}, before a fork" in told.decode()
    store.close()
    ranktron.open(store.path).close()  # while the child lives
    os.kill(child, 9)
    os.waitpid(child, 0)
    os.close(reading)


def test_a_store_is_closed_when_the_process_ends(tmp_path):
    code = f"""
import ranktron
store = ranktron.open({str(tmp_path)!r}, durability="batch")
shop = store.ranker("shop", features=["x"])
shop.feedback(shop.rank({{"a": [1.0], "b": [2.0]}}).id, clicked=["b"])
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    with ranktron.open(tmp_path) as store:
        assert store.ranker("shop").version == 1


def test_memory_leaves_nothing(tmp_path):
    with Store(":memory:") as store:
        shop = store.ranker("shop", features=NAMES)
        use(shop, np.random.default_rng(0))
        path = store.path
        assert path.exists()
    assert not path.exists()


def test_opening_loads_neither_scipy_nor_a_web_framework(tmp_path):
    code = f"""
import sys
import ranktron.store
with ranktron.open({str(tmp_path)!r}) as store:
    shop = store.ranker("shop", features=["x"])
    shop.feedback(shop.rank({{"a": [1.0], "b": [2.0]}}).id, clicked=["b"])
    shop.explain(0)
heavy = {{"sklearn", "pandas", "pyarrow", "starlette", "uvicorn", "asyncio", "http", "cryptography"}}
scipy = {{f"scipy.{{name}}" for name in ("sparse", "special", "linalg", "optimize", "stats", "spatial", "integrate")}}
print(sorted((heavy | scipy) & set(sys.modules)))  # `scipy` itself, empty, is imported by numba
"""
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout == "[]\n"


@pytest.mark.parametrize("settings", [{"max_open": 0}, {"snapshot_every": "x"}])
def test_wrong_settings_are_one_error(tmp_path, settings):
    with pytest.raises(DataError, match="config of the store"):
        ranktron.open(tmp_path, config=StoreConfig(**settings))
    with pytest.raises(DataError, match="durability"):
        ranktron.open(tmp_path, durability="none")


def test_a_ranker_starts_from_weights(tmp_path):
    names, start = ["bm25", "price"], {"bm25": 1.0}
    with ranktron.open(tmp_path / "shop") as store:
        shop = store.ranker("shop", features=names, start=start, trust=0.01)
        assert shop.weights == {"bm25": 1.0, "price": 0.0}
        for _ in range(20):
            ranking = shop.rank({"a": [1.0, 2.0], "b": [2.0, 1.0]})
            shop.feedback(ranking.id, clicked=["a"])
        weights = shop.weights
        assert 0.009 < np.hypot(weights["bm25"] - 1.0, weights["price"]) <= 0.01 * (1 + 1e-12)
        with pytest.raises(RequestError, match="different ranker"):
            store.ranker("shop", features=names, start=start)
        for given in (np.array([1.0, 0.0]), [1.0, 0.0]):
            assert store.ranker(f"of{type(given).__name__}", features=names, start=given).weights == {
                **start,
                "price": 0.0,
            }
    with ranktron.open(tmp_path / "shop") as store:
        assert store.ranker("shop", features=names, start=start, trust=0.01).weights == weights
        assert store.ranker("named", start={"a": 1.0, "b": 2.0}).weights == {"a": 1.0, "b": 2.0}
        with pytest.raises(RequestError, match="need `features`"):
            store.ranker("nameless", start=[1.0])
        with pytest.raises(DataError, match="did you mean"):
            store.ranker("other", features=names, start={"bm52": 1.0})


def test_a_ranker_starts_from_a_model_with_its_scaling(tmp_path):
    X = np.array([[1.0, 20.0], [3.0, 10.0], [2.0, 15.0]])
    trained = ranktron.RankSVM(scale="standard").fit(X, [0, 1, 0], qid=0)
    with ranktron.open(":memory:") as store:
        shop = store.ranker("shop", start=trained, learns_from="labels", trust=1.0)
        assert shop.definition.algorithm == "hinge"
        assert shop.model.scaler.name == "standard"
        assert list(shop.weights.values()) == trained.model_.weights.tolist()
        assert store.ranker("clicks", start=trained).definition.algorithm == "pdgd"
        with pytest.raises(RequestError, match="has its own scaling"):
            store.ranker("other", start=trained, scale="none")


@pytest.mark.parametrize("ends", ["closed", "killed"])
def test_users_have_weights_of_their_own(tmp_path, ends):
    given = {"features": NAMES, "scale": "none", "per": "user", "start": {"bm25": 1.0}, "trust": 0.05}
    given["parameters"] = {"eta": 0.1}
    rng = np.random.default_rng(0)
    store = ranktron.open(tmp_path / "state")
    shop = store.ranker("shop", **given)
    for number in range(60):
        likes = number % 2
        user = ("ann", "bob")[likes]
        X = rng.normal(size=(5, 3))
        ranking = shop.rank(X, items=list("abcde"), user=user)
        first = "abcde"[int(np.argmax(X[:, 1 + likes]))]
        shop.feedback(ranking.id, clicked=[first])
    learner = shop.model.learner()
    ann, bob = (learner.of(user).ranking_weights for user in ("ann", "bob"))
    assert ann[1] > bob[1] + 0.2
    assert bob[2] > ann[2] + 0.2
    assert np.linalg.norm(learner.of("cy").ranking_weights - [1.0, 0.0, 0.0]) <= 0.05 * (1 + 1e-12)
    ranking = shop.rank(np.eye(3), items=["x", "y", "z"], user="ann")
    assert ranking.scores == pytest.approx(sorted(ann, reverse=True) if not ranking.explored else ranking.scores)
    scores = dict(zip(ranking.items, ranking.scores, strict=True))
    assert [scores[item] for item in "xyz"] == pytest.approx(ann)
    explained = shop.explain(ranking.id)
    assert {each.id: sum(each.contributions.values()) for each in explained.documents} == pytest.approx(scores)
    if ends == "closed":
        store.close()
    else:
        store.flush()
        shutil.copytree(tmp_path / "state", tmp_path / "copy")
        store.close()
    folder = tmp_path / ("state" if ends == "closed" else "copy")
    with ranktron.open(folder) as store:
        again = store.ranker("shop", **given).model.learner()
        assert list(again.own) == ["ann", "bob"]
        for user in ("ann", "bob", "cy"):
            assert (again.of(user).ranking_weights == learner.of(user).ranking_weights).all()
        with pytest.raises(RequestError, match="users' own"):
            store.ranker("other", features=NAMES, learns_from="top-labels", per="user")


def test_who_is_forgotten_has_no_weights_of_their_own(store):
    shop = store.ranker("shop", features=NAMES, scale="none", per="user", history="keep")
    rng = np.random.default_rng(0)
    for number in range(20):
        ranking = shop.rank(rng.normal(size=(5, 3)), items=list("abcde"), user=("ann", "bob")[number % 2])
        shop.feedback(ranking.id, clicked=[ranking.items[2]])
    assert list(shop.model.learner().own) == ["ann", "bob"]
    shop.forget(user="bob")
    learner = shop.model.learner()
    assert list(learner.own) == ["ann"]
    assert learner.of("bob").ranking_weights.tolist() == learner.coef.tolist()
