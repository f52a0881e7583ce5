"""The page about the paper: its examples run and its pictures are there."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "papers" / "predtron.md"


def test_examples_run():
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert tried > 5
    assert failed == 0


def test_pictures_are_there():
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", PAGE.read_text(encoding="utf-8"))
    assert len(pictures) == 4
    for picture in pictures:
        assert (PAGE.parent / picture).is_file()
