"""The ledger of the papers' claims: no row without a check, no check without a row, and a page that says so.

No verdict is typed anywhere: those of the rows follow from their values, those of the claims from tests and rows.
"""

import json
import re
import tomllib
from collections import Counter
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest

from reproduction.datasets import DATASETS
from reproduction.harness.reproduce import judge, select_papers
from reproduction.harness.verdicts import DIFFERS, HOLDS, MISSING, TOO_FEW, AtLeast, AtMost, Near, Ordered, severity
from reproduction.report.ledger import CORRECTED, STAND_IN, WORDS, Statement, plain_verdict

HERE = Path(__file__).parent
DOCS = HERE.parents[2] / "docs"
PAGE, ROWS = DOCS / "claims.md", DOCS / "results" / "reproduced.json"
PAPERS = {
    "SLAM": ("slam", "Chaudhuri, Tewari: Perceptron-like Algorithms for Online Learning to Rank"),
    "TOPK": ("topk", "Chaudhuri, Tewari: Online Learning to Rank with Feedback at the Top"),
    "RANKMM": ("rankmm", "Agarwal, Collins: Maximum Margin Ranking Algorithms for Information Retrieval"),
    "PREDTRON": ("predtron", "Jain, Natarajan, Tewari: Predtron"),
    "COMMITTEE": ("committee", "Elsas, Carvalho, Carbonell: Committee Perceptron"),
}


def statements():
    found = []
    for paper in PAPERS:
        content = tomllib.loads((HERE / f"{paper.lower()}.toml").read_text())
        found += [
            Statement(paper, item, **({"says": row} if isinstance(row, str) else row)) for item, row in content.items()
        ]
    return found


def stored_rows():
    return json.loads(ROWS.read_text(encoding="utf-8"))["rows"]


def claims_in_code():
    """{(paper, item): (experiment, claim)} of all experiments."""
    return {
        (paper.name, claim.item): (experiment, claim)
        for paper in select_papers("all")
        for experiment in paper.experiments
        for claim in experiment.claims
    }


def marked_tests(marks):
    """{(paper, item): tests}."""
    found = {}
    for paper, item, test in marks:
        found.setdefault((paper, item), set()).add(test)
    return found


def plain(text):
    """Text for a cell of a table: bars and stars mean themselves."""
    return text.replace("|", "\\|").replace("*", "\\*")


def words(statement, rows):
    stand_ins = dict.fromkeys(row["stand_in"] for row in statement.counted(rows) if row["stand_in"])
    names = statement.data.replace(", ", "`, `")
    needs = names and f"`{names}` (`python -m reproduction datasets`)."
    notes = {
        "Read": statement.corrected,
        "Here": statement.outcome(rows),
        "On": statement.on and f"{statement.on}.",
        "Stand-in": stand_ins and "; ".join(stand_ins) + ".",
        "Needs": needs,
    }
    return " ".join([plain(statement.says), *(f"*{name}:* {plain(text)}" for name, text in notes.items() if text)])


def page(tests, rows):
    """docs/claims.md."""
    table = statements()
    verdicts = {(s.paper, s.item): s.verdict(tests.get((s.paper, s.item), ()), rows) for s in table}
    lines = [
        "# The claims of the five papers",
        "",
        f"Every statement of the papers that can be executed, {len(table)} in all, with the tests and the rows of",
        "experiments that check it and what came of it. Nobody wrote a verdict down: a test that is marked with a",
        "claim asserts it; a row, of the report that `python -m reproduction` writes, has the verdict of its",
        "[rule](reproduce.md#verdicts); the worst of them is the claim's. This page is made from both:",
        "`python -m pytest tests/reproduction/claims --write-docs`.",
        "",
        *(f"- **{verdict}**: {meaning}" for verdict, meaning in WORDS.items()),
        "",
        f"“{STAND_IN.strip()}” is added where the paper's own data or programs are not to be had and something else",
        "was run in their place: what, stands after *Stand-in*. Where its own data are found, only these count.",
        "",
        "| paper | claims | " + " | ".join(WORDS) + " | of these on stand-ins |",
        "|---|---|" + "---|" * (len(WORDS) + 1),
    ]
    for paper, (name, title) in PAPERS.items():
        own = [verdict for (p, _), verdict in verdicts.items() if p == paper]
        count = Counter(map(plain_verdict, own))
        stood_in = sum(verdict.endswith(STAND_IN) for verdict in own)
        cells = [f"[{title}](papers/{name}.md)", len(own), *(count[verdict] or "" for verdict in WORDS), stood_in or ""]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    for paper in PAPERS:
        lines += ["", f"## {paper}", "", "| | claim | verdict | checked by |", "|---|---|---|---|"]
        for one in (one for one in table if one.paper == paper):
            key = one.paper, one.item
            checks = [f"`{test.removeprefix('tests/')}`" for test in sorted(tests.get(key, ()))]
            checks += [f"experiment `{name}`: {told}" for name, told in by_experiment(one.cited(rows)).items()]
            lines.append(f"| {one.item} | {words(one, rows)} | {verdicts[key]} | {'<br>'.join(checks)} |")
    return "\n".join(lines) + "\n"


def by_experiment(rows):
    """{experiment: how many of its rows have which verdict}."""
    found = {}
    for row in rows:
        found.setdefault(row["experiment"], Counter())[row["verdict"]] += 1
    return {
        name: ", ".join(f"{count} × {verdict}" if count > 1 else verdict for verdict, count in counts.items())
        for name, counts in found.items()
    }


@pytest.fixture(scope="module")
def tests(claim_marks):
    return marked_tests(claim_marks)


def test_the_ledger_is_whole():
    counts = Counter(one.paper for one in statements())
    assert counts == {"SLAM": 54, "TOPK": 34, "RANKMM": 31, "PREDTRON": 48, "COMMITTEE": 30}
    for paper, count in counts.items():
        numbers = [int(one.item.split()[0]) for one in statements() if one.paper == paper]
        assert numbers == list(range(1, count + 1))


def test_no_measured_number_is_typed():
    """What came out is computed from rows: a decimal of its own in a sentence could contradict them."""
    rows = stored_rows()
    for one in statements():
        typed = re.findall(r"\d\.\d+", re.sub(r"\{[^}]*\}|@\d+|LETOR \d\.\d", "", one.here))
        assert not typed, f"{one.paper} {one.item}: {typed}"
        assert "{" not in one.outcome(rows)
    with pytest.raises(KeyError):
        replace(one, here="{no such row}").outcome(rows)


@pytest.mark.parametrize("few", [2, 3, 5])
def test_fewer_seeds_never_have_another_verdict_than_all(few):
    """Of the stored rows the first seeds: a plain judgement of these contradicts some of the full ones, ours none."""
    rows = {(row["paper"], row["item"]): row for row in stored_rows() if row["values"]}
    plain = 0
    for key, (experiment, claim) in claims_in_code().items():
        row = rows.get(key)
        if row is None or all(series.seeds <= few for series in experiment.series):
            continue
        values = {name: each[:few] for name, each in row["values"].items()}
        plain += judge(claim.rule, values)["verdict"] != row["verdict"]
        found = judge(claim.rule, values, same_runs=True)["verdict"]
        assert found in (TOO_FEW, row["verdict"]), key
    assert plain > 5


def test_every_claim_has_its_check(tests):
    rows = stored_rows()
    lost = [one for one in statements() if not (one.cited(rows) or tests.get((one.paper, one.item)))]
    assert not lost, f"claims with neither test nor row: {[(one.paper, one.item) for one in lost]}"
    items = {paper: [row["item"] for row in rows if row["paper"] == paper.lower()] for paper in PAPERS}
    empty = [
        (one.paper, one.item, pattern)
        for one in statements()
        for pattern in one.rows
        if not any(fnmatchcase(item, pattern) for item in items[one.paper])
    ]
    assert not empty, f"rows that are no more: {empty}"


def test_every_mark_and_every_row_belongs_to_a_claim(tests):
    table = statements()
    unknown = set(tests) - {(one.paper, one.item) for one in table}
    assert not unknown, f"marks that name no claim of the ledger: {unknown}"
    orphans = [
        (row["paper"], row["item"])
        for row in stored_rows()
        if row["paper"] != "comparison" and "(ours)" not in row["item"] and not any(one.cited([row]) for one in table)
    ]
    assert not orphans, f"rows that no claim cites: {orphans}"


def test_the_stored_rows_are_those_of_the_experiments():
    known, rows = claims_in_code(), {(row["paper"], row["item"]): row for row in stored_rows()}
    assert set(rows) == set(known)
    for key, (experiment, claim) in known.items():
        row = rows[key]
        assert (row["statement"], row["setting"], row["stand_in"]) == (
            claim.statement,
            claim.setting,
            experiment.stand_in,
        ), key
        assert row["published"] == claim.rule.published, key
        assert row["data"] == (experiment.data or "simulated"), key


def values_with(mean, deviation, count):
    """Values with exactly this mean and standard deviation."""
    if count == 1:
        return [mean]
    z = np.linspace(-1.0, 1.0, count)
    return list(mean + deviation * z / z.std(ddof=1))


def values_of(row, rule, rows):
    """The values behind a row; of a run that did not keep them, values with the mean and the spread that it noted.

    More than these no rule for one number, one difference or one bound looks at.
    """
    if row["values"] is not None:
        return row["values"]
    mine = values_with(row["ours"], row["spread"], row["seeds"])
    if isinstance(rule, Near):
        shared = row["item"].rpartition(rule.which)
        beside = {name: shared[0] + name + shared[2] for name in rule.column}
        means = {one["item"]: one["ours"] for one in rows if one["paper"] == row["paper"]}
        return {**{name: [means[item]] for name, item in beside.items() if item in means}, rule.which: mine}
    if isinstance(rule, Ordered):
        assert len(rule.names) == 2, f"{row['item']}: several differences cannot be judged by the smallest"
        return {rule.names[0]: mine, rule.names[1]: [0.0] * len(mine)}
    assert isinstance(rule, (AtLeast, AtMost)), row["item"]
    return {"the extreme": [row["ours"]]}


def test_no_verdict_of_a_row_is_typed():
    known, rows = claims_in_code(), stored_rows()
    for row in rows:
        if row["ours"] is None:
            assert row["verdict"] == MISSING
            continue
        rule = known[row["paper"], row["item"]][1].rule
        found = judge(rule, values_of(row, rule, rows))
        assert found["verdict"] == row["verdict"], (row["paper"], row["item"], found["verdict"])
        assert found["ours"] == pytest.approx(row["ours"], abs=1e-12), row["item"]


def test_what_does_not_hold_says_what_came_out(tests):
    rows = stored_rows()
    for one in statements():
        verdict = one.verdict(tests.get((one.paper, one.item), ()), rows).removesuffix(STAND_IN)
        told = verdict not in (HOLDS, CORRECTED, MISSING)
        assert told == bool(one.here), f"{one.paper} {one.item}: {verdict}, but the row says other"
        assert all(name in DATASETS for name in one.data.split(", ") if name)
        assert bool(one.data) == any(row["verdict"] == MISSING for row in one.cited(rows)) or not one.data


def test_the_page_is_made_from_tests_and_rows(tests, request):
    wanted = page(tests, stored_rows())
    if request.config.getoption("--write-docs"):
        PAGE.write_text(wanted)
    assert PAGE.read_text() == wanted, "run: python -m pytest tests/reproduction/claims --write-docs"


def test_page_ledger_and_rows_cannot_disagree(claim_marks):
    """What the tests above compare changes with every mark and every row: one taken away, one turned round."""
    rows, whole = stored_rows(), marked_tests(claim_marks)
    without = marked_tests([mark for mark in claim_marks if mark[:2] != ["SLAM", "21 trick"]])
    assert ("SLAM", "21 trick") not in without
    turned = [{**row, "verdict": DIFFERS} if row["item"] == "Corollary 11" else row for row in rows]
    one = next(one for one in statements() if one.item == "42 Cor11")
    marked = whole["SLAM", "42 Cor11"]
    assert one.verdict(marked, rows) == HOLDS
    assert one.verdict(marked, turned) == DIFFERS
    assert len({page(whole, rows), page(without, rows), page(whole, turned)}) == 3


def row(verdict, item="a", setting="", stand_in="", ours=1.0):
    return {"paper": "slam", "item": item, "verdict": verdict, "setting": setting, "stand_in": stand_in, "ours": ours}


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([], HOLDS),
        ([row("reproduced"), row("holds")], HOLDS),
        ([row("holds"), row("cannot tell")], "cannot tell"),
        ([row("same ordering, other level"), row("cannot tell")], "same ordering, other level"),
        ([row("holds"), row("differs"), row("cannot tell")], DIFFERS),
        ([row(DIFFERS, item="b")], HOLDS),  # cited by another claim
        ([row("holds", setting="x"), row(DIFFERS, setting="y")], "holds in 1 of 2 settings"),
        ([row("holds", setting="x"), row(DIFFERS, setting="x")], DIFFERS),
        ([row("cannot tell", setting="x"), row(DIFFERS, setting="y")], DIFFERS),
        ([row("holds", setting="x"), row("reproduced", setting="y")], HOLDS),
        ([row("holds in 1 of 9 settings"), row("holds")], "holds in 1 of 9 settings"),
        ([row("reproduced", stand_in="this for that")], HOLDS + STAND_IN),
        ([row(DIFFERS, stand_in="this for that"), row("reproduced")], HOLDS),  # its own data were found
        ([row(DIFFERS, stand_in="this for that"), row(MISSING, ours=None)], DIFFERS + STAND_IN),
        ([row(MISSING, ours=None)], HOLDS),  # its tests ran
    ],
)
def test_the_worst_counts(rows, verdict):
    one = Statement("SLAM", "1", "says", rows=["a"])
    assert one.verdict(["a test"], rows) == verdict
    if verdict == HOLDS:
        assert replace(one, corrected="as we do").verdict(["a test"], rows) == CORRECTED


def test_without_test_and_row_nothing_was_run():
    one = Statement("SLAM", "1", "says", rows=["a"])
    assert one.verdict([], [row(MISSING, ours=None)]) == MISSING
    assert one.verdict([], [row("reproduced")]) == HOLDS
    assert [severity(verdict) for verdict in (HOLDS, "cannot tell", DIFFERS, MISSING)] == [0, 2, 4, 5]
