"""The guard and the apprentice: a ranker that becomes worse is sent back by itself, and one that watches learns."""

import numpy as np
import pytest

from tests.store.experiments.test_experiments import look, put, show, teach, tell

FEATURES = 3


def guarded(talk, **guard):
    """A ranker that is good, guarded by its own version; the number of that version."""
    teach(talk, "good")
    version = talk.ask("POST", "/v1/rankers/good/versions")["version"]
    arms = [{"ranker": "good", "version": version}, {"ranker": "good"}]
    put(talk, arms=arms, shares=[0.5, 0.5], seed=2, guard={"tolerance": 0.05, "run_length": 500.0, **guard})
    return version


def come(talk, users, honest=True, seed=0):
    """Users click what is good; those of the ranker that is guarded click what is bad, if they are not honest."""
    rng = np.random.default_rng(seed)
    for user in users:
        X = rng.normal(size=(6, FEATURES))
        shown = show(talk, X, f"user {user}")
        ids = [each["id"] for each in shown["ranking"]]
        best = max(ids, key=lambda each: X[int(each[1:]), 0])
        clicked = best if honest or shown["arm"] != "good" else ids[-1]
        tell(talk, shown["round"], clicks=[clicked])


def wait_for_note(talk):
    experiment = talk.service.experiments.find("test")
    for _ in range(100):
        talk.written()
        if experiment.noted:
            return experiment.noted
    raise AssertionError("it did not go back")


def break_it(talk, first=0):
    for start in range(first, first + 600, 40):
        come(talk, range(start, start + 40), honest=False, seed=start)
        if look(talk)["state"] == "went back":
            return
    raise AssertionError("the guard noticed nothing")


def test_a_guard_goes_back_by_itself(talk):
    version = guarded(talk)
    before = talk.service.live("good").version
    come(talk, range(60))
    learnt = talk.weights("good").copy()
    assert look(talk)["state"] == "running"
    break_it(talk, 1000)
    why = wait_for_note(talk)
    found = look(talk)
    assert f"good:{version} is shown again" in why
    assert found["shows"] == f"good:{version}"
    assert found["guard"]["alarm"] == found["users"]
    live = talk.service.live("good")
    frozen = talk.service.experiments.find("test").arms[0].shown
    assert live.version > before
    assert (live.weights == frozen.weights).all()  # rolled back
    assert not (live.weights == learnt).all()
    assert show(talk, np.eye(3), "anyone")["arm"] == f"good:{version}"
    metrics = talk.ask("GET", "/metrics").decode()
    assert 'ranktron_guard_alarm{experiment="test"} 1.0' in metrics
    assert talk.ask("POST", "/v1/experiments/test/promote", status=409) == "undecided"


def test_why_is_in_the_journal_and_survives(tmp_path, serving):
    with serving(tmp_path / "state") as talk:
        guarded(talk)
        break_it(talk)
        why, weights = wait_for_note(talk), talk.weights("good").copy()
        talk.crash()
    with serving(tmp_path / "state") as talk:
        assert talk.service.experiments.find("test").noted == why
        assert look(talk)["state"] == "went back"
        assert (talk.weights("good") == weights).all()


def test_going_back_is_done_after_a_crash_in_between(tmp_path, serving, monkeypatch):
    from ranktron.service.experiments import FollowUps

    with serving(tmp_path / "state") as talk:
        guarded(talk)
        with monkeypatch.context() as patch:
            patch.setattr(FollowUps, "_roll_back", lambda self, experiment: None)
            break_it(talk)
            talk.crash()
    with serving(tmp_path / "state") as talk:
        assert show(talk, np.eye(3), "anyone")["arm"].startswith("good:")  # at once, whatever the rest takes
        talk.runner.run(later(talk))
        assert wait_for_note(talk)
        frozen = talk.service.experiments.find("test").arms[0].shown
        assert (talk.weights("good") == frozen.weights).all()


async def later(talk):
    talk.service.close_rounds()


def test_promotion_needs_certainty_and_makes_a_new_incumbent(tmp_path, serving):
    with serving(tmp_path / "state") as talk:
        version = guarded(talk, tolerance=0.4)
        come(talk, range(10))
        assert talk.ask("POST", "/v1/experiments/test/promote", status=409) == "undecided"
        for start in range(0, 1000, 50):
            come(talk, range(start, start + 50), seed=start)
            if look(talk)["guard"]["promotable"]:
                break
        answer = talk.ask("POST", "/v1/experiments/test/promote")
        new = answer["definition"]["arms"][0]["version"]
        assert new > version
        assert answer["users"] == 0
        talk.crash()
    with serving(tmp_path / "state") as talk:
        assert look(talk)["definition"]["arms"][0]["version"] == new
        talk.play(1, "good")
        talk.ask("POST", "/v1/rankers/good/versions")
        talk.ask("DELETE", f"/v1/rankers/good/versions/{version}")  # which nobody needs any more
        assert talk.ask("DELETE", f"/v1/rankers/good/versions/{new}", status=409) == "in_experiment"


@pytest.mark.parametrize("versions", [(None, None), (1, 1), (None, 1)])
def test_a_guard_guards_a_ranker_by_its_own_version(talk, versions):
    teach(talk, "good")
    version = talk.ask("POST", "/v1/rankers/good/versions")["version"]
    arms = [{"ranker": "good", **({"version": version} if each else {})} for each in versions]
    assert put(talk, arms=arms, guard={"tolerance": 0.1}, status=422) == "bad_experiment"


def test_an_apprentice_learns_and_says_how_often_it_agrees(tmp_path, serving):
    """The client's own system orders by the second feature; users like the first one."""
    with serving(tmp_path / "state") as talk:
        talk.make("shop", 3, parameters={"k": 3, "seed": 1})
        put(talk, arms=[{"ranker": "shop"}], method="apprentice", k=3)
        rng = np.random.default_rng(0)
        assert show(talk, np.eye(3), status=422) == "shown_needed"
        assert show(talk, np.eye(3), shown=["d0", "d0"], status=422) == "wrong_order"
        assert show(talk, np.eye(3), shown=["nobody"], status=422) == "wrong_order"
        would = []
        for _ in range(150):
            X = rng.normal(size=(3, 3))
            own = [f"d{item}" for item in np.argsort(-X[:, 1])]
            answer = show(talk, X, shown=own)
            would.append(int(answer["ranking"][0]["id"][1:]) == X[:, 0].argmax())
            assert tell(talk, answer["round"], clicks=[f"d{X[:, 0].argmax()}"])["learned"]
        assert np.mean(would[-50:]) > 0.9
        found = look(talk)["agreement"]
        assert found["rounds"] == 150
        assert 0.1 < found["same_page"] < found["same_first"] < 0.6
        assert found["not_identified"] == pytest.approx(1.0 - found["same_page"])
        low, high = found["interval_where_same"]
        assert 0.0 <= low < found["reward_where_same"] <= high <= 1.0
        assert look(talk)["pairs"] == []
        weights, before = talk.weights().copy(), look(talk)
        talk.crash()
    with serving(tmp_path / "state") as talk:
        assert (talk.weights() == weights).all()
        assert look(talk)["agreement"] == before["agreement"]
        assert look(talk)["state"] == "running"
