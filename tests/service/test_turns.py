"""Large requests and batches: the same answers, in the same order, and others in between."""

import asyncio

import numpy as np
import pytest

from ranktron.service.errors import RequestError
from ranktron.service.turns import answer_in_turns
from ranktron.service.types import Definition, Document, FullRequest, RankRequest

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
