"""Open rounds: bounded in number, bytes and time, at a price that does not grow with their number."""

import time

import numpy as np
import pytest

from ranktron.store.rankers.open_rounds import _BLOCK_SIZE, _MAX_BLOCKS, OVERHEAD, AnsweredRounds, OpenRounds

ROUND = np.eye(3)


def seconds(work, repeats=5):
    """The quickest of several runs."""
    took = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return min(took)


def test_the_oldest_is_found_as_quickly_among_many():
    def cost(count):
        rounds = OpenRounds(dict.fromkeys(range(count), b""))
        following = count

        def turn():
            nonlocal following
            for _ in range(500):
                del rounds[next(iter(rounds))]
                rounds[following] = b""
                following += 1

        for _ in range(count // 1000):  # half as many are dropped as there are
            turn()
        return seconds(turn)

    assert cost(200_000) < 5 * cost(1_000)


def test_the_bytes_of_open_rounds_are_counted():
    rounds = OpenRounds({1: b"12345"})
    rounds[2] = b"123"
    rounds[2] = b"1"
    assert rounds.size == 6 + 2 * OVERHEAD
    assert rounds.pop(1) == b"12345"
    assert rounds.size == 1 + OVERHEAD
    assert (list(rounds), rounds.get(1), 2 in rounds) == ([2], None, True)


def test_open_rounds_are_bounded_in_bytes_over_all_rankers(serving, tmp_path):
    with serving(tmp_path / "measured") as talk:
        talk.make()
        talk.rank(ROUND)
        size = talk.service.live("shop").rounds.open.size
    with serving(tmp_path / "state", open_bytes=10 * size + size // 2, max_open=100) as talk:
        for name in ("shop", "other"):
            talk.make(name)
        few = [talk.rank(ROUND, "other") for _ in range(3)]
        many = [talk.rank(ROUND) for _ in range(20)]
        lives = talk.service.live("shop"), talk.service.live("other")
        assert sum(live.rounds.open.size for live in lives) <= 10 * size + size // 2
        assert [len(live.rounds.open) for live in lives] == [7, 3]  # the one that has most gives way
        assert talk.tell(many[0]["round"], {"d0": 1}, status=410) == "round_gone"
        assert talk.answer(many[-7])["learned"]
        assert talk.answer(few[0], name="other")["learned"]
        assert b'ranktron_rounds_dropped_total{ranker="shop"} 13.0' in talk.ask("GET", "/metrics")
        talk.crash()
    with serving(tmp_path / "state") as talk:
        assert talk.ask("GET", "/v1/rankers/shop")["open"] == 6


def test_a_round_that_is_being_answered_is_not_dropped(talk):
    talk.make()
    live = talk.service.live("shop")
    shown = [talk.rank(ROUND)["round"] for _ in range(3)]
    live.rounds.unwritten[shown[0]] = None
    live.drop(10**9)
    assert list(live.rounds.open) == [shown[0]]
    del live.rounds.unwritten[shown[0]]


def test_what_is_known_of_rounds_that_were_answered():
    answered = AnsweredRounds()
    numbers = np.random.default_rng(0).integers(0, 3 * _BLOCK_SIZE, 1000).tolist()
    for number in numbers:
        answered.add(number)
    again = AnsweredRounds()
    again.restore(answered.state())
    for each in (answered, again):
        assert [number for number in range(3 * _BLOCK_SIZE) if number in each] == sorted(set(numbers))
        assert each.knows(0)
    for block in range(_MAX_BLOCKS + 1):
        again.add(block * _BLOCK_SIZE + 1)
    assert not again.knows(_BLOCK_SIZE - 1)
    assert again.knows(_BLOCK_SIZE)
    again.add(5)  # too old to be noted
    assert 5 not in again


@pytest.mark.parametrize("ending", ["stopped", "crashed"])
def test_a_late_duplicate_is_told_the_truth(serving, tmp_path, ending):
    def message(talk, number):
        content = b'{"round": %d, "labels": {"d0": 1}}' % number
        return talk.request("POST", "/v1/rankers/shop/feedback", content, content_type="application/json").content

    settings = {"remembered": 3, "snapshot_every": 4, "max_open": 5, "explained_rounds": 2}
    talk = serving(tmp_path, **settings).__enter__()
    talk.make()
    dropped = talk.rank(ROUND)["round"]
    numbers = talk.play(10)
    for _ in range(6):
        talk.rank(ROUND)
    for _ in range(2):
        assert b"it was answered before, and learnt from then" in message(talk, numbers[0])
        assert b"nothing was learnt from it" in message(talk, dropped)
        if ending == "crashed":
            talk.crash()
        talk.__exit__()
        talk = serving(tmp_path, **settings).__enter__()
    talk.__exit__()
