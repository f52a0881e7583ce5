"""Search in documentation: candidates for a query, and the features that a ranker orders them by."""

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
    """The words of a text or a name, in small letters, plurals cut.

    >>> words("getLogger"), words("os.path.read_bytes"), words("HTTPServer")
    (['get', 'logger'], ['os', 'path', 'read', 'byte'], ['http', 'server'])
    """
    parted = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", text)
    return [_stem(word.lower()) for word in parted]


@dataclass(frozen=True)
class Candidates:
    """What was found for a query, the best match first, and a row of `FEATURES` for each."""

    documents: list[LibraryEntry]
    X: Matrix


class Index:
    """Finds the documents that may answer a query.

    Three BM25 indices, over names, docstrings and module names, choose the candidates by the sum of their scores, and
    give them in that order: it is what a ranker whose weights are all zero shows.

    >>> library = [LibraryEntry("json.loads", "json", "function", "(s)", "Deserialize a string."),
    ...            LibraryEntry("json.load", "json", "function", "(fp)", "Deserialize a file."),
    ...            LibraryEntry("os", "os", "module", "", "Miscellaneous operating system interfaces.")]
    >>> found = Index(library).search("json load")
    >>> [each.id for each in found.documents], found.X.shape
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
        """The n candidates that match best, best first; none if no word of the query is known."""
        asked = list(dict.fromkeys(words(query)))
        telling = [word for word in asked if word not in self._stops] or asked
        if not telling:
            return Candidates([], np.empty((0, len(FEATURES)), np.float32))
        scores = [_shares(bm25.get_scores(telling)) for bm25 in self._fields]
        total = np.sum(scores, axis=0) + self._containing(query)
        best = np.argsort(-total, kind="stable")[:n]
        chosen = best[total[best] > 0.0]
        fields = np.array([_shares(each[chosen]) for each in scores], np.float32).T.reshape(-1, 3)
        matches = [self._matches(i, query, telling) for i in chosen.tolist()]
        X = np.hstack([fields, np.array(matches, np.float32).reshape(-1, 6), self._fixed[chosen]])
        return Candidates([self.documents[i] for i in chosen.tolist()], np.ascontiguousarray(X))

    def _containing(self, query: str) -> Floats:
        """One for each document whose name contains the query, so that half a word is enough to find it."""
        whole = _plain(query)
        return np.array([whole in name for name in self._plain_names], np.float64) if len(whole) > 1 else np.zeros(1)

    def _matches(self, i: int, query: str, asked: list[str]) -> tuple[float, ...]:
        document = self.documents[i]
        whole, name = _plain(query), self._plain_names[i]
        return (
            sum(word in self._names[i] for word in asked) / len(asked),
            sum(word in self._summaries[i] for word in asked) / len(asked),
            float(whole in (name, _plain(document.id))),
            float(name.startswith(whole)),
            float(whole in name),
            float(any(part in query.lower().split() for part in document.module.lower().split("."))),
        )


def _plain(name: str) -> str:
    """A name without its separators: `read_text`, `readText` and `read text` are one."""
    return re.sub(r"\W|_", "", name).lower()


def _document_features(document: LibraryEntry) -> list[float]:
    """The features that do not depend on the query."""
    kinds = [0.0] * 5
    kinds[_KINDS[document.kind]] = 1.0
    return [*kinds, 1.0 / (1 + document.id.count(".")), min(1.0, log(1.0 + len(document.text)) / _LONGEST_TEXT)]


def _shares(scores: Floats) -> Floats:
    highest = float(scores.max(initial=0.0))
    return scores / highest if highest > 0.0 else scores
