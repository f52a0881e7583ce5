"""What is noted of training, round by round or many rounds at once."""

import numpy as np
import pytest

from ranktron.learners.schedule import History
from ranktron.types import Feedback, Ranking, Turn

NOTHING = Ranking(np.zeros(0, np.int64), np.zeros(0), 0), Feedback([], [])


@pytest.mark.parametrize("every", [1, 3, 7, 50])
@pytest.mark.parametrize("metrics", [0, 2])
def test_many_rounds_at_once_are_noted_as_one_by_one(every, metrics):
    rng = np.random.default_rng(every)
    one, many = History(), History()
    for count in (4, 1, 10, 6):
        losses, values = rng.integers(0, 2, count).astype(float), rng.random((count, metrics))
        for number, (loss, row) in enumerate(zip(losses, values, strict=True)):
            one.note(Turn(number, *NOTHING, loss, tuple(row)), every)
        many.note_all(losses, values, every)
        assert (many.position, many.rounds, many.mistakes) == (one.position, one.rounds, one.mistakes)
        assert many.sums == pytest.approx(one.sums)
        assert [at for at, _ in many.curve] == [at for at, _ in one.curve]
        assert [mean for _, mean in many.curve] == [pytest.approx(mean) for _, mean in one.curve]
    assert [at for at, _ in many.curve] == ([at for at in range(1, 22) if at % every == 0] if metrics else [])
