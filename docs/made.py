"""What the pages take from the code: navigation, the command-line reference, the tables of public names.

`python -m pytest tests/test_docs.py --write-docs` writes it into the pages; the same test fails while they differ. The
site (`conf.py`) uses the navigation too.
"""

from __future__ import annotations

import configparser
import inspect
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import ranktron
from ranktron.cli.main import cli
from ranktron.training.algorithms import ALGORITHMS

DOCS = Path(__file__).parent
ROOT = DOCS.parent

# The order of the pages. One that is not named here stands at the end of the guides about training.
GROUPS = {
    "Start": ["start", "tutorial", "gallery/index", "choosing", "recipes", "common-mistakes"],
    "Coming from": ["from-lightgbm", "from-river", "from-metarank", "from-personalizer"],
    "Guides: train": [
        *("data", "features", "estimators", "nonlinear", "metrics", "explain"),
        *("clicks", "warm-starts", "own-weights", "agents", "beyond-one-machine", "export", "tools"),
    ],
    "Guides: serve": ["store", "serving", "is-it-better", "running", "many-servers", "demo"],
    "How good": ["quality", "benchmarks"],
    "Research": [
        *("papers/slam", "papers/topk", "papers/committee", "papers/rankmm", "papers/predtron"),
        *("claims", "reproduce", "theory", "quality-research", "clicks-research", "off-policy"),
    ],
    "Concepts": [
        *("nouns/rounds", "nouns/ranking", "nouns/feedback", "nouns/surrogate"),
        *("nouns/learner", "nouns/metric", "nouns/model", "nouns/play"),
    ],
    "Reference": ["commands", "api/index"],
    "Project": ["architecture", "contributing", "mutants", "changelog"],
}

# The modules of the programming reference beside `ranktron` itself and the estimators, by the names of their pages.
MODULES = {
    **ranktron._MODULES,
    "types": "ranktron.types",
    "checks": "ranktron.learners.checks",
    "theory": "ranktron.theory.bounds",
    "certificates": "ranktron.theory.certificates",
}


def navigation() -> dict[str, list[str]]:
    """The pages that exist, by group; those of the reference and the gallery are under their own index."""
    found = {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")}
    below = ("api/", "gallery/")
    found = {page for page in found if page != "index" and not page.startswith(below)} | {"api/index", "gallery/index"}
    named = {page for pages in GROUPS.values() for page in pages}
    groups = {group: [page for page in pages if page in found] for group, pages in GROUPS.items()}
    groups["Guides: train"] += sorted(page for page in found - named if not page.startswith("papers/"))
    groups["Research"] += sorted(page for page in found - named if page.startswith("papers/"))
    return groups


def title(page: str) -> str:
    """The first heading of a page."""
    return (DOCS / f"{page}.md").read_text(encoding="utf-8").partition("# ")[2].partition("\n")[0]


def contents() -> str:
    """The navigation as lists of links."""
    groups = navigation().items()
    return "\n\n".join(
        "\n".join([f"**{group}**", "", *(f"- [{title(page)}]({page}.md)" for page in pages)]) for group, pages in groups
    )


def algorithms() -> str:
    """One row for each algorithm of the command line."""
    lines = ["| class | command line | what it does | paper |", "|---|---|---|---|"]
    lines += [f"| `{a.estimator}` | `{a.name}` | {a.summary} | {a.paper or '–'} |" for a in ALGORITHMS.values()]
    return "\n".join(lines)


def layers() -> str:
    """The modules of the library, as the import contract has them."""
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    listed = config["importlinter:contract:layers"]["layers"].split("\n")
    return "```text\n" + "\n".join(layer.strip() for layer in listed if layer.strip()) + "\n```"


def commands() -> dict[str, click.Command]:
    """Every command by its name, those of groups as `group command`."""
    return dict(_commands(cli, click.Context(cli), ""))


def _commands(group: click.Group, context: click.Context, before: str) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        if isinstance(command, click.Group):
            yield from _commands(command, context, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def example(command: click.Command) -> str:
    """The example in the help of a command."""
    found = re.search(r"Examples?:\s+(ranktron .*)", inspect.cleandoc(command.help or ""), flags=re.DOTALL)
    return found[1].strip() if found else ""


def command_reference() -> str:
    """A section for each command: what it does, its example, its arguments and options."""
    listed = commands()
    rows = [f"| [`{name}`](#{name.replace(' ', '-')}) | {_first(c.help or '')} |" for name, c in listed.items()]
    table = "\n".join(["| command | what it does |", "|---|---|", *rows])
    return "\n\n".join([table, *(_section(name, command) for name, command in listed.items())])


def _section(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"ranktron {name}")
    told = re.split(r"Examples?:\s+ranktron ", inspect.cleandoc(command.help or ""))[0]
    told = "\n\n".join(_paragraph(text) for text in told.strip().split("\n\n"))
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"## {name}", told, f"```text\n{usage}\n```"]
    if example(command):
        parts.append(f"For example:\n\n```sh\n{example(command)}\n```")
    rows = [_option(p, context) for p in command.params if isinstance(p, click.Option) and not p.hidden]
    parts.append("\n".join(["| option | default | what it does |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def _paragraph(text: str) -> str:
    """A paragraph of a help text; one that keeps its lines (a `\\b` before it) is a block of text."""
    return f"```text\n{inspect.cleandoc(text[1:])}\n```" if text.startswith("\b") else _escaped(text)


def _option(option: click.Option, context: click.Context) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    default = "**required**" if option.required else _default(option)
    told = _escaped(re.sub(r"\s*\[default: .*?\]", "", option.help or "").strip())
    told = told[:1].upper() + told[1:] + ("" if told.endswith(".") else ".")
    several = " May be given several times." if option.multiple else ""
    return f"| {' '.join([names, *_value(option, context)])} | {default} | {told}{several} |"


def _value(option: click.Option, context: click.Context) -> list[str]:
    """What has to follow an option, if anything: a choice, or a word for the kind of value and what limits it."""
    if option.is_flag:
        return []
    if isinstance(option.type, click.Choice):
        return [", ".join(f"`{choice}`" for choice in option.type.choices)]
    if isinstance(option.type, click.IntRange | click.FloatRange) and option.metavar is None:
        kind = "INTEGER" if isinstance(option.type, click.IntRange) else "NUMBER"
        return ["`" + re.sub(r"[<>]=?", r" \g<0> ", option.type._describe_range()).replace("x", kind) + "`"]
    return [f"`{option.make_metavar(context).strip('[]{}')}`".replace("|", "\\|")]  # a bar would end the cell


def _default(option: click.Option) -> str:
    stated = re.search(r"\[default: (.*?)\]", option.help or "")
    if stated:
        return f"`{stated[1]}`"
    given = option.to_info_dict()["default"]
    if option.secondary_opts and given is not None:
        return f"`{(option.opts if given else option.secondary_opts)[0].lstrip('-')}`"
    return "–" if option.is_flag or option.multiple or given is None else f"`{given}`"


def algorithm_reference() -> str:
    """The parameters of each algorithm."""
    return "\n\n".join(_parameters(algorithm) for algorithm in ALGORITHMS.values())


def _parameters(algorithm: Any) -> str:
    rows = [f"| `{p.name}` | `{str(p.default).lower()}` | {_escaped(p.help)} |" for p in algorithm.parameters]
    table = "\n".join(["| parameter | default | what it is |", "|---|---|---|", *rows])
    what = algorithm.summary[0].upper() + algorithm.summary[1:]
    return f"### {algorithm.name} (`{algorithm.estimator}`)\n\n{what}.\n\n{table}"


def _escaped(text: str) -> str:
    text = text.replace("|", "\\|").replace("*", "\\*").replace("<", "\\<")
    return re.sub(r"(?<![`\w-])--[a-z][a-z-]*", r"`\g<0>`", text)  # an option is code


@cache
def modules() -> dict[str, list[str]]:
    """The pages of the programming reference, and the full names that each documents."""
    estimators = set(import_module("ranktron.estimators").__all__)
    own = [n for n in ranktron.__all__ if n not in estimators and n not in ranktron._MODULES and n != "__version__"]
    pages = {"ranktron": [f"ranktron.{name}" for name in own]}
    pages["estimators"] = ["ranktron.estimators.base.BaseRanker", "ranktron.estimators.base.OnlineRanker"]
    pages["estimators"] += [f"ranktron.{name}" for name in ranktron.__all__ if name in estimators]
    for page, home in sorted(MODULES.items()):
        module = import_module(home)
        names = public_names(module)
        if page == "types":  # the names of arrays are in signatures, rounds and rankings on the first page
            own = [name for name in names if str(_home(getattr(module, name))).startswith("ranktron.")]
            names = [name for name in own if name not in ranktron.__all__]
        pages[page] = [f"{home}.{name}" for name in names]
    return pages


@cache
def told_at(name: str) -> str:
    """The name under which a thing is documented: that of its module, where `ranktron` itself has it too."""
    if name.count(".") > 1:
        return name
    documented = [each for names in modules().values() for each in names if each.count(".") > 1]
    return next((each for each in documented if found(each) is found(name)), name)


def public_names(module: Any) -> list[str]:
    """What a module offers: its `__all__`, or else what it defines under a name without an underscore."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [n for n, thing in vars(module).items() if not n.startswith("_") and _home(thing) == module.__name__]


def _home(thing: Any) -> Any:
    return getattr(thing, "__module__", None) if inspect.isclass(thing) or callable(thing) else None


def found(name: str) -> Any:
    """The thing of a full name such as `ranktron.metrics.evaluate`."""
    module, _, last = name.rpartition(".")
    return getattr(import_module(module), last)


def _module(page: str) -> Any:
    return import_module(MODULES.get(page, page if page == "ranktron" else f"ranktron.{page}"))


def module_page(page: str) -> str:
    """A page of the programming reference; the site puts the documentation of each name where its comment stands."""
    names = modules()[page]
    module = _module(page)
    rows = [f"| `{name}` | {summary(found(name))} |" for name in names]
    table = "\n".join(["| name | what it is |", "|---|---|", *rows])
    comments = [f"<!-- reference: {name} -->" for name in names if told_at(name) == name]
    return "\n\n".join([f"# {module.__name__}", inspect.cleandoc(module.__doc__ or ""), table, *comments]) + "\n"


def summary(thing: Any) -> str:
    """The first sentence of what is said about a thing; of a value, what it holds."""
    if not (inspect.isclass(thing) or callable(thing)):
        return f"a table of {len(thing)}: {', '.join(f'`{key}`' for key in thing)}"
    return _escaped(_first(thing.__doc__ or ""))


def _first(text: str) -> str:
    paragraph = " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", paragraph)[0]


def module_index() -> str:
    """The pages of the programming reference, with what each module is for."""
    rows = []
    for page, names in modules().items():
        module = _module(page)
        rows.append(f"| [`{module.__name__}`]({page}.md) | {_escaped(_first(module.__doc__ or ''))} | {len(names)} |")
    return "\n".join(["| module | what is in it | names |", "|---|---|---|", *rows])


RESULTS = DOCS / "results" / "comparison.json"
CHOICE = DOCS / "pictures" / "choosing.svg"


DEVELOPMENT = {"ohsumed-letor3": "OHSUMED 3.0", "ohsumed-letor2": "OHSUMED 2.0", "mq2008": "MQ2008"}
OTHERS = {"mslr-sample": "MSLR", "yandex-imat2009-sample": "Yandex", "web": "web", "decisive": "decisive"}


def comparison(names: dict[str, str]) -> str:
    """The numbers of docs/results/comparison.json, which `python -m benchmarks.comparison` computes, on some sets."""
    found = json.loads(RESULTS.read_text(encoding="utf-8"))["sets"]
    sets = [{row["name"]: row for row in found[name]} for name in names]
    lines = ["| | " + " | ".join(f"{name}: NDCG@10 | MAP" for name in names.values()) + " | variants | seconds |"]
    lines.append("|---" * (2 * len(names) + 3) + "|")
    first, last = sets[0], sets[-1]
    for name in first:
        cells = [cell for rows in sets for cell in (rows[name]["shown"] if name in rows else ("–", "–"))]
        ends = [one[name] for one in (first, last) if name in one]
        pairs = [" / ".join(dict.fromkeys(str(end[key]) for end in ends)) for key in ("variants", "seconds")]
        lines.append("| " + " | ".join([name, *cells, *pairs]) + " |")
    tried = dict.fromkeys(f"{sum(row['variants'] for row in rows.values()):,}" for rows in (first, last))
    return "\n".join([*lines, "", f"Variants tried on each validation part, all rows: {' / '.join(tried)}."])


def reproduced(paper: str) -> str:
    """The rows of one paper in docs/results/reproduced.json, which `python -m reproduction all --json` printed."""
    rows = json.loads((DOCS / "results" / "reproduced.json").read_text(encoding="utf-8"))["rows"]
    own = [row for row in rows if row["paper"] == paper]
    lines = ["| claim | paper | ours | values | verdict |", "|---|---|---|---|---|"]
    for row in own:
        if row["ours"] is not None:
            ours = _number(row["ours"]) + (f" ± {_number(row['spread'])}" if row["spread"] else "")
            verdict = "**differs**" if row["verdict"] == "differs" else row["verdict"]
            claim = f"{row['item']}: {row['statement']}".replace("|", "\\|").replace("*", "\\*")
            lines.append(f"| {claim} | {_number(row['published'])} | {ours} | {row['seeds']} | {verdict} |")
    missing = sum(row["ours"] is None for row in own)
    return "\n".join([*lines, *([f"\n{missing} rows more were not run: their data are missing."] if missing else [])])


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    if value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 10.0 else f"{value:.4f}" if abs(value) >= 5e-4 else f"{value:.1e}"


def draw_choice() -> None:
    """Draws all learners side by side on each data set: the mean, and the range over seeds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    sets = json.loads(RESULTS.read_text(encoding="utf-8"))["sets"]
    titles = OTHERS | {name: f"{title} (dev)" for name, title in DEVELOPMENT.items()}
    order = [row["name"] for row in sets["web"]][::-1]
    with pyplot.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ranktron", "font.family": "sans-serif"}):
        figure, panels = pyplot.subplots(2, 4, figsize=(10.4, 9.6), sharey=True, layout="constrained")
        for panel, (name, title) in zip(panels.flat, titles.items(), strict=False):
            for row in sets[name]:
                values, place = row["by seed"]["NDCG@10"], order.index(row["name"])
                behind = row["p"]["NDCG@10"] < 0.05
                colour = "#d55e00" if behind else "#0072b2"
                panel.plot([min(values), max(values)], [place, place], color=colour, linewidth=2)
                panel.plot(sum(values) / len(values), place, "o" if not behind else "x", color=colour, markersize=6)
            panel.set(title=title, xlabel="NDCG@10", yticks=range(len(order)), yticklabels=order)
            panel.spines[["top", "right"]].set_visible(False)
            panel.grid(axis="both", alpha=0.25)
        panels.flat[-1].set_axis_off()
        figure.suptitle(
            "Test queries, mean over folds; × significantly worse than the best; dev: often looked at", fontsize=11
        )
        figure.savefig(CHOICE, metadata={"Date": None})
        pyplot.close(figure)
