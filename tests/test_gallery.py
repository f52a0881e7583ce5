"""The gallery: every script runs, and prints and draws what its page shows."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import examples  # noqa: E402

NUMBER = r"(?<![\w@^])-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"


def alike(one, other):
    """Whether two texts have the same words, and numbers that differ by no more than libraries and processors do."""
    if re.sub(NUMBER, "#", one) != re.sub(NUMBER, "#", other):
        return False
    pairs = zip(*([float(n.replace(",", "")) for n in re.findall(NUMBER, text)] for text in (one, other)), strict=True)
    return all(abs(a - b) <= max(0.02, 0.1 * abs(b)) for a, b in pairs)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("NDCG@10 0.73, of 20", "NDCG@10 0.74, of 20", True),
        ("NDCG@10 0.73", "NDCG@10 0.93", False),
        ("NDCG@10 0.73", "NDCG@5 0.73", False),
        ("the new ranker", "the old ranker", False),
        ("after 115 pages", "after 1,150 pages", False),
    ],
)
def test_texts_are_compared_by_words_and_numbers(one, other, same):
    assert alike(one, other) == same


# What others warn of: MLflow of itself as it is imported, Dask of a busy machine, pandas of what PyTerrier calls.
WARNINGS = {
    "track-with-mlflow": "ignore",
    "many-machines": "ignore:(Creating scratch|Sending large graph|Event loop)",
    "rank-in-pyterrier": "ignore:The inplace keyword",
}
RUN = [
    pytest.param(name, marks=[pytest.mark.filterwarnings(WARNINGS[name])] if name in WARNINGS else [])
    for name in examples.SCRIPTS
]


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_a_script_prints_and_draws_what_its_page_shows(name, tmp_path, request):
    for needed in re.findall(r"^import (mlflow|onnxruntime|dask|pyterrier)", examples.code(name), re.MULTILINE):
        pytest.importorskip(needed)
    printed, drawn = examples.run(name, tmp_path)
    path, picture = examples.GALLERY / f"{name}.md", examples.GALLERY / f"{name}.svg"
    if request.config.getoption("--write-docs"):
        path.write_text(examples.page(name, printed), encoding="utf-8")
        picture.write_text(drawn, encoding="utf-8")
    advice = "run: python -m pytest tests/test_gallery.py --write-docs"
    shown = path.read_text(encoding="utf-8")
    before, _, after = examples.page(name, printed).partition(f"```text\n{printed.rstrip()}\n```")
    assert shown.startswith(before), advice
    assert shown.endswith(after), advice
    assert alike(shown.removeprefix(before).removesuffix(after), f"```text\n{printed.rstrip()}\n```"), advice
    assert alike(examples.words(picture.read_text(encoding="utf-8")), examples.words(drawn)), advice
    assert 5_000 < len(drawn.encode()) < 60_000
    assert examples.words(drawn).count("\n") > 5, "a picture has a title and labelled axes"


@pytest.mark.parametrize("name", examples.SCRIPTS)
def test_scripts_are_short_and_say_what_they_do(name):
    title, about = examples.docstring(name)
    assert 10 < len(title) < 60
    assert 100 < len(about) < 600
    lines = [line for line in examples.code(name).splitlines() if line.strip()]
    assert 15 <= len(lines) <= 62
    assert any(line.lstrip().startswith("#") for line in lines) or any('"""' in line for line in lines)


def test_the_index_shows_every_script_and_no_other_is_there(request):
    path = examples.GALLERY / "index.md"
    if request.config.getoption("--write-docs"):
        path.write_text(examples.index(), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == examples.index(), "run it with --write-docs"
    assert {path.stem for path in examples.GALLERY.glob("*.py")} == set(examples.SCRIPTS)
    assert {path.stem for path in examples.GALLERY.glob("*.md")} == {"index", *examples.SCRIPTS}
