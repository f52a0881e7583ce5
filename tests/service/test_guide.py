"""The serving guide's tables are made from the code: routes, settings, metrics."""

import re
from pathlib import Path
from statistics import fmean
from typing import get_type_hints
from unittest.mock import Mock

import msgspec
import pytest

from ranktron.service.config import Config
from ranktron.service.http.routes import actions
from ranktron.service.telemetry import (
    EXPERIMENT_METRICS,
    FEATURE_METRICS,
    PAIR_METRICS,
    RANKER_METRICS,
    REQUEST_METRICS,
    SERVICE_METRICS,
)
from ranktron.training.algorithms import ALGORITHMS

GUIDE = Path(__file__).parent.parent.parent / "docs" / "serving.md"


def routes():
    lines = ["| | | scope | |", "|---|---|---|---|"]
    for a in actions(Mock(), Mock()):
        lines += [f"| `{a.method}` | `{a.path}` | {a.scope or 'none'} | {a.summary} |"]
    return lines


def settings():
    lines = ["| setting | default | what it is |", "|---|---|---|"]
    hints = get_type_hints(Config, include_extras=True)
    for each in msgspec.structs.fields(Config):
        text = next(part.description for part in hints[each.name].__metadata__ if part.description)
        lines.append(f"| `{each.name}` | `{getattr(Config(), each.name)!r}` | {text} |")
    return lines


def metrics():
    lines = ["| metric | what it is |", "|---|---|"]
    lines += [f"| `{name}` | {text} |" for name, (_, text) in REQUEST_METRICS.items()]
    lines += [f"| `{name}` | {text} |" for name, (text, _) in SERVICE_METRICS.items()]
    lines += [f'| `{name}{{ranker="..."}}` | {text} |' for name, (_, text, _) in RANKER_METRICS.items()]
    lines += [f'| `{name}{{ranker="..."}}` | {text} |' for name, text in FEATURE_METRICS.items()]
    lines += [f'| `{name}{{experiment="..."}}` | {text} |' for name, (_, text, _) in EXPERIMENT_METRICS.items()]
    arms = 'experiment="...",first="...",second="..."'
    lines += [f"| `{name}{{{arms}}}` | {text} |" for name, (text, _) in PAIR_METRICS.items()]
    return lines


@pytest.mark.parametrize("made", [routes, settings, metrics])
def test_tables_are_made_from_the_code(made, request):
    name, text = made.__name__, GUIDE.read_text(encoding="utf-8")
    wanted = "\n".join([f"<!-- {name} -->", *made(), f"<!-- /{name} -->"])
    new = re.sub(rf"<!-- {name} -->\n.*?<!-- /{name} -->", lambda _: wanted, text, flags=re.DOTALL)
    if request.config.getoption("--write-docs"):
        GUIDE.write_text(new, encoding="utf-8")
    assert GUIDE.read_text(encoding="utf-8") == new, "run: python -m pytest tests/service/test_guide.py --write-docs"


def test_the_shares_of_rankings_that_explore_are_those_of_the_code():
    text = " ".join(GUIDE.read_text(encoding="utf-8").split())
    recommended = ALGORITHMS["topk"].learner(3, {}).explore
    assert [recommended(t - 1) for t in (1, 64, 10**6)] == pytest.approx([1.0, 0.5, 0.1])
    assert "the first always, the 64th with 1/2, the millionth with 1/10" in text
    for given, said in (
        ({}, "That is {} of the first 64 rankings and {} of the first thousand."),
        ({"explore": 0.5}, "0.5 · t^(-1/3), which is {} of the first 64 rankings and {} of the first thousand"),
    ):
        explore = ALGORITHMS["topk"].learner(3, given).explore
        shares = [f"{100 * fmean(map(explore, range(n))):.0f} %" for n in (64, 1000)]
        assert said.format(*shares) in text
