"""Search in documentation: candidates for a query by BM25, and their features."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log

import numpy as np

from ranktron.errors import MissingExtra
from ranktron.service.demo.standard_library import LibraryEntry
from ranktron.types import Floats, Matrix

FEATURES = {
    "name_bm25": "BM25 of the words of the name, over the best candidate's",
    "text_bm25": "BM25 of the words of the docstring, over the best candidate's",
    "module_bm25": "BM25 of the words of the module's name, over the best candidate's",
    "words_in_name": "share of the query's words that are in the name",
    "words_in_summary": "share of the query's words that are in the first paragraph of the docstring",
    "exact_name": "the query is the name",
    "name_starts": "the name starts with the query",
    "name_contains": "the name contains the query",
    "module_asked": "a word of the query is the module",
    "is_function": "it is a function",
    "is_class": "it is a class",
    "is_method": "it is a method or a property",
    "is_module": "it is a module",
    "is_exception": "it is an exception",
    "shallow": "one over the number of parts of its full name",
    "long_text": "length of the docstring, on a logarithmic scale",
}
CANDIDATES = 50
_KINDS = {"function": 0, "class": 1, "method": 2, "property": 2, "module": 3, "exception": 4}
_LONGEST_TEXT = log(1.0 + 4000.0)


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def words(text: str) -> list[str]:
    """The words of a text or an identifier, lower-cased and in the singular.

    >>> words("getLogger"), words("os.path.read_bytes"), words("HTTPServer")
    (['get', 'logger'], ['os', 'path', 'read', 'byte'], ['http', 'server'])
    """
    return [_stem(word.lower()) for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", text)]


@dataclass(frozen=True)
class Candidates:
    """The candidates for a query by descending BM25, and a row of `FEATURES` for each."""

    documents: list[LibraryEntry]
    X: Matrix


class Index:
    """Retrieves candidates by the sum of three BM25 scores: over names, docstrings and module names.

    Their order is that of a ranker whose weights are all zero.

    >>> library = [LibraryEntry("json.loads", "json", "function", "(s)", "Deserialize a string."),
    ...            LibraryEntry("json.load", "json", "function", "(fp)", "Deserialize a file."),
    ...            LibraryEntry("os", "os", "module", "", "Miscellaneous operating system interfaces.")]
    >>> candidates = Index(library).search("json load")
    >>> [document.id for document in candidates.documents], candidates.X.shape
    (['json.load', 'json.loads'], (2, 16))
    """

    def __init__(self, documents: Sequence[LibraryEntry]) -> None:
        try:
            from bm25s import BM25
            from bm25s.stopwords import STOPWORDS_EN
        except ImportError:
            raise MissingExtra("the search page", "serve") from None
        self.documents = sorted(documents, key=lambda each: each.id)
        self._stops = frozenset(STOPWORDS_EN)
        names = [words(each.id.removeprefix(each.module)) or words(each.id) for each in self.documents]
        texts = [words(each.text) for each in self.documents]
        modules = [words(each.module) for each in self.documents]
        self._fields = []
        for field in (names, texts, modules):
            bm25 = BM25()
            bm25.index([list(each) or ["-"] for each in field], show_progress=False)
            self._fields.append(bm25)
        self._names = [frozenset(each) for each in names]
        self._summaries = [frozenset(words(each.summary)) for each in self.documents]
        self._plain_names = [_plain(each.name) for each in self.documents]
        self._fixed = np.array([_document_features(each) for each in self.documents], np.float32)

    def search(self, query: str, n: int = CANDIDATES) -> Candidates:
        """The n best candidates, best first; none if no word of the query is in the index."""
        terms = list(dict.fromkeys(words(query)))
        terms = [term for term in terms if term not in self._stops] or terms
        if not terms:
            return Candidates([], np.empty((0, len(FEATURES)), np.float32))
        scores = [_normalise(bm25.get_scores(terms)) for bm25 in self._fields]
        total = np.sum(scores, axis=0) + self._name_contains(query)
        best = np.argsort(-total, kind="stable")[:n]
        best = best[total[best] > 0.0]
        fields = np.array([_normalise(field[best]) for field in scores], np.float32).T.reshape(-1, 3)
        matches = [self._match_features(i, query, terms) for i in best.tolist()]
        X = np.hstack([fields, np.array(matches, np.float32).reshape(-1, 6), self._fixed[best]])
        return Candidates([self.documents[i] for i in best.tolist()], np.ascontiguousarray(X))

    def _name_contains(self, query: str) -> Floats:
        """1 for each document whose name contains the query, so that a part of a word finds it."""
        text = _plain(query)
        return np.array([text in name for name in self._plain_names], np.float64) if len(text) > 1 else np.zeros(1)

    def _match_features(self, i: int, query: str, terms: list[str]) -> tuple[float, ...]:
        document = self.documents[i]
        text, name = _plain(query), self._plain_names[i]
        return (
            sum(term in self._names[i] for term in terms) / len(terms),
            sum(term in self._summaries[i] for term in terms) / len(terms),
            float(text in (name, _plain(document.id))),
            float(name.startswith(text)),
            float(text in name),
            float(any(part in query.lower().split() for part in document.module.lower().split("."))),
        )


def _plain(name: str) -> str:
    """A name without separators, lower-cased: `read_text`, `readText` and `read text` are the same."""
    return re.sub(r"\W|_", "", name).lower()


def _document_features(document: LibraryEntry) -> list[float]:
    """The features that do not depend on the query."""
    kinds = [0.0] * 5
    kinds[_KINDS[document.kind]] = 1.0
    return [*kinds, 1.0 / (1 + document.id.count(".")), min(1.0, log(1.0 + len(document.text)) / _LONGEST_TEXT)]


def _normalise(scores: Floats) -> Floats:
    highest = float(scores.max(initial=0.0))
    return scores / highest if highest > 0.0 else scores
