"""Large requests and batches: the same answers, in the same order, and others in between."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from ranktron.data.imputation import Imputer
from ranktron.service.http import endpoint
from ranktron.service.http.endpoint import answer_in_turns, read_in_turns
from ranktron.store.errors import RequestError
from ranktron.store.messages import Definition, Document, FullRequest, RankRequest
from ranktron.store.rankers.open_rounds import unpack

WIDTH = 500


def request(rng, documents=100):
    rows = rng.normal(size=(documents, WIDTH)).astype(np.float32).tolist()
    return RankRequest([Document(f"d{i}", row) for i, row in enumerate(rows)])


@pytest.fixture
def service(talk):
    talk.runner.run(talk.service.create("shop", Definition([f"f{j}" for j in range(WIDTH)])))
    talk.runner.run(talk.service.create("full", Definition([f"f{j}" for j in range(WIDTH)], "hinge")))
    return talk.service


def test_a_large_list_is_ranked_like_any_other_while_others_are_answered(talk, service):
    large, turns = request(np.random.default_rng(0)), []

    async def others():
        while True:
            turns.append(service.ranker("shop").rounds)
            await asyncio.sleep(0)

    async def both():
        watching = asyncio.create_task(others())
        answer = await answer_in_turns(service, service.rank, "shop", large)
        watching.cancel()
        return answer

    answer = talk.runner.run(both())
    assert len(turns) > 5
    direct = service.rank("shop", large)
    assert {each.id: each.score for each in answer.ranking} == {each.id: each.score for each in direct.ranking}
    labels = {each.id: float(i % 3) for i, each in enumerate(large.documents)}
    full = FullRequest(large.documents, labels)
    assert talk.runner.run(answer_in_turns(service, service.full, "full", full)).version == 1


def test_a_batch_numbers_its_rounds_in_order_and_refuses_one_alone(talk, service):
    rng = np.random.default_rng(0)
    bad = RankRequest([*request(rng).documents, Document("d0", [0.0] * WIDTH)])
    requests = [request(rng, 1), request(rng), request(rng, 2), bad, request(rng)]
    answers = talk.runner.run(service.batch(requests, service.rank, "shop")).answers
    assert [getattr(answer, "round", None) for answer in answers] == [0, 1, 2, None, 3]
    assert answers[3].error.code == "duplicate_document"


def test_a_ranker_that_is_deleted_meanwhile(talk, service):
    async def both():
        ranking = asyncio.ensure_future(
            answer_in_turns(service, service.rank, "shop", request(np.random.default_rng(0)))
        )
        await asyncio.sleep(0)
        await service.delete("shop")
        return await ranking

    with pytest.raises(RequestError, match="no ranker 'shop'"):
        talk.runner.run(both())


@pytest.mark.parametrize("full", [False, True])
def test_a_ranker_that_is_made_again_with_its_features_in_another_order(talk, service, full, monkeypatch):
    """What was read for the old one is read again: the columns are those of the new one."""
    name, kind = ("full", "hinge") if full else ("shop", "topk")
    large = request(np.random.default_rng(0))
    names = [f"f{j}" for j in range(WIDTH)]
    large = RankRequest([Document(each.id, dict(zip(names, each.features, strict=True))) for each in large.documents])
    labels = {each.id: float(i % 3) for i, each in enumerate(large.documents)}

    async def read_and_replace(documents, order, missing):
        read = await read_in_turns(documents, order, missing)
        if order[0] == "f0":
            await service.delete(name)
            await service.create(name, Definition(names[::-1], kind, scale="none"))
        return read

    monkeypatch.setattr(endpoint, "read_in_turns", read_and_replace)
    sent = FullRequest(large.documents, labels) if full else large
    answer = talk.runner.run(answer_in_turns(service, service.full if full else service.rank, name, sent))
    live = service.live(name)
    if full:
        talk.runner.run(service.create("direct", Definition(names[::-1], kind, scale="none")))
        talk.runner.run(service.full("direct", FullRequest(large.documents, labels)))
        assert live.weights.any()
        assert live.weights.tolist() == service.live("direct").weights.tolist()
    else:
        shown = unpack(live.rounds.open[live.rounds.ids.number_of(answer.round)])
        first = next(each for each in large.documents if each.id == shown.ids[0])
        assert shown.features()[0].tolist() == [np.float32(first.features[each]) for each in names[::-1]]


def test_a_ranker_whose_model_loses_its_rule_for_missing_values(talk, service):
    """No missing value reaches a learner that does not know what it is."""
    large = request(np.random.default_rng(0))
    large.documents[0].features[3] = None
    plain = service.live("shop").template
    rule = Imputer("zero", np.zeros(WIDTH), np.zeros(0, np.int64))

    async def both():
        service.live("shop").template = replace(plain, imputer=rule)
        ranking = asyncio.ensure_future(answer_in_turns(service, service.rank, "shop", large))
        await asyncio.sleep(0)
        service.live("shop").template = plain
        return await ranking

    with pytest.raises(RequestError, match="rule for missing values"):
        talk.runner.run(both())
    assert service.ranker("shop").rounds == 0


def test_a_ranker_that_changes_all_the_time(talk, service, monkeypatch):
    forms = iter(range(99))
    monkeypatch.setattr(endpoint, "_document_format", lambda live: (live.names, next(forms) % 2 == 0))
    with pytest.raises(RequestError, match="replaced several times") as refused:
        talk.runner.run(answer_in_turns(service, service.rank, "shop", request(np.random.default_rng(0))))
    assert refused.value.status == 409
