"""Documentation cannot rot: its code runs, its tables are made from the code, its links lead somewhere."""

import configparser
import doctest
import re
import shlex
from pathlib import Path
from typing import get_type_hints
from unittest.mock import Mock

import msgspec
import pytest

from ranktron.algorithms import ALGORITHMS
from ranktron.cli import main
from ranktron.service.config import Config
from ranktron.service.routes import actions
from ranktron.service.telemetry import LOG_METRICS, RANKER_METRICS, REQUEST_METRICS

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def algorithms_table():
    lines = ["| class | command line | what it does | paper |", "|---|---|---|---|"]
    lines += [f"| `{a.estimator}` | `{a.name}` | {a.summary} | {a.paper or '–'} |" for a in ALGORITHMS.values()]
    return "\n".join(lines)


def layers_list():
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    layers = config["importlinter:contract:layers"]["layers"].split("\n")
    return "```\n" + "\n".join(layer.strip() for layer in layers if layer.strip()) + "\n```"


def routes_table():
    office, telemetry = Mock(), Mock()
    lines = ["| | | scope | |", "|---|---|---|---|"]
    for a in actions(office, telemetry):
        lines += [f"| `{a.method}` | `{a.path}` | {a.scope or 'none'} | {a.summary} |"]
    return "\n".join(lines)


def settings_table():
    lines = ["| setting | default | what it is |", "|---|---|---|"]
    hints = get_type_hints(Config, include_extras=True)
    for each in msgspec.structs.fields(Config):
        text = next(part.description for part in hints[each.name].__metadata__ if part.description)
        lines.append(f"| `{each.name}` | `{getattr(Config(), each.name)!r}` | {text} |")
    return "\n".join(lines)


def metrics_table():
    lines = ["| metric | what it is |", "|---|---|"]
    lines += [f"| `{name}` | {text} |" for name, (_, text) in REQUEST_METRICS.items()]
    lines += [f"| `{name}` | {text} |" for name, (text, _) in LOG_METRICS.items()]
    lines += [f'| `{name}{{ranker="..."}}` | {text} |' for name, (_, text, _) in RANKER_METRICS.items()]
    return "\n".join(lines)


MADE = {
    ("README.md", "algorithms"): algorithms_table,
    ("docs/architecture.md", "layers"): layers_list,
    ("docs/serving.md", "routes"): routes_table,
    ("docs/serving.md", "settings"): settings_table,
    ("docs/serving.md", "metrics"): metrics_table,
}


@pytest.mark.parametrize(("page", "name"), MADE)
def test_tables_are_made_from_the_code(page, name, request):
    path = ROOT / page
    text = path.read_text()
    wanted = f"<!-- {name} -->\n{MADE[page, name]()}\n<!-- /{name} -->"
    made = re.sub(rf"<!-- {name} -->\n.*?<!-- /{name} -->", lambda _: wanted, text, flags=re.DOTALL)
    if request.config.getoption("--write-docs"):
        path.write_text(made)
    assert path.read_text() == made, "run: python -m pytest tests/test_docs.py --write-docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testfile(str(page), module_relative=False, optionflags=flags, encoding="utf-8")
    assert result.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```bash\n(.*?)```", page.read_text(), flags=re.DOTALL):
        for line in block.splitlines():
            program, *arguments = shlex.split(line, comments=True) or ["ranktron", "--version"]
            assert program == "ranktron", f"{page.name}: only ranktron commands are run: {line}"
            with pytest.raises(SystemExit) as exit:
                main(arguments)
            assert exit.value.code == 0, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
