"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

from ranktron.service.experiments.telemetry import experiment_lines
from ranktron.service.live_ranker import LiveRanker
from ranktron.service.service import RankingService

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Histogram:
    """Counts below each of the limits, and a sum."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


class Telemetry:
    """What the server has done since it started."""

    def __init__(self) -> None:
        self.latencies: dict[str, Histogram] = {}
        self.statuses: dict[tuple[str, int], int] = {}
        self.refusals: dict[str, int] = {}

    def refused(self, reason: str) -> None:
        self.refusals[reason] = self.refusals.get(reason, 0) + 1

    def request(self, name: str, status: int, seconds: float) -> None:
        histogram = self.latencies.get(name)
        if histogram is None:
            histogram = self.latencies[name] = Histogram()
        histogram.add(seconds)
        key = (name, status)
        self.statuses[key] = self.statuses.get(key, 0) + 1

    def text(self, service: RankingService) -> str:
        """All metrics."""
        live_rankers = list(service.live_rankers.values())
        experiments = experiment_lines(service.experiments.live.values())
        lines = [*self._requests(), *_service(service), *_rankers(live_rankers), *experiments]
        return "".join(f"{line}\n" for line in lines)

    def _requests(self) -> Iterator[str]:
        for_all, for_each, for_refused = REQUEST_METRICS
        yield from _head(for_all, *REQUEST_METRICS[for_all])
        for (name, status), count in self.statuses.items():
            yield f'ranktron_requests_total{{route="{name}",status="{status}"}} {count}'
        yield from _head(for_each, *REQUEST_METRICS[for_each])
        for name, histogram in self.latencies.items():
            below = 0
            for limit, count in zip((*map(str, BUCKETS), "+Inf"), histogram.counts, strict=True):
                below += count
                yield f'ranktron_request_seconds_bucket{{route="{name}",le="{limit}"}} {below}'
            yield f'ranktron_request_seconds_sum{{route="{name}"}} {histogram.total!r}'
            yield f'ranktron_request_seconds_count{{route="{name}"}} {below}'
        yield from _head(for_refused, *REQUEST_METRICS[for_refused])
        for reason, count in self.refusals.items():
            yield f'ranktron_refused_total{{reason="{reason}"}} {count}'


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _service(service: RankingService) -> Iterator[str]:
    for name, (text, value) in SERVICE_METRICS.items():
        yield from _head(name, "gauge", text)
        yield f"{name} {float(value(service))!r}"


def _rankers(live_rankers: list[LiveRanker]) -> Iterator[str]:
    for name, (kind, text, value) in RANKER_METRICS.items():
        yield from _head(name, kind, text)
        for live in live_rankers:
            number = value(live)
            if number is not None:
                yield f'{name}{{ranker="{live.name}"}} {float(number)!r}'


def _norm(live: LiveRanker) -> float | None:
    weights = live.weights
    return None if weights is None else float((weights**2).sum() ** 0.5)


REQUEST_METRICS = {
    "ranktron_requests_total": ("counter", "Requests by route and status."),
    "ranktron_request_seconds": ("histogram", "Seconds from a request to its answer, by route."),
    "ranktron_refused_total": ("counter", "Requests and connections that were refused, by reason."),
}
SERVICE_METRICS: dict[str, tuple[str, Callable[[RankingService], float]]] = {
    "ranktron_ready": ("1 if feedback can be written to disk, else 0.", lambda service: service.journal.ready),
    "ranktron_log_bytes": ("Bytes of the log on disk.", lambda service: service.journal.size),
    "ranktron_log_waiting": ("Writes that are waiting for the disk.", lambda service: len(service.journal)),
    "ranktron_rankers_set_aside": (
        "Rankers that could not be recovered at the start.",
        lambda service: len(service.set_aside),
    ),
}
RANKER_METRICS: dict[str, tuple[str, str, Callable[[LiveRanker], float | None]]] = {
    "ranktron_rounds_total": (
        "counter",
        "Rankings shown since the server started.",
        lambda d: d.stats.since_start()[0],
    ),
    "ranktron_rounds_open": ("gauge", "Rounds that are waiting for feedback.", lambda d: len(d.open)),
    "ranktron_rounds_dropped_total": (
        "counter",
        "Open rounds dropped since the server started, being too many, too old or too large.",
        lambda d: d.stats.since_start()[2],
    ),
    "ranktron_feedback_total": ("counter", "Rounds that received feedback.", lambda d: d.stats.received_rounds),
    "ranktron_feedback_rate": ("gauge", "Feedback per second, recently.", lambda d: d.stats.received().rate),
    "ranktron_explored_total": (
        "counter",
        "Rankings shown since the server started that explored.",
        lambda d: d.stats.since_start()[1],
    ),
    "ranktron_exploration_share": (
        "gauge",
        "Share of rankings that explored.",
        lambda d: d.stats.explored / d.stats.ranked if d.stats.ranked else None,
    ),
    "ranktron_observed_ndcg": (
        "gauge",
        "NDCG@k of shown lists over the labels received, mean of the last 100 rounds with feedback.",
        lambda d: d.stats.quality,
    ),
    "ranktron_version": ("gauge", "Version: how often the weights have changed.", lambda d: d.version),
    "ranktron_weights_norm": ("gauge", "Length of the weight vector.", _norm),
    "ranktron_update_norm": ("gauge", "Length of the last update.", lambda d: d.stats.steps()[1]),
}
