"""Statistics of a ranker for the dashboard and metrics: quality, delays, exploration, updates."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from math import sqrt
from time import monotonic
from typing import Any

import numpy as np

from ranktron.errors import DataError
from ranktron.metrics import metric
from ranktron.store.messages import Delay, Point, Received

POINTS, WINDOW, DELAYS = 500, 100, 1000  # points of the curve, rounds of running means, delays for quantiles
_NDCG = metric("ndcg")


@lru_cache(4096)  # few distinct tuples of labels occur
def observed_quality(labels: tuple[float, ...]) -> float | None:
    """NDCG of the labels received, in the order shown; 0 if all labels are 0.

    None if a label is too high for NDCG.

    >>> observed_quality((0.0, 1.0))
    0.6309297535714575
    >>> observed_quality((0.0, 1500.0))
    """
    try:
        return float(_NDCG(np.array(labels, float))) if max(labels) > 0.0 else 0.0
    except DataError:
        return None


class Stats:
    """Counts, a thinned curve, and the last delays and update norms; all of bounded size.

    >>> stats = Stats()
    >>> for number in range(2000):
    ...     stats.answered(number, 1.0, False, 0.5)
    >>> len(stats.curve()) <= POINTS, stats.received().rounds
    (True, 2000)
    """

    def __init__(self) -> None:
        self.started = monotonic()  # time of the start; fixed
        self.ranked = self.explored = 0  # rankings shown, and those that explored; showed
        self.received_rounds = 0  # rounds with feedback; answered
        self.dropped = 0  # open rounds dropped; the ranker
        self._before = 0, 0, 0  # ranked, explored and dropped before this start; begin
        self._points: list[Point] = []  # the curve, thinned; answered
        self._stride = 1  # one point for this many rounds, doubled when the curve is full; answered
        self._window: deque[float] = deque(maxlen=WINDOW)  # last observed qualities; answered
        self._delays: deque[float] = deque(maxlen=DELAYS)  # seconds between ranking and feedback; answered
        # Last updates: norms, or weights before and after until the norm is needed; moved and _norms.
        self._moves: deque[float | tuple[bytes, bytes]] = deque(maxlen=WINDOW)
        self._times: deque[float] = deque(maxlen=DELAYS)  # when feedback came, for the rate; answered and begin

    def showed(self, explored: bool) -> None:
        """Counts a ranking."""
        self.ranked += 1
        self.explored += explored

    def answered(self, number: int, value: float | None, explored: bool, delay: float) -> None:
        """Counts the feedback of a round: its observed quality, if defined, and its delay."""
        if value is not None:
            self._window.append(value)
            if self.received_rounds % self._stride == 0:
                self._points.append(Point(number, value, sum(self._window) / len(self._window), explored))
                if len(self._points) > POINTS:
                    self._points = self._points[::2]
                    self._stride *= 2
        self.received_rounds += 1
        self._delays.append(delay)
        self._times.append(monotonic())

    def moved(self, before: bytes, now: bytes) -> None:
        """Records the weights before and after an update; their distance is computed on demand."""
        self._moves.append((before, now))

    @property
    def quality(self) -> float | None:
        """The mean observed quality of the last rounds."""
        return sum(self._window) / len(self._window) if self._window else None

    def curve(self) -> list[Point]:
        return self._points[-POINTS:]

    def received(self) -> Received:
        """Rounds with feedback, their recent rate per second, and quantiles of their delays."""
        rate = 0.0
        if self._times:
            seconds = monotonic() - self._times[0]
            rate = len(self._times) / max(seconds, 1.0)
        p50, p90, p99 = np.quantile(self._delays, [0.5, 0.9, 0.99]).tolist() if self._delays else (None, None, None)
        return Received(self.received_rounds, rate, Delay(p50, p90, p99))

    def steps(self) -> tuple[float | None, float | None]:
        """How far the weights moved: on average over the last updates, and in the last one."""
        norms = self._norms()
        return (sum(norms) / len(norms), norms[-1]) if norms else (None, None)

    def _norms(self) -> list[float]:
        norms = [move if isinstance(move, float) else _distance(*move) for move in self._moves]
        self._moves.clear()
        self._moves.extend(norms)
        return norms

    def begin(self) -> None:
        """Resets the counters of the metrics: Prometheus expects counters to restart at 0."""
        self._before = self.ranked, self.explored, self.dropped
        self._times.clear()  # replayed feedback is not new

    def since_start(self) -> tuple[int, int, int]:
        """Rankings shown, those that explored, and rounds dropped, since the server started."""
        ranked, explored, dropped = self._before
        return self.ranked - ranked, self.explored - explored, self.dropped - dropped

    def state(self) -> dict[str, Any]:
        """The complete state, for a snapshot."""
        points = np.array([[p.round, p.value, p.mean, p.explored] for p in self._points]).reshape(-1, 4)
        return {
            "counts": [self.ranked, self.explored, self.received_rounds, self.dropped, self._stride],
            "points": points,
            "window": np.array(self._window),
            "delays": np.array(self._delays),
            "norms": np.array(self._norms()),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.ranked, self.explored, self.received_rounds, self.dropped, self._stride = state["counts"]
        self._points = [Point(int(n), v, m, bool(e)) for n, v, m, e in state["points"].tolist()]
        values: deque[Any]
        for values, name in ((self._window, "window"), (self._delays, "delays"), (self._moves, "norms")):
            values.clear()
            values.extend(state[name].tolist())


def _distance(before: bytes, now: bytes) -> float:
    moved = np.frombuffer(now) - np.frombuffer(before)
    return sqrt(float(moved @ moved))
