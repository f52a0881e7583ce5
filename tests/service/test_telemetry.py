"""Metrics: the text is what Prometheus reads, and the numbers are right. And memory stays flat."""

import gc
import resource

import numpy as np
import pytest
from prometheus_client import parser as prometheus

import ranktron
from ranktron.data.synthetic import WebSearch


def samples(talk):
    text = talk.request("GET", "/metrics").content.decode()
    return {
        (sample.name, sample.labels.get("ranker") or sample.labels.get("route"), sample.labels.get("le")): sample.value
        for family in prometheus.text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_metrics(talk):
    talk.make()
    talk.play(10)
    talk.rank(np.eye(3))
    found = samples(talk)
    rank = "POST /v1/rankers/{name}/rank"
    assert found["ranktron_request_seconds_count", rank, None] == 11
    assert found["ranktron_request_seconds_bucket", rank, "+Inf"] == 11
    below = [value for (name, route, _), value in found.items() if name.endswith("_bucket") and route == rank]
    assert below == sorted(below)
    assert found["ranktron_rounds_total", "shop", None] == 11
    assert found["ranktron_rounds_open", "shop", None] == 1
    assert found["ranktron_feedback_total", "shop", None] == 10
    assert found["ranktron_version", "shop", None] == 10
    assert found["ranktron_weights_norm", "shop", None] == pytest.approx(np.linalg.norm(talk.weights()))
    explored = found["ranktron_explored_total", "shop", None]
    assert found["ranktron_exploration_share", "shop", None] == pytest.approx(explored / 11)
    board = talk.ask("GET", "/v1/rankers/shop/dashboard")
    assert found["ranktron_observed_ndcg", "shop", None] == pytest.approx(board["curve"][-1]["mean"])
    assert found["ranktron_update_norm", "shop", None] == pytest.approx(board["updates"]["last"])
    assert found["ranktron_ready", None, None] == 1
    assert found["ranktron_log_bytes", None, None] > 0
    assert found["ranktron_rankers_set_aside", None, None] == 0


def test_distances_of_features(talk):
    lists = WebSearch(features=4, documents=8).rounds(420)
    trained = ranktron.HingePerceptron().fit(lists.X[:1600], lists.labels[:1600], group=[8] * 200)
    header = {"Content-Type": "application/octet-stream"}
    assert talk.request("PUT", "/v1/rankers/shop", trained.model_.to_bytes(), **header).status == 200
    assert "ranktron_feature_distance{" not in talk.request("GET", "/metrics").content.decode()
    for change in (1.0, 1000.0):
        for round in lists[200:310] if change == 1.0 else lists[310:]:
            talk.rank(np.column_stack([round.X[:, :2], change * round.X[:, 2], round.X[:, 3]]))
            talk.service.engine._counted_at = 0.0
            talk.service.close_rounds()
        board = talk.ask("GET", "/v1/rankers/shop/dashboard")["distances"]
        found = {
            (sample.name, sample.labels.get("feature")): sample.value
            for family in prometheus.text_string_to_metric_families(talk.request("GET", "/metrics").content.decode())
            for sample in family.samples
            if sample.labels.get("ranker") == "shop"
        }
        for each in board["features"]:
            assert found["ranktron_feature_distance", each["feature"]] == pytest.approx(each["distance"])
        left = [each["feature"] for each in board["features"] if each["left"]]
        assert found["ranktron_features_left", None] == len(left)
        assert left == ([] if change == 1.0 else ["3"])
    assert (board["reference"], board["lists"], board["needed"]) == ("training data", 220, 100)


def test_observed_quality_is_that_of_the_labels_received(talk):
    talk.make(labels=[0, 4])
    values = []
    for grades in ((1, 0), (0, 1), (0, 0), (2, 2)):
        talk.answer(talk.rank(np.eye(3)), grades)
        values.append(talk.ask("GET", "/v1/rankers/shop/dashboard")["curve"][-1]["value"])
    assert values == pytest.approx([1.0, 1.0 / np.log2(3.0), 0.0, 1.0])


def test_the_curve_is_thinned_evenly(talk):
    talk.make()
    live = talk.service.live("shop")
    for number in range(5000):
        live.stats.answered(number, 0.5, number % 2 == 0, 0.1)
    rounds = [point.round for point in live.stats.curve()]
    assert 250 <= len(rounds) <= 500
    assert len(set(np.diff(rounds))) == 1


@pytest.mark.slow
def test_memory_stays_flat(serving, tmp_path):
    """A short soak; a longer one was run by hand."""
    from ranktron.store.messages import Document, FeedbackRequest, RankRequest

    settings = {"max_open": 500, "remembered": 500, "explained_rounds": 100, "snapshot_every": 1000, "versions": 2}
    rng = np.random.default_rng(0)
    lists = [[Document(f"d{i}", row) for i, row in enumerate(rng.normal(size=(10, 5)).tolist())] for _ in range(20)]
    with serving(tmp_path, **settings) as talk:
        talk.make(features=5)

        async def soak(rounds):
            for number in range(rounds):
                shown = talk.service.rank("shop", RankRequest(lists[number % 20]))
                if number % 2:
                    labels = {shown.ranking[0].id: 1.0, shown.ranking[1].id: 0.0}
                    await talk.service.feedback("shop", FeedbackRequest(shown.round, labels))

        sizes = []
        for _ in range(5):
            talk.runner.run(soak(4000))
            gc.collect()
            sizes.append(_resident())
        assert sizes[-1] - sizes[1] < 8_000_000, sizes
        assert talk.service.journal.size < 20_000_000
        live = talk.service.live("shop")
        # they are counted every so many rankings
        assert len(live.rounds.open) < 500 + talk.service.engine._sweep_interval
        assert len(live.rounds.answered) <= 500


def _resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_full_lists_count_as_updates(talk):
    talk.make(algorithm="hinge")
    documents = [{"id": "x", "features": [1, 0, 0]}, {"id": "y", "features": [0, 1, 0]}]
    talk.ask("POST", "/v1/rankers/shop/full", {"documents": documents, "labels": {"x": 0, "y": 1}})
    updates = talk.ask("GET", "/v1/rankers/shop/dashboard")["updates"]
    assert updates["last"] == updates["norm"] == pytest.approx(float(np.linalg.norm(talk.weights())))
    assert updates["last"] > 0.0
