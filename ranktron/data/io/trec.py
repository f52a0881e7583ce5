"""TREC's two file formats: relevance judgements (`qrels`) and rankings (`run`).

Both are read as `{query: {document: value}}`, the form that pytrec_eval, ranx and ir_measures take.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ranktron.data.files import open_compressed
from ranktron.data.io.formats import blocks
from ranktron.errors import DataError

Values = dict[str, dict[str, float]]
Grades = dict[str, dict[str, int]]


def read_qrels(path: str | Path) -> Grades:
    """Reads judgements, `query 0 document grade` on each line.

    Grades are returned unchanged: TREC uses negative ones for documents that were not judged or are spam, and
    metrics count them as not relevant.

    Parameters
    ----------
    path : path
        The file; it may be compressed.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> write_qrels({"q1": {"d1": 2, "d2": 0}}, folder / "qrels")
    >>> read_qrels(folder / "qrels")
    {'q1': {'d1': 2, 'd2': 0}}
    """
    qrels: Grades = {}
    for place, (query, _, document, grade) in _rows(Path(path), 4, "query 0 document grade"):
        documents = qrels.setdefault(query, {})
        if document in documents:
            raise DataError(f"{place}: document {document!r} is judged twice for query {query!r}")
        try:
            documents[document] = int(grade)
        except ValueError:
            raise DataError(f"{place}: expected a whole number as the grade, found {grade!r}") from None
    return qrels


def write_qrels(qrels: Mapping[str, Mapping[str, int]], path: str | Path) -> None:
    """Writes judgements, `query 0 document grade` on each line.

    Parameters
    ----------
    qrels : {query: {document: grade}}
        The judgements; blanks in ids are written as `%20`, and ids must not be empty.
    path : path
        The file to write; compressed if its name ends in `.gz`, `.zst`, `.bz2` or `.xz`.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "qrels"
    >>> write_qrels({"q1": {"d1": 2}}, path)
    >>> path.read_text()
    'q1 0 d1 2\\n'
    """
    with open_compressed(Path(path)) as file:
        queries = _words(qrels)
        for query, documents in qrels.items():
            words = _words(documents)
            for document, grade in documents.items():
                file.write(f"{queries[query]} 0 {words[document]} {int(grade)}\n".encode())


def read_run(path: str | Path) -> Values:
    """Reads a ranking, `query Q0 document rank score tag` on each line; as in trec_eval only the scores count.

    Parameters
    ----------
    path : path
        The file; it may be compressed.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> write_run({"q1": {"d1": 0.5, "d2": 2.0}}, folder / "run")
    >>> print((folder / "run").read_text(), end="")
    q1 Q0 d2 1 2.0 ranktron
    q1 Q0 d1 2 0.5 ranktron
    >>> read_run(folder / "run")
    {'q1': {'d2': 2.0, 'd1': 0.5}}
    """
    run: Values = {}
    for place, (query, _, document, _, score, _) in _rows(Path(path), 6, "query Q0 document rank score tag"):
        documents = run.setdefault(query, {})
        if document in documents:
            raise DataError(f"{place}: document {document!r} is ranked twice for query {query!r}")
        try:
            documents[document] = float(score)
        except ValueError:
            raise DataError(f"{place}: expected a number as the score, found {score!r}") from None
        if not isfinite(documents[document]):
            raise DataError(f"{place}: expected a finite score, found {score!r}")
    return run


def write_run(run: Mapping[str, Mapping[str, float]], path: str | Path, tag: str = "ranktron") -> None:
    """Writes a ranking, best first; equal scores are ordered as in trec_eval, by document id descending.

    Parameters
    ----------
    run : {query: {document: score}}
        The scores; blanks in ids are written as `%20`, and ids must not be empty.
    path : path
        The file to write; compressed if its name ends in `.gz`, `.zst`, `.bz2` or `.xz`.
    tag : str
        The name of the system, the last word of each line.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "run"
    >>> write_run({"q1": {"d1": 0.5}}, path, tag="mine")
    >>> path.read_text()
    'q1 Q0 d1 1 0.5 mine\\n'
    """
    with open_compressed(Path(path)) as file:
        queries = _words(run)
        for query, documents in run.items():
            words = _words(documents)
            ordered = sorted(documents.items(), key=lambda item: (item[1], item[0]), reverse=True)
            for rank, (document, score) in enumerate(ordered, start=1):
                line = f"{queries[query]} Q0 {words[document]} {rank} {float(score)!r} {trec_word(tag)}\n"
                file.write(line.encode())


def trec_word(name: object) -> str:
    """An id as TREC files hold it: blanks, which separate the words of a line, are percent-encoded.

    >>> trec_word("red shoes"), trec_word("50%")
    ('red%20shoes', '50%')
    """
    word = str(name)
    if not word:
        raise DataError("an empty id cannot be written to a TREC file")
    return word if word.split() == [word] else "".join(quote(c) if c.isspace() else c for c in word)


def _words(names: Iterable[object]) -> dict[Any, str]:
    """The word of each id; two ids with the same word are refused."""
    words: dict[Any, str] = {}
    owners: dict[str, object] = {}
    for name in names:
        word = words[name] = trec_word(name)
        if owners.setdefault(word, name) != name:
            raise DataError(f"the ids {owners[word]!r} and {name!r} are both {word!r} in a TREC file: rename one")
    return words


def _rows(path: Path, n: int, form: str) -> Iterator[tuple[str, list[str]]]:
    """Yields the words of each line with its place; lines that are blank are skipped."""
    content = b"".join(blocks(path)).decode("utf-8", "replace")
    for number, line in enumerate(content.split("\n"), start=1):
        words = line.split()
        if words and len(words) != n:
            raise DataError(f"{path}, line {number}: expected '{form}', found {len(words)} words")
        if words:
            yield f"{path}, line {number}", words
