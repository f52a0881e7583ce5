import doctest
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "data.md"


def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=options, encoding="utf-8")
    assert tried > 10
    assert failed == 0
