"""Documentation cannot rot: its code runs, its tables are made from the code, its links lead somewhere."""

import doctest
import inspect
import json
import re
import shlex
import shutil
import sys
from difflib import unified_diff
from functools import partial
from pathlib import Path

import click
import pytest

from ranktron.cli.main import cli as ranktron
from ranktron.cli.main import main
from ranktron.learners.base import BaseLearner
from ranktron.learners.kernelized.removal import Removal
from ranktron.learners.pairwise.outputs import Output
from ranktron.learners.predtron.links import Link
from ranktron.learners.predtron.subsets import CountLoss
from ranktron.learners.predtron.variants import Variant
from ranktron.learners.top_k.estimator import Decomposed, Outlined
from ranktron.service.service import RankingService
from reproduction.__main__ import cli as reproduction

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import made  # noqa: E402
import quality  # noqa: E402
import scaling  # noqa: E402
import servers  # noqa: E402

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())

# Blocks that are run: Python with prompts, `ranktron` commands, commands with what they print. Others only show;
# `py` is a script of the gallery, which a test of its own runs.
REPRODUCTION = ["python", "-m", "reproduction"]
RUN = {"python", "bash", "console"}
SHOWN = {"text", "py", "sh", "json", "toml", "yaml", "xml", "http", "html", "javascript", "css"}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

MADE = {
    ("README.md", "algorithms"): made.algorithms,
    ("docs/architecture.md", "layers"): made.layers,
    ("docs/index.md", "contents"): made.contents,
    ("docs/commands.md", "commands"): made.command_reference,
    ("docs/commands.md", "parameters"): made.algorithm_reference,
    ("docs/api/index.md", "modules"): made.module_index,
    ("docs/choosing.md", "comparison"): partial(made.comparison, made.DEVELOPMENT),
    ("docs/choosing.md", "comparison-others"): partial(made.comparison, made.OTHERS),
    ("docs/quality.md", "defaults"): quality.side_by_side,
    ("docs/quality.md", "units"): quality.other_units,
    ("docs/quality.md", "below"): quality.below_grid,
    ("docs/quality.md", "ahead"): quality.tune_ahead,
    ("docs/quality.md", "variants"): quality.variants,
    ("docs/quality.md", "trees"): quality.beside_trees,
    ("docs/quality.md", "trees-ahead"): quality.ahead_of_trees,
    **{("docs/many-servers.md", name): servers.TABLES[name] for name in ("requests", "processor", "lag", "sources")},
    **{("docs/beyond-one-machine.md", name): table for name, table in scaling.TABLES.items()},
    ("docs/serving.md", "carried"): servers.carried,
    ("docs/running.md", "shop"): servers.shop,
    **{
        ("docs/reproduce.md", paper): partial(made.reproduced, paper)
        for paper in ("slam", "topk", "rankmm", "predtron", "committee")
    },
}


def blocks(page):
    """(language, text) of every fenced block of a page."""
    return re.findall(r"^```(\S*)[^\n]*\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def same(path, wanted, request):
    """Whether a file is what the code says; with --write-docs it is made so."""
    if request.config.getoption("--write-docs"):
        path.write_text(wanted, encoding="utf-8")
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    changes = list(unified_diff(written.splitlines(), wanted.splitlines(), n=0, lineterm=""))[3:]
    assert written == wanted, "\n".join(["run: python -m pytest tests/test_docs.py --write-docs", *changes[:20]])


@pytest.mark.parametrize(("page", "name"), MADE)
def test_tables_are_made_from_the_code(page, name, request):
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    wanted = f"<!-- {name} -->\n{MADE[page, name]()}\n<!-- /{name} -->"
    assert f"<!-- {name} -->\n" in text
    same(path, re.sub(rf"<!-- {name} -->\n.*?<!-- /{name} -->", lambda _: wanted, text, flags=re.DOTALL), request)


def test_the_picture_of_all_learners_is_drawn_from_the_results(request):
    if not made.RESULTS.exists():
        pytest.skip("the results of all learners are not in this tree")
    if request.config.getoption("--write-docs"):
        made.draw_choice()
    drawn = made.CHOICE.read_text(encoding="utf-8")
    for rows in json.loads(made.RESULTS.read_text(encoding="utf-8"))["sets"].values():
        assert all(f">{row['name']}<" in drawn for row in rows), "run: python -m pytest tests/test_docs.py --write-docs"


def test_the_picture_of_shards_is_drawn_from_the_results(request):
    if request.config.getoption("--write-docs"):
        scaling.draw()
    drawn, found = scaling.PICTURE.read_text(encoding="utf-8"), scaling.load()
    assert all(f">{name}<" in drawn for name in found["quality"]["web"]), "run it with --write-docs"


def test_the_picture_of_quality_is_drawn_from_the_results(request):
    if request.config.getoption("--write-docs"):
        quality.draw()
    drawn = quality.PICTURE.read_text(encoding="utf-8")
    for name, column in quality.load().items():
        if not name.endswith("*"):
            shown = [row for row in column["rows"] if row.startswith("default ") or row.endswith(", default")]
            labels = [row.removeprefix("default ").removesuffix(", default") for row in shown]
            assert all(f">{label}<" in drawn for label in [name, *labels]), "run it with --write-docs"


@pytest.mark.parametrize("page", made.modules())
def test_every_public_name_is_on_a_page(page, request):
    same(ROOT / "docs" / "api" / f"{page}.md", made.module_page(page), request)


def test_there_are_no_pages_of_modules_that_are_gone():
    assert {path.stem for path in (ROOT / "docs" / "api").glob("*.md")} == {"index", *made.modules()}


NAMES = sorted({made.told_at(name) for names in made.modules().values() for name in names})


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example(name):
    thing = made.found(name)
    if inspect.isclass(thing) or callable(thing):
        told = thing.__doc__ or ""
        assert told.strip(), f"{name} has no docstring"
        assert ">>>" in told, f"the docstring of {name} has no example"


def documented(text):
    """The names in the numpydoc section Parameters of a docstring."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", inspect.cleandoc(text), re.DOTALL | re.MULTILINE
    )
    heads = re.findall(r"^(\S.*?)(?: : .*)?$", section[1], flags=re.MULTILINE) if section else []
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def parameters(thing):
    """What a public name is called with: a protocol only where its objects are functions."""
    if getattr(thing, "_is_protocol", False):
        thing = vars(thing).get("__call__", lambda: None)
    try:
        return {name for name in inspect.signature(thing).parameters if name != "self"}
    except ValueError:  # an error or a warning, whose constructor is not written in Python
        return set()


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_of_a_public_name_is_documented(name):
    thing = made.found(name)
    if callable(thing):
        missing = parameters(thing) - documented(thing.__doc__ or "")
        assert not missing, f"the section Parameters of {name} lacks {', '.join(sorted(missing))}"


def own_methods(thing):
    """The public methods of a class of ours that take parameters, with the names of these."""
    for name, method in inspect.getmembers(thing, lambda each: inspect.isfunction(each) or inspect.ismethod(each)):
        if not name.startswith("_") and method.__module__.startswith("ranktron"):
            yield name, set(inspect.signature(method).parameters) - {"self", "cls"}


CLASSES = [name for name in NAMES if inspect.isclass(made.found(name))]
PROTOCOLS = [
    *(thing for thing in map(made.found, CLASSES) if getattr(thing, "_is_protocol", False)),
    BaseLearner, CountLoss, Decomposed, Link, Outlined, Output, Removal, Variant,
]  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_every_parameter_of_a_public_method_is_documented(name):
    """In its own docstring, or in that of the protocol whose method it is."""
    thing = made.found(name)
    for method, taken in own_methods(thing):
        homes = [thing, *(each for each in PROTOCOLS if taken == dict(own_methods(each)).get(method))]
        missing = [taken - documented(inspect.getdoc(getattr(home, method)) or "") for home in homes]
        assert not all(missing), f"{name}.{method} does not document {', '.join(sorted(missing[0]))}"


@every_page
def test_every_block_is_run_or_says_that_it_is_not(page):
    fences = re.findall(r"^\s*```", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(fences) == 2 * len(blocks(page)), "a fence is indented or not closed: its block would not be checked"
    for language, text in blocks(page):
        assert language in RUN | SHOWN, (
            f"a block of {page.name} is called {language!r}: it is not known how to check it"
        )
        assert language != "python" or ">>>" in text, f"Python without prompts is not run: {text[:80]}"


def run(line):
    """Runs one line of a block."""
    words = shlex.split(line, comments=True) or ["ranktron", "--version"]
    if words[:3] == REPRODUCTION:
        arguments, command = words[3:], reproduction
    else:
        assert words[0] == "ranktron", f"only commands of ours are run: {line}"
        arguments, command = words[1:], ranktron
    with pytest.raises(SystemExit) as exit:
        main(arguments, command)
    assert exit.value.code == 0, line


@every_page
def test_blocks_run_in_order(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    parser, runner, known = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=FLAGS), {}
    for language, text in blocks(page):
        if language == "python":
            example = parser.get_doctest(text, known, page.name, str(page), None)
            runner.run(example, clear_globs=False)
            known = example.globs
            assert runner.failures == 0, capsys.readouterr().out
        elif language == "bash":
            for line in text.replace("\\\n", " ").splitlines():
                run(line)
        elif language == "console":
            for line, wanted in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, flags=re.MULTILINE):
                capsys.readouterr()
                run(line)
                printed = capsys.readouterr().out
                assert doctest.OutputChecker().check_output(wanted, printed, FLAGS), f"{line} printed\n{printed}"


@every_page
def test_commands_and_options_that_pages_show_exist(page):
    known = made.commands() | reproduction.commands
    inline = re.findall(r"`((?:ranktron|python -m reproduction) [^`]*)`", page.read_text(encoding="utf-8"))
    shown = [text for language, text in blocks(page) if language in {"sh", "text", "bash", "console"}]
    for line in "\n".join([*inline, *shown]).replace("\\\n", " ").splitlines():
        words = line.removeprefix("$ ").replace("python -m reproduction", "ranktron").split()
        if words[:1] != ["ranktron"] or len(words) == 1 or words[1].startswith(("-", "[")) or words[1] == "COMMAND":
            continue
        name = next((n for n in (" ".join(words[1:3]), words[1]) if n in known), None)
        assert name, f"{page.name} shows a command that does not exist: {line}"
        options = {
            option for parameter in known[name].params for option in [*parameter.opts, *parameter.secondary_opts]
        }
        for word in re.findall(r"(?<![\w-])--[a-z-]+", line):
            assert word in options | {"--help"}, f"{page.name} shows an option that does not exist: {line}"


@pytest.mark.parametrize("name", made.commands())
def test_every_command_and_option_says_what_it_does(name):
    command = made.commands()[name]
    assert command.help
    assert f"ranktron {name}" in made.example(command), f"the help of {name} has no example"
    section = (
        (ROOT / "docs" / "commands.md").read_text(encoding="utf-8").partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    )
    assert made.example(command) in section
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.help, f"{name} {parameter.opts[0]} has no help"
            assert all(f"`{option}`" in section for option in [*parameter.opts, *parameter.secondary_opts])


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder with the files that the examples of the commands speak of."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for number in (1, 2):
            Path(f"OHSUMED/Fold{number}").mkdir(parents=True)
        Path("DIR").mkdir()
        parts = [f"OHSUMED/Fold{number}/{part}.txt" for number in (1, 2) for part in ("train", "vali", "test")]
        for skip, name in enumerate(["train.txt", "vali.txt", "test.txt", *parts]):
            first = 0 if name == "test.txt" else 50 * (skip + 1)  # test.txt has a query 42
            run(f"ranktron simulate separable {name} --queries {50 if '/' not in name else 8} --skip {first}")
        shown = ["1,1,1,a,1", "1,2,0,b,2", "2,1,1,b,2", "2,2,1,a,1", "3,1,1,a,1", "3,2,0,b,2"]
        Path("log.csv").write_text("impression,position,click,item,price\n" + "\n".join(shown) + "\n")
        run("ranktron train train.txt --epochs 1 --scale standard --model my.model")  # can be exported
        run("ranktron train vali.txt --epochs 1 --model shown.model")
        write_log(Path("log.csv"))
        for name in ("ours.txt", "theirs.txt"):
            run(f"ranktron rank my.model test.txt -o {name}")
        RankingService("state").journal.close()
        run("ranktron backup state backups/monday")
    return folder


def write_log(path):
    """A log of two documents with 20 features on each page, the first clicked."""
    rows = [["impression", "position", "click", *map(str, range(1, 21))]]
    rows += [
        [f"{i // 2}", f"{i % 2 + 1}", f"{(i + 1) % 2}", *[f"{(i * j) % 7 / 70}" for j in range(20)]] for i in range(60)
    ]
    path.write_text("".join(",".join(row) + "\n" for row in rows))


NOT_RUN = {
    "serve": "it does not end",
    "mcp": "it reads from standard input",
    "push": "it needs a search engine",
    "verify": "it needs a search engine",
    "ingest": "it needs a service",
    "promote": "it needs a server that follows",
}


@pytest.mark.parametrize("name", [name for name in made.commands() if name not in NOT_RUN])
def test_the_example_of_every_command_runs(name, workplace, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(workplace, tmp_path / "here"))
    for line in made.example(made.commands()[name]).replace("\\\n", " ").splitlines():
        run(line)


def anchors(page):
    """The fragments of a page, as code hosts make them from its headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = []
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE):
        heading = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading).replace("`", "").strip().lower()
        slug = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        found.append(slug if slug not in found else f"{slug}-{found.count(slug)}")
    return set(found)


@every_page
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)", re.sub(r"`[^`\n]*`", "", text)):
        file, _, fragment = target.partition("#")
        if not target.startswith(("http:", "https:")):
            path = page.parent / file if file else page
            assert path.exists(), f"{page.name} links to {target}"
            assert not fragment or fragment in anchors(path), f"{page.name} links to {target}"


@every_page
def test_rows_of_tables_have_as_many_cells_as_their_heads(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        sizes = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(sizes) == 1, f"a | inside a cell is written \\|: {table[:200]}"


HEADINGS = ["What it says", "Which class", "What we corrected", "What came out"]


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/papers/*.md")), ids=lambda page: page.stem)
def test_pages_of_papers_answer_the_same_questions(page):
    headings = re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [heading for heading in headings if heading in HEADINGS] == HEADINGS
