"""The client's calls, against the application itself."""

import re
from pathlib import Path

import pytest

from ranktron.errors import DataError
from ranktron.service.client import Client, encode_arm


@pytest.fixture
def client(talk, monkeypatch):
    """A client whose requests go to the application without a socket."""
    client = Client()

    def send(method, path, body, kind, repeatable=True):
        answer = talk.request(method, path, body, **({"content_type": kind} if body else {}))
        assert answer.status == 200, answer
        return answer.content

    monkeypatch.setattr(client, "_send", send)
    return client


def test_an_experiment_from_its_beginning_to_its_end(client):
    client.create("one", ["x"])
    client.create("two", ["x"], parameters={"seed": 9})
    version = client.keep("one")["version"]
    made = client.create_experiment("test", [f"one:{version}", "two"], method="team-draft", seed=4, users=1)
    assert made["definition"]["arms"] == [{"ranker": "one", "version": version}, {"ranker": "two", "version": None}]
    shown = client.rank_experiment("test", {"a": [1.0], "b": {"x": 2.0}}, user="ann", query="tea")
    assert {each["id"] for each in shown["ranking"]} == {"a", "b"}
    assert client.feedback_experiment("test", shown["round"], clicks=["a"]) == {"counted": True, "learned": False}
    assert client.experiment("test")["state"] == "ended"
    assert [each["name"] for each in client.experiments()] == ["test"]
    client.delete_experiment("test")
    client.create_experiment("watch", ["two"], method="apprentice")
    watched = client.rank_experiment("watch", {"a": [1.0], "b": [2.0]}, shown=["b", "a"])
    assert client.feedback_experiment("watch", watched["round"], gains={"b": 1})["learned"]
    assert client.experiment("watch")["agreement"]["rounds"] == 1


def test_arms_are_names_or_versions():
    for wrong in ("shop:", "shop:new", "shop:-1"):
        with pytest.raises(DataError, match="kept versions"):
            encode_arm(wrong)


def test_the_three_steps_of_those_who_come_from_personalizer(client):
    """The guide's own lines, but for the one that opens a connection."""
    guide = (Path(__file__).parents[3] / "docs" / "from-personalizer.md").read_text()
    steps = re.search(r"```text\nclient = .*?\n(.*?)```", guide, re.DOTALL).group(1)
    documents = {"pasta": {"sweet": 0.0, "quick": 1.0}, "cake": {"sweet": 1.0, "quick": 0.0}}
    names = {"client": client, "documents": documents}
    exec(steps, names)
    assert client.experiment("watch")["agreement"]["rounds"] == 1
    assert client.experiment("live")["state"] == "running"
    taught = names["page"]["arm"] == "menu"  # a tenth of the users sees the version that was kept, which does not learn
    assert client.rankers()[0]["version"] == 2 + taught


def test_the_session_of_those_who_come_from_metarank(client):
    guide = (Path(__file__).parents[3] / "docs" / "from-metarank.md").read_text()
    steps = re.search(r"```text\nclient = .*?\n(.*?)```", guide, re.DOTALL).group(1)
    exec(steps, {"client": client})
    assert client.rankers()[0]["version"] == 1
