"""What docs/many-servers.md takes from docs/results/servers.json, which `python -m benchmarks.servers` measures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "servers.json"
REQUESTS = {"rank": "ranking", "carried": "ranking, carried", "feedback": "feedback"}


def load() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def _milliseconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 10.0 else f"{value:.1f}"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def requests(found: dict[str, Any] | None = None) -> str:
    """Requests a second of each kind of server, with their median and 99th percentile."""
    measured = (found or load())["load"]
    clients = sorted({row["clients"] for row in measured})
    cells: dict[tuple[str, str], list[str]] = {}
    for row in sorted(measured, key=lambda row: row["clients"]):
        times = f"{_milliseconds(row['p50_ms'])} / {_milliseconds(row['p99_ms'])} ms"
        refused = f", {row['refused']:,} refused" if row["refused"] else ""
        kind = row["servers"], REQUESTS[row["request"]]
        cells.setdefault(kind, []).append(f"{row['a_second']:,.0f} ({times}{refused})")
    head = ["servers", "request", *(f"{count} client{'s' if count > 1 else ''}" for count in clients)]
    return _table(head, [[*kind, *each] for kind, each in cells.items()])


def processor(found: dict[str, Any] | None = None) -> str:
    """Processor time of one request, by the servers and by the process that asks: the least over the clients."""
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in (found or load())["load"]:
        rows.setdefault((row["servers"], REQUESTS[row["request"]]), []).append(row)
    least = [
        [*kind, *(f"{min(row[side] for row in each):.2f} ms" for side in ("server_ms", "client_ms"))]
        for kind, each in rows.items()
    ]
    return _table(["servers", "request", "all processes of the server", "the one that asks"], least)


def lag(found: dict[str, Any] | None = None) -> str:
    """How far a follower is behind, and how long a failover takes."""
    found = found or load()
    rows = []
    for row in found["lag"]:
        beside = f"{row['feedbacks_a_second']:,.0f} feedbacks and {row['rankings_a_second']:,.0f} rankings a second"
        what = f"lag of a follower at {beside} ({row['clients']} + {row['clients']} clients)"
        versions = f"{row['versions_p50']:.0f} / {row['versions_p99']:.0f} versions"
        late = f"{_milliseconds(row['p50_ms'])} / {_milliseconds(row['p99_ms'])} ms"
        rows.append([what, f"{versions}, {late}"])
    over = found["failover"]
    took = f"{_milliseconds(over['median_ms'])} ms, {_milliseconds(over['most_ms'])} ms at most of {over['times']}"
    rows.append(["failover: from `kill -9` to the next acknowledged feedback, with PostgreSQL", took])
    return _table(["", "median / 99th percentile"], rows)


def sources(found: dict[str, Any] | None = None) -> str:
    """Ingestion from each source."""
    rows = [
        [row["source"], f"{row['events']:,}", f"{row['a_second']:,.0f}", f"{1e3 * row['reader_ms']:.0f} µs"]
        for row in (found or load())["ingest"]
    ]
    return _table(["source", "events", "a second", "processor time of the reader for each"], rows)


def carried(found: dict[str, Any] | None = None) -> str:
    """Rounds that carry themselves beside stored ones."""
    found = (found or load())["carried"]
    names = {
        "rank_bytes": "bytes of an answer of `/rank`",
        "feedback_bytes": "bytes of a feedback",
        "kept_bytes": "bytes in memory until the feedback comes",
        "rank_us": "processor time of a ranking, µs",
        "feedback_us": "processor time of a feedback, µs",
    }
    kinds = ("stored", "carried")
    rows = [[text, *(f"{found[kind][name]:,.0f}" for kind in kinds)] for name, text in names.items()]
    return _table(["", *kinds], rows)


def shop(found: dict[str, Any] | None = None) -> str:
    """The processor time of a shop with 2,000 requests a second, whose leader has its journal in PostgreSQL."""
    measured = [row for row in (found or load())["load"] if row["servers"] == "PostgreSQL"]
    counts = {"rank": (1_800, "rankings, 100 documents x 50 features"), "feedback": (200, "feedbacks")}
    each = {kind: min(row["server_ms"] for row in measured if row["request"] == kind) for kind in counts}
    rows = [
        [f"{count:,} {what}", f"{each[kind]:.2f} ms", f"{count * each[kind] / 1e3:.2f} s"]
        for kind, (count, what) in counts.items()
    ]
    total = sum(count * each[kind] for kind, (count, _) in counts.items()) / 1e3
    return _table(["", "each", "a second"], [*rows, ["one process, one core", "", f"{total:.2f} s of 1 s"]])


TABLES = {each.__name__: each for each in (requests, processor, lag, sources, carried)}
