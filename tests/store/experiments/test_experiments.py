"""Experiments through HTTP: two verbs, a verdict, one clear error for what makes no sense, and a replay to the bit."""

import sqlite3
from contextlib import closing

import msgspec
import numpy as np
import pytest

from ranktron.service.http import routes
from ranktron.store.experiments import views

FEATURES = ["f0", "f1", "f2"]


def teach(talk, name, sign=1.0, **definition):
    """A ranker that has learnt that the first feature is good, or bad."""
    talk.make(name, 3, parameters={"k": 2, "explore": 1.0, "seed": 1}, **definition)
    rng = np.random.default_rng(0)
    for _ in range(30):
        X = rng.normal(size=(4, 3))
        shown = talk.rank(X, name)
        labels = {each["id"]: float(sign * X[int(each["id"][1:]), 0] > 0.0) * 2.0 for each in shown["ranking"][:2]}
        talk.tell(shown["round"], labels, name)


def put(talk, name="test", status=200, **definition):
    return talk.ask("PUT", f"/v1/experiments/{name}", definition, status)


def look(talk, name="test"):
    return talk.ask("GET", f"/v1/experiments/{name}")


def show(talk, X, user="ann", name="test", status=200, **more):
    documents = [{"id": f"d{i}", "features": row} for i, row in enumerate(np.asarray(X, float).tolist())]
    return talk.ask("POST", f"/v1/experiments/{name}/rank", {"documents": documents, "user": user, **more}, status)


def tell(talk, number, name="test", status=200, **told):
    return talk.ask("POST", f"/v1/experiments/{name}/feedback", {"round": number, **told}, status)


def visit(talk, users, name="test", seed=3, noise=0.2, k=4):
    """Users who click, from the top, the first document whose first feature is high, or by chance."""
    rng = np.random.default_rng(seed)
    for user in users:
        X = rng.normal(size=(6, 3))
        shown = show(talk, X, f"user {user}", name)
        liked = [
            each["id"] for each in shown["ranking"][:k] if X[int(each["id"][1:]), 0] > 1.0 or rng.random() < noise / 3
        ]
        tell(talk, shown["round"], name, clicks=liked[:1])


ARMS = [{"ranker": "bad"}, {"ranker": "good"}]


@pytest.fixture
def arms(talk):
    teach(talk, "good")
    teach(talk, "bad", -1.0)
    return talk


@pytest.mark.parametrize(
    ("method", "more"), [("split", {}), ("team-draft", {}), ("optimized", {"k": 4}), ("sample-scored", {})]
)
def test_each_method_finds_the_better_arm(arms, method, more):
    put(arms, arms=ARMS, method=method, seed=5, promote=True, **more)
    for first in range(0, 600, 50):
        visit(arms, range(first, first + 50), seed=first)
        if look(arms)["state"] == "decided":
            break
    found = look(arms)
    assert (found["winner"], found["shows"]) == ("good", "good")
    (pair,) = found["pairs"]
    assert pair["better"] == "good"
    assert 0.0 < pair["interval"][0] < pair["difference"] < pair["interval"][1]
    assert pair["curve"][-1]["users"] == pair["users"] == found["users"]
    assert show(arms, np.eye(3))["arm"] == "good"  # everyone sees the winner


def test_more_than_two_arms(arms):
    teach(arms, "worse", -1.0)
    put(arms, arms=[*ARMS, {"ranker": "worse"}], method="team-draft", seed=5)
    for first in range(0, 900, 100):
        visit(arms, range(first, first + 100), seed=first)
        if look(arms)["winner"]:
            break
    assert look(arms)["winner"] == "good"
    assert [pair["level"] for pair in look(arms)["pairs"]] == pytest.approx([0.05 / 3] * 3)


def test_the_same_user_sees_the_same_arm(arms):
    put(arms, arms=ARMS, shares=[0.2, 0.8], seed=7)
    X = np.random.default_rng(0).normal(size=(3, 3))
    first = [show(arms, X, f"u{user}")["arm"] for user in range(200)]
    assert first == [show(arms, X, f"u{user}")["arm"] for user in range(200)]
    assert 20 <= first.count("bad") <= 60


def test_a_user_counts_once_and_the_arm_that_was_shown_learns(arms):
    put(arms, arms=ARMS, seed=7)
    X = np.random.default_rng(0).normal(size=(4, 3))
    one, other = show(arms, X, "ann"), show(arms, X, "ann")
    before = {name: arms.service.live(name).version for name in ("bad", "good")}
    assert tell(arms, one["round"], clicks=["d1"]) == {"counted": True, "learned": True}
    assert tell(arms, one["round"], clicks=["d1"]) == {"counted": True, "learned": True}  # sent twice
    assert tell(arms, other["round"], clicks=[]) == {"counted": False, "learned": True}
    assert look(arms)["users"] == 1
    for name in before:
        assert arms.service.live(name).version - before[name] == (2 if name == one["arm"] else 0)


def test_a_kept_version_does_not_learn_or_change(arms):
    version = arms.ask("POST", "/v1/rankers/good/versions")["version"]
    put(arms, arms=[{"ranker": "good", "version": version}, {"ranker": "bad"}], method="team-draft", seed=7)
    visit(arms, range(30))
    assert arms.service.live("good").version == version
    arms.play(20, "good")
    frozen = arms.service.experiments.find("test").arms[0].shown
    assert frozen.learner.rounds < arms.service.live("good").learner.rounds
    assert arms.ask("DELETE", f"/v1/rankers/good/versions/{version}", status=409) == "in_experiment"


def test_a_snapshot_that_is_an_arm_stays(tmp_path, serving):
    with serving(tmp_path / "state", snapshot_every=10, versions=2) as talk:
        teach(talk, "good")
        talk.written()
        first = talk.ask("GET", "/v1/rankers/good/versions")["kept"][0]
        put(talk, arms=[{"ranker": "good", "version": first}, {"ranker": "good"}])
        talk.play(50, "good")
        talk.written()
        assert first in talk.ask("GET", "/v1/rankers/good/versions")["kept"]


WRONG = [
    ({"arms": [{"ranker": "good"}, {"ranker": "nobody"}]}, 404, "unknown_ranker"),
    ({"arms": [{"ranker": "good"}, {"ranker": "good", "version": 77}]}, 404, "unknown_version"),
    ({"arms": [{"ranker": "good"}]}, 422, "bad_experiment"),
    ({"arms": [{"ranker": "good"}, {"ranker": "good"}]}, 422, "bad_experiment"),
    ({"arms": []}, 422, "invalid"),
    ({"shares": [0.5, 0.6]}, 422, "bad_experiment"),
    ({"shares": [1.0]}, 422, "invalid"),
    ({"shares": [0.5, 0.3, 0.2]}, 422, "bad_experiment"),
    ({"shares": [0.5, 0.5], "method": "team-draft"}, 422, "bad_experiment"),
    ({"method": "coin"}, 422, "invalid"),
    ({"method": "optimized", "k": 10}, 422, "bad_experiment"),
    ({"metric": "dcg"}, 422, "bad_experiment"),
    ({"metric": "quality"}, 422, "bad_experiment"),
    ({"level": 0.0}, 422, "invalid"),
    ({"guard": {"tolerance": 0.1}}, 422, "bad_experiment"),
    ({"method": "apprentice"}, 422, "bad_experiment"),
    ({"arms": [{"ranker": "good"}, {"ranker": "other"}]}, 422, "bad_experiment"),
]


def test_what_makes_no_sense_is_refused_and_changes_nothing(arms):
    arms.make("other", 2)
    for wrong, status, code in WRONG:
        assert put(arms, status=status, **{"arms": ARMS, **wrong}) == code, wrong
        assert arms.ask("GET", "/v1/experiments") == {"experiments": [], "set_aside": {}}


def test_names(arms):
    assert put(arms, "a" * 63, arms=ARMS)["name"] == "a" * 63
    for name in ("a" * 64, "-", "é"):
        assert put(arms, name, status=422, arms=ARMS) == "bad_name"
    for path in ("", "/rank", "/feedback"):
        method = "POST" if path else "GET"
        body = {"/rank": {"documents": [{"id": "a", "features": [1, 2, 3]}]}, "/feedback": {"round": 0, "clicks": []}}
        assert arms.ask(method, f"/v1/experiments/none{path}", body.get(path), 404) == "unknown_experiment"


def test_an_experiment_is_not_changed_under_way(arms):
    made = put(arms, arms=ARMS, shares=[0.5, 0.5])
    assert put(arms, arms=ARMS)["definition"] == made["definition"]  # the same one, its seed and shares left out
    visit(arms, range(5))
    for change in ({"shares": [0.1, 0.9]}, {"method": "team-draft"}, {"level": 0.1}, {"seed": 1}, {"k": 3}):
        assert put(arms, status=409, **{"arms": ARMS, **change}) == "exists"
    assert look(arms)["users"] == 5
    assert arms.ask("DELETE", "/v1/rankers/good", status=409) == "in_experiment"
    assert arms.ask("GET", "/v1/rankers/good")["name"] == "good"
    arms.ask("DELETE", "/v1/experiments/test")
    arms.ask("DELETE", "/v1/rankers/good")


def test_wrong_rounds_and_documents(arms):
    put(arms, arms=ARMS, k=2, seed=7)
    X = np.random.default_rng(0).normal(size=(4, 3))
    assert show(arms, X, "", status=422) == "user_needed"
    shown = show(arms, X)
    last = shown["ranking"][2]["id"]
    assert tell(arms, shown["round"], status=422, clicks=[last]) == "not_shown"
    assert tell(arms, shown["round"], status=422, labels={"nobody": 1}) == "not_shown"
    assert tell(arms, shown["round"] + 1, status=404, clicks=[]) == "unknown_round"
    assert tell(arms, shown["round"], status=422, clicks=[], labels={"d0": 1}) in ("invalid",)
    documents = [{"id": "a", "features": [1, 2, 3]}] * 2
    body = {"documents": documents, "user": "ann"}
    assert arms.ask("POST", "/v1/experiments/test/rank", body, 422) == "duplicate_document"
    assert look(arms)["users"] == 0


def test_clicks_count_for_arms_that_learn_from_labels_only(talk):
    for name in ("one", "two"):
        talk.make(name, 3, algorithm="hinge")
    put(talk, arms=[{"ranker": "one"}, {"ranker": "two"}])
    X = np.random.default_rng(0).normal(size=(4, 3))
    assert tell(talk, show(talk, X)["round"], clicks=["d1"]) == {"counted": True, "learned": False}
    shown = show(talk, X, "bob")
    first = {each["id"]: float(place == 1) for place, each in enumerate(shown["ranking"])}
    assert tell(talk, shown["round"], labels=first) == {"counted": True, "learned": True}


def test_an_end_without_a_winner(arms):
    put(arms, arms=ARMS, users=10, seed=1)
    rng = np.random.default_rng(0)
    for user in range(10):
        tell(arms, show(arms, rng.normal(size=(3, 3)), str(user))["round"], clicks=[])
    found = look(arms)
    assert (found["state"], found["winner"], found["shows"]) == ("ended", None, "bad")
    assert arms.ask("POST", "/v1/experiments/test/promote", status=409) == "undecided"


def test_a_winner_is_promoted_when_asked(arms):
    put(arms, arms=ARMS, method="team-draft", seed=5)
    for first in range(0, 600, 50):
        visit(arms, range(first, first + 50), seed=first)
        if look(arms)["winner"]:
            break
    assert show(arms, np.eye(3))["arm"] is None
    assert arms.ask("POST", "/v1/experiments/test/promote")["shows"] == "good"
    assert show(arms, np.eye(3))["arm"] == "good"


def everything(experiment):
    """All that a replay has to give back, to the bit."""
    state = experiment.state_entry().body
    answer = msgspec.json.encode(views.experiment(experiment))
    return msgspec.msgpack.decode(state), answer, dict(experiment.rounds.open), experiment.rounds.next


@pytest.mark.parametrize("method", ["split", "team-draft"])
@pytest.mark.parametrize("often", [5_000, 7])
def test_a_crash_loses_nothing_and_a_replay_is_the_same_to_the_bit(tmp_path, serving, monkeypatch, method, often):
    from ranktron.store.experiments import experiment as module

    monkeypatch.setattr(module, "_STATE_INTERVAL", often)
    with serving(tmp_path / "state") as talk:
        teach(talk, "good")
        teach(talk, "bad", -1.0)
        put(talk, arms=ARMS, method=method, seed=5)
        visit(talk, range(60))
        waiting = show(talk, np.eye(3), "late")
        again = [show(talk, np.eye(3), f"u{user}")["arm"] for user in range(20)]
        talk.written()
        found = talk.service.experiments.find("test")
        before = everything(found)
        talk.crash()
    with closing(sqlite3.connect(tmp_path / "state" / "log.sqlite")) as connection, connection:
        span = found.id * 2**40, (found.id + 1) * 2**40
        (entries,) = connection.execute("SELECT count(*) FROM entries WHERE key >= ? AND key < ?", span).fetchone()
    connection.close()
    assert entries == found.version if often == 5_000 else 7 <= entries < found.version
    with serving(tmp_path / "state") as talk:
        after = everything(talk.service.experiments.find("test"))
        after[0]["next"] = before[0]["next"]  # numbers that were set aside are not given out again
        assert after[0] == before[0]
        assert after[2] == before[2]
        assert again == [show(talk, np.eye(3), f"u{user}")["arm"] for user in range(20)]
        assert tell(talk, waiting["round"], clicks=[]) == {"counted": True, "learned": method == "split"}
        assert show(talk, np.eye(3), "later")["round"] > waiting["round"]


def test_a_damaged_log_sets_the_experiment_aside(tmp_path, serving):
    with serving(tmp_path / "state") as talk:
        teach(talk, "good")
        teach(talk, "bad", -1.0)
        put(talk, arms=ARMS, seed=5)
        visit(talk, range(10))
        number = talk.service.experiments.find("test").id
        talk.crash()
    with closing(sqlite3.connect(tmp_path / "state" / "log.sqlite")) as connection, connection:
        connection.execute("UPDATE entries SET body = x'00' WHERE key = ?", (number * 2**40 + 4,))
    connection.close()
    with serving(tmp_path / "state") as talk:
        assert "damaged" in talk.ask("GET", "/v1/experiments")["set_aside"]["test"]
        assert show(talk, np.eye(3), status=409) == "set_aside"
        assert put(talk, arms=ARMS, status=409) == "set_aside"
        talk.play(3, "good")  # the rankers serve
        talk.ask("DELETE", "/v1/experiments/test")
        put(talk, arms=ARMS, seed=5)


def test_rounds_close_by_themselves(tmp_path, serving):
    with serving(tmp_path / "state") as talk:
        teach(talk, "good")
        teach(talk, "bad", -1.0)
        put(talk, arms=ARMS, close_after=0.001, seed=1)
        show(talk, np.eye(3), "ann")

        async def close():
            import asyncio

            while talk.service.experiments.find("test").rounds.open:
                talk.service.close_rounds()
                await asyncio.sleep(0.01)

        talk.runner.run(close())
        assert look(talk)["users"] == 1


def test_large_lists_are_ranked_the_same(arms):
    put(arms, arms=ARMS, method="team-draft", seed=1)
    X = np.random.default_rng(0).normal(size=(900, 3))
    small = arms.service.experiments.find("test")
    documents = [{"id": f"d{i}", "features": row} for i, row in enumerate(X.tolist())]
    first = small.rounds.next
    shown = show(arms, X)
    small.rounds.next = first  # the same number gives the same page
    before, routes.MAX_CHUNK = routes.MAX_CHUNK, 10
    try:
        again = arms.ask("POST", "/v1/experiments/test/rank", {"documents": documents, "user": "ann"})
    finally:
        routes.MAX_CHUNK = before
    assert again == shown


def test_too_many_open_pages_are_dropped(tmp_path, serving):
    with serving(tmp_path / "state", open_bytes=20_000) as talk:
        teach(talk, "good")
        teach(talk, "bad", -1.0)
        put(talk, arms=ARMS, method="team-draft", seed=1)
        first = show(talk, np.eye(3))["round"]
        for _ in range(200):
            show(talk, np.eye(3))
        experiment = talk.service.experiments.find("test")
        assert experiment.rounds.open.size < 60_000
        assert tell(talk, first, status=410, clicks=[]) == "round_gone"
