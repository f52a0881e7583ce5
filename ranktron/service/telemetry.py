"""Prometheus metrics: counters and histograms of requests, and gauges that are read at each scrape."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from ranktron.service.service import RankingService
from ranktron.store.experiments.experiment import LiveExperiment
from ranktron.store.experiments.tally import Pair
from ranktron.store.rankers.live_ranker import LiveRanker

if TYPE_CHECKING:
    from prometheus_client import Metric


class MetricSamples(NamedTuple):
    """A metric: its type, its help text, and its samples as labels and value; samples of None are left out."""

    name: str
    kind: str
    text: str
    values: Sequence[tuple[dict[str, str], float | None]]


def _evidence(experiment: LiveExperiment) -> float | None:
    detectors = [pair.detector for pair in experiment.tally.pairs if pair.detector is not None]
    return detectors[0].evidence if detectors else None


EXPERIMENT_METRICS: dict[str, tuple[str, str, Callable[[LiveExperiment], float | None]]] = {
    "ranktron_experiment_rounds_total": (
        "counter",
        "Rounds of the experiment, numbers reserved before a crash included.",
        lambda each: each.rounds.next,
    ),
    "ranktron_experiment_rounds_open": ("gauge", "Rounds that wait for feedback.", lambda each: len(each.rounds.open)),
    "ranktron_experiment_users_total": ("counter", "Users counted.", lambda each: each.tally.count),
    "ranktron_experiment_decided": (
        "gauge",
        "1 if one arm is decided to be better than every other, else 0.",
        lambda each: each.tally.winner is not None,
    ),
    "ranktron_guard_evidence": (
        "gauge",
        "Evidence that the ranker has become worse than its incumbent; the alarm is raised at the guard's run length.",
        _evidence,
    ),
    "ranktron_guard_alarm": (
        "gauge",
        "1 if the guard has rolled back to the incumbent, else 0.",
        lambda each: None if each.definition.guard is None else each.tally.alarm is not None,
    ),
}
PAIR_METRICS: dict[str, tuple[str, Callable[[Pair], float]]] = {
    "ranktron_experiment_difference": (
        "Estimated difference of the metric, second arm minus first.",
        lambda pair: pair.sequence.mean,
    ),
    "ranktron_experiment_difference_low": (
        "Lower limit of the confidence sequence of the difference.",
        lambda pair: pair.point().low,
    ),
    "ranktron_experiment_difference_high": (
        "Upper limit of the confidence sequence of the difference.",
        lambda pair: pair.point().high,
    ),
}


def experiment_samples(experiments: Iterable[LiveExperiment]) -> Iterator[MetricSamples]:
    """All metrics of experiments."""
    running = list(experiments)
    for name, (kind, text, value) in EXPERIMENT_METRICS.items():
        samples = [({"experiment": experiment.name}, value(experiment)) for experiment in running]
        yield MetricSamples(name, kind, text, samples)
    for name, (text, measure) in PAIR_METRICS.items():
        differences: list[tuple[dict[str, str], float | None]] = []
        for experiment in running:
            arms = [arm.label for arm in experiment.definition.arms]
            for pair in experiment.tally.pairs:
                labels = {"experiment": experiment.name, "first": arms[pair.first], "second": arms[pair.second]}
                differences.append((labels, measure(pair)))
        yield MetricSamples(name, "gauge", text, differences)


BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Histogram:
    """Counts by bucket, and the sum of the values."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


class Telemetry:
    """Counts of requests since the server started."""

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
        """All metrics, in Prometheus's text format."""
        import prometheus_client

        return prometheus_client.generate_latest(_Registry(self, service)).decode()

    def samples(self) -> Iterator[MetricSamples]:
        """The counters of requests."""
        requests, _, refused = REQUEST_METRICS
        counts = [({"route": route, "status": str(code)}, float(n)) for (route, code), n in self.statuses.items()]
        yield MetricSamples(requests, *REQUEST_METRICS[requests], counts)
        reasons = [({"reason": reason}, float(count)) for reason, count in self.refusals.items()]
        yield MetricSamples(refused, *REQUEST_METRICS[refused], reasons)


class _Registry:
    """A collector for prometheus-client. Our own counters cost a request a tenth of what the library's would."""

    def __init__(self, telemetry: Telemetry, service: RankingService) -> None:
        self._telemetry, self._service = telemetry, service

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        _, seconds, _ = REQUEST_METRICS
        latencies = HistogramMetricFamily(seconds, REQUEST_METRICS[seconds][1], labels=["route"])
        for route, histogram in self._telemetry.latencies.items():
            limits = (*map(str, BUCKETS), "+Inf")
            below = [*zip(limits, map(float, accumulate(histogram.counts)), strict=True)]
            latencies.add_metric([route], below, histogram.total)
        yield latencies
        experiments = experiment_samples(self._service.experiments.live.values())
        for each in (*self._telemetry.samples(), *_samples(self._service), *experiments):
            kind = CounterMetricFamily if each.kind == "counter" else GaugeMetricFamily
            metric = kind(each.name, each.text)
            for labels, value in each.values:
                if value is not None:
                    metric.add_sample(each.name, labels, float(value))
            yield metric


def _samples(service: RankingService) -> Iterator[MetricSamples]:
    for name, (text, number) in SERVICE_METRICS.items():
        yield MetricSamples(name, "gauge", text, [({}, number(service))])
    live_rankers = list(service.live_rankers.values())
    yield from _feature_samples(live_rankers)
    for name, (kind, text, value) in RANKER_METRICS.items():
        yield MetricSamples(name, kind, text, [({"ranker": live.name}, value(live)) for live in live_rankers])


def _feature_samples(live_rankers: Sequence[LiveRanker]) -> Iterator[MetricSamples]:
    distances: list[tuple[dict[str, str], float | None]] = []
    left: list[tuple[dict[str, str], float | None]] = []
    for live in live_rankers:
        found = live.features.distances()
        distances += [({"ranker": live.name, "feature": each.feature}, each.distance) for each in found]
        left += [({"ranker": live.name}, sum(each.left != "" for each in found) if found else None)]
    for (name, text), samples in zip(FEATURE_METRICS.items(), (distances, left), strict=True):
        yield MetricSamples(name, "gauge", text, samples)


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
    "ranktron_log_bytes": ("Size of the journal on disk, in bytes.", lambda service: service.journal.size),
    "ranktron_log_waiting": ("Writes queued for the journal.", lambda service: len(service.journal)),
    "ranktron_rankers_set_aside": (
        "Quarantined rankers: they could not be recovered at the start.",
        lambda service: len(service.engine.quarantined),
    ),
}
FEATURE_METRICS = {
    "ranktron_feature_distance": "Population stability index of a feature: recent lists against the training data.",
    "ranktron_features_left": "Features whose distribution has left the training data: a large, significant change.",
}
RANKER_METRICS: dict[str, tuple[str, str, Callable[[LiveRanker], float | None]]] = {
    "ranktron_rounds_total": (
        "counter",
        "Rankings shown since the server started.",
        lambda d: d.stats.since_start()[0],
    ),
    "ranktron_rounds_open": ("gauge", "Rounds that wait for feedback.", lambda d: len(d.rounds.open)),
    "ranktron_rounds_dropped_total": (
        "counter",
        "Open rounds dropped since the server started: expired, or over the limits of number or size.",
        lambda d: d.stats.since_start()[2],
    ),
    "ranktron_feedback_total": ("counter", "Rounds that received feedback.", lambda d: d.stats.received_rounds),
    "ranktron_feedback_rate": ("gauge", "Recent feedback per second.", lambda d: d.stats.received().rate),
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
        "Mean NDCG@k of the last 100 rounds with feedback, by the labels received.",
        lambda d: d.stats.quality,
    ),
    "ranktron_version": ("gauge", "Version: number of changes of the weights.", lambda d: d.version),
    "ranktron_weights_norm": ("gauge", "L2 norm of the weights.", _norm),
    "ranktron_update_norm": ("gauge", "L2 norm of the last update.", lambda d: d.stats.steps()[1]),
}
