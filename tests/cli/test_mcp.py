"""`ranktron mcp`, as agents use it: the package's own client, over standard input and output."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

import ranktron

NAMES = ["bm25", "recency"]
NOTES = {"n1": {"bm25": 0.9, "recency": 0.1}, "n2": {"bm25": 0.2, "recency": 1.0}}


def talk(folder, conversation):
    """What a conversation with the server gives."""
    mcp = pytest.importorskip("mcp")
    path = os.pathsep.join([str(Path(ranktron.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    arguments = ["-m", "ranktron", "mcp", "--dir", str(folder)]
    program = mcp.StdioServerParameters(command=sys.executable, args=arguments, env={**os.environ, "PYTHONPATH": path})

    async def meet():
        async with mcp.Client(program) as client:
            return await conversation(client)

    return asyncio.run(meet())


def answer(result):
    assert not result.is_error, result
    return result.structured_content


def test_a_model_ranks_gives_feedback_and_asks_why(tmp_path):
    pytest.importorskip("mcp")
    with ranktron.open(tmp_path / "memory") as store:
        store.ranker("notes", features=NAMES, start={"bm25": 2.0})

    async def conversation(client):
        assert {tool.name for tool in (await client.list_tools()).tools} == {"rank", "feedback", "explain"}
        assert "notes: features bm25, recency; learns from the first 10" in client.instructions
        shown = []
        for _ in range(5):
            given = {"ranker": "notes", "documents": NOTES, "query": "backup", "user": "ann"}
            shown.append(answer(await client.call_tool("rank", given)))
            used = {"ranker": "notes", "ranking": shown[-1]["ranking"], "used": ["n2"]}
            assert answer(await client.call_tool("feedback", used))["learned"] in (True, False)
        why = answer(await client.call_tool("explain", {"ranker": "notes", "ranking": shown[-1]["ranking"]}))
        return shown, why

    shown, why = talk(tmp_path / "memory", conversation)
    assert sorted(shown[0]["items"]) == ["n1", "n2"]
    assert dict(zip(shown[0]["items"], shown[0]["scores"], strict=True)) == pytest.approx({"n1": 1.8, "n2": 0.4})
    scores = dict(zip(shown[-1]["items"], shown[-1]["scores"], strict=True))
    assert scores["n2"] > 0.4
    for document in why["documents"]:
        assert sum(document["contributions"].values()) == pytest.approx(scores[document["id"]])
    with ranktron.open(tmp_path / "memory") as store:  # what was learnt stays
        assert store.ranker("notes").weights["recency"] > 0.0


def test_what_is_refused_is_said_in_a_sentence(tmp_path):
    pytest.importorskip("mcp")
    with ranktron.open(tmp_path / "memory") as store:
        store.ranker("notes", features=NAMES)

    async def conversation(client):
        results = [
            await client.call_tool("rank", {"ranker": "other", "documents": NOTES}),
            await client.call_tool("rank", {"ranker": "notes", "documents": {"n1": {"bm25": 1.0}}}),
            await client.call_tool("feedback", {"ranker": "notes", "ranking": 5, "used": []}),
            await client.call_tool("explain", {"ranker": "notes", "ranking": 5}),
        ]
        assert all(result.is_error for result in results)
        return [result.content[0].text for result in results]

    unknown, lacking, *gone = talk(tmp_path / "memory", conversation)
    assert "there is no ranker 'other'" in unknown
    assert "lacks 'recency'" in lacking
    assert all("5" in text for text in gone)


def test_without_the_package_it_says_what_to_install(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    code, _, err = run("mcp", "--dir", str(tmp_path / "memory"))
    assert code == 1
    assert "pip install 'ranktron[mcp]'" in err
    assert not (tmp_path / "memory").exists()
