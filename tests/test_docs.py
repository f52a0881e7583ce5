"""Documentation cannot rot: its code runs, its tables are made from the code, its links lead somewhere."""

import configparser
import doctest
import json
import re
import shlex
from pathlib import Path

import pytest

from ranktron.algorithms import ALGORITHMS
from ranktron.cli import main

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


def comparison_table():
    """The numbers of docs/results/comparison.json, which `python -m benchmarks.comparison` computes."""
    sets = json.loads((ROOT / "docs" / "results" / "comparison.json").read_text())["sets"]
    names = {"ohsumed-letor3": "OHSUMED 3.0", "ohsumed-letor2": "OHSUMED 2.0", "mq2008": "MQ2008"}
    assert set(names) == set(sets)
    lines = ["| | " + " | ".join(f"{name}: NDCG@10 | MAP" for name in names.values()) + " | seconds |"]
    lines.append("|---|" + "---|" * (2 * len(names) + 1))
    for row in sets["ohsumed-letor3"]:
        cells = [cell for name in names for one in sets[name] if one["name"] == row["name"] for cell in one["shown"]]
        lines.append("| " + " | ".join([row["name"], *cells, row["seconds"]]) + " |")
    return "\n".join(lines)


MADE = {
    ("README.md", "algorithms"): algorithms_table,
    ("docs/architecture.md", "layers"): layers_list,
    ("docs/choosing.md", "comparison"): comparison_table,
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
