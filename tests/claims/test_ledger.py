"""The ledger of the papers' claims: no row without a check, no check without a row, and a page that says so."""

import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from ranktron.papers.datasets import DATASETS
from ranktron.papers.harness.reproduce import papers_of

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "claims.md"
PAPERS = {
    "SLAM": ("slam", "Chaudhuri, Tewari: Perceptron-like Algorithms for Online Learning to Rank"),
    "TOPK": ("topk", "Chaudhuri, Tewari: Online Learning to Rank with Feedback at the Top"),
    "RANKMM": ("rankmm", "Agarwal, Collins: Maximum Margin Ranking Algorithms for Information Retrieval"),
    "PREDTRON": ("predtron", "Jain, Natarajan, Tewari: Predtron"),
    "COMMITTEE": ("committee", "Elsas, Carvalho, Carbonell: Committee Perceptron"),
}
HOLDS, CORRECTED, DIFFERS, MISSING = "holds", "holds as corrected", "differs", "not run: data missing"
VERDICTS = (HOLDS, CORRECTED, DIFFERS, MISSING)


@dataclass(frozen=True)
class Row:
    """A claim; what is wrong in the text, what came out differently, where it was checked, what it needs.

    `experiment` is how the names of the experiments begin that show it, too; those of a row that needs data are found
    by the data.
    """

    paper: str
    item: str
    says: str
    corrected: str = ""
    differs: str = ""
    on: str = ""
    data: str = ""
    experiment: str = ""

    def verdict(self, checks):
        """What the marks of its checks say; without a check it needs data that are not here."""
        if not checks:
            return MISSING
        if DIFFERS in checks.values():
            return DIFFERS
        return CORRECTED if self.corrected else HOLDS

    def words(self):
        notes = {"Read": self.corrected, "Here": self.differs, "On": self.on and f"{self.on}.", "Needs": self.needs()}
        return " ".join([plain(self.says), *(f"*{name}:* {plain(text)}" for name, text in notes.items() if text)])

    def experiments(self):
        """Those that check it, as names of the report's sections."""
        found = papers_of(self.paper.lower())[0].experiments
        homes = {home for name in self.data.split(", ") if name for home in (name, DATASETS[name].folder)}
        return [
            f"{self.paper.lower()}-{one.name}"
            for one in found
            if one.data in homes or (self.experiment and one.name.startswith(self.experiment))
        ]

    def needs(self):
        return self.data and "".join(["`", self.data.replace(", ", "`, `"), "` (`ranktron datasets`)."])


def plain(text):
    """Text for a cell of a table: bars and stars mean themselves."""
    return text.replace("|", "\\|").replace("*", "\\*")


def rows():
    found = []
    for paper in PAPERS:
        content = tomllib.loads((HERE / f"{paper.lower()}.toml").read_text())
        found += [Row(paper, item, **({"says": row} if isinstance(row, str) else row)) for item, row in content.items()]
    return found


def checks_of(marks):
    """{(paper, item): {test: verdict}}."""
    checks = {}
    for paper, item, verdict, test in marks:
        tests = checks.setdefault((paper, item), {})
        tests[test] = verdict if tests.get(test, HOLDS) == HOLDS else tests[test]
    return checks


def page(checks):
    """docs/claims.md."""
    table = rows()
    verdicts = {(row.paper, row.item): row.verdict(checks.get((row.paper, row.item), {})) for row in table}
    lines = [
        "# The claims of the five papers",
        "",
        f"Every statement of the papers that can be executed, {len(table)} in all, with the test or experiment that",
        "checks it and what came of it. Experiments are sections of the report that `ranktron reproduce` writes. This",
        "page is made from the tests: `python -m pytest tests/claims --write-docs`.",
        "",
        "- **holds**: checked as printed.",
        "- **holds as corrected**: the text is misprinted or silent; what is checked stands after *Read*.",
        "- **differs**: it did not come out; what did stands after *Here*.",
        "- **not run: data missing**: the loader is there, the data are not ours to give.",
        "",
        "| paper | claims | " + " | ".join(VERDICTS) + " |",
        "|---|---|" + "---|" * len(VERDICTS),
    ]
    for paper, (name, title) in PAPERS.items():
        count = Counter(verdict for (p, _), verdict in verdicts.items() if p == paper)
        cells = [f"[{title}](papers/{name}.md)", count.total(), *(count[verdict] or "" for verdict in VERDICTS)]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    for paper in PAPERS:
        lines += ["", f"## {paper}", "", "| | claim | verdict | checked by |", "|---|---|---|---|"]
        for row in (row for row in table if row.paper == paper):
            key = row.paper, row.item
            tests = [f"`{test.removeprefix('tests/')}`" for test in sorted(checks.get(key, {}))]
            checked = "<br>".join([*tests, *(f"experiment `{name}`" for name in row.experiments())])
            lines.append(f"| {row.item} | {row.words()} | {verdicts[key]} | {checked} |")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def checks(claim_marks):
    return checks_of(claim_marks)


def test_the_ledger_is_whole():
    counts = Counter(row.paper for row in rows())
    assert counts == {"SLAM": 54, "TOPK": 34, "RANKMM": 31, "PREDTRON": 48, "COMMITTEE": 30}
    for paper, count in counts.items():
        numbers = [int(row.item.split()[0]) for row in rows() if row.paper == paper]
        assert numbers == list(range(1, count + 1))


def test_every_claim_has_its_check(checks):
    lost = [row for row in rows() if not (row.experiments() if row.data else checks.get((row.paper, row.item)))]
    assert not lost, f"claims that no test is marked with: {[(row.paper, row.item) for row in lost]}"
    gone = [row for row in rows() if row.experiment and not row.experiments()]
    assert not gone, f"experiments that are no more: {[(row.paper, row.item, row.experiment) for row in gone]}"


def test_every_mark_names_a_claim(checks):
    unknown = {key: list(tests) for key, tests in checks.items()}
    for row in rows():
        unknown.pop((row.paper, row.item), None)
    assert not unknown, f"marks that name no row of the ledger: {unknown}"


def test_rows_say_what_their_verdict_needs(checks):
    for row in rows():
        found = checks.get((row.paper, row.item), {})
        assert set(found.values()) <= {HOLDS, DIFFERS}, f"a mark's verdict is “differs” or left out: {found}"
        verdict = row.verdict(found)
        assert (verdict == DIFFERS) == bool(row.differs), f"{row.paper} {row.item}: {verdict}, but the row says other"
        assert (verdict == MISSING) == bool(row.data), f"{row.paper} {row.item}: {verdict}, but the row says other"
        assert all(name in DATASETS for name in row.data.split(", ") if name)


def test_the_page_is_made_from_the_marks(checks, request):
    wanted = page(checks)
    if request.config.getoption("--write-docs"):
        PAGE.write_text(wanted)
    assert PAGE.read_text() == wanted, "run: python -m pytest tests/claims --write-docs"


def test_a_row_that_loses_its_check_is_noticed(claim_marks):
    """What the tests above compare changes with the marks: one taken away, one misspelt, one turned round."""
    whole = checks_of(claim_marks)
    without = checks_of([mark for mark in claim_marks if mark[:2] != ["SLAM", "21 trick"]])
    row = next(row for row in rows() if row.item == "21 trick")
    assert row.verdict(whole["SLAM", "21 trick"]) == HOLDS
    assert ("SLAM", "21 trick") not in without
    turned = checks_of([[*mark[:2], DIFFERS, mark[3]] if mark[1] == "21 trick" else mark for mark in claim_marks])
    assert row.verdict(turned["SLAM", "21 trick"]) == DIFFERS
    assert len({page(whole), page(without), page(turned)}) == 3
