"""Rankers that are fitted to clicks: `fit(X, clicks, qid=..., position=...)`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ranktron.data.frames import named_columns, read_eval_set
from ranktron.data.impressions import Impressions, make_impressions
from ranktron.errors import DataError
from ranktron.estimators.base import BaseRanker, OnlineRanker, unchanged_if_refused
from ranktron.learners.clicks.estimating import WeightedLog, weigh_log
from ranktron.learners.clicks.examination import Examination
from ranktron.learners.clicks.randomised import update_examination
from ranktron.learners.schedule import repetitions
from ranktron.metrics import Metric

OWN_WEIGHTS = "clicks have weights of their own: fit them without sample_weight"
_COLUMNS = ("position", "propensity", "exploration", "query", "item", "ranker")


class ClickRanker(BaseRanker):
    """A ranker that learns from labels, or, given positions, from clicks.

    >>> from ranktron.estimators import RankSVM
    >>> ranker = RankSVM().fit([[1.0], [3.0]], [0, 1], qid=["a", "a"], position=[1, 2], examination=[1.0, 0.5])
    >>> ranker.examination_.values
    array([1. , 0.5])
    """

    __metadata_request__fit: ClassVar = {
        "qid": True, "groups": True, "examination": False, "clip": False, **dict.fromkeys(_COLUMNS, True),
    }  # fmt: skip

    def fit(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        group: Any = None,
        *,
        position: Any = None,
        propensity: Any = None,
        exploration: Any = None,
        query: Any = None,
        item: Any = None,
        ranker: Any = None,
        examination: Any = None,
        clip: float = 0.0,
        sample_weight: Any = None,
        groups: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        eval_metric: str | Metric | None = None,
        patience: int | None = None,
    ) -> Self:
        """Learns from scratch, from labels, or from clicks where `position` says where each document stood.

        Clicks: each clicked document is preferred to all others of its impression, with its gain over the probability
        that it was seen as the weight: on average the loss of true relevance on the pages that were shown. That
        probability is `propensity`, or the examination of its position, which is given, or estimated from the log: see
        `ranktron.learners.clicks.estimate_examination`. It is `examination_` afterwards, and part of the saved model.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per document.
        y : array
            The labels; or 1 for a click, 0 for none, or any gain of at least 0.
        qid : array, name of a column, or a scalar
            The query of each row; of clicks, the impression.
        group : array
            Sizes of consecutive lists instead.
        position : array, or name of a column
            Where each document stood, from 1 on: y holds clicks.
        propensity : array, or name of a column
            How likely the document was to be seen in its impression, where that is known: above 0, at most 1.
        exploration : array, or name of a column
            How likely it was to be *shown* at its position, where rankings were drawn: what the randomised estimate of
            examination needs. With it, clicks on single documents are compared across impressions of a query.
        query, item, ranker : array, or name of a column
            Which impressions share a query, which rows are the same document, who showed it. Harvesting needs query and
            item.
        examination : Examination, array, or "randomised", "harvested", "em", "user-browsing"
            The curve from position 1 on, or how to estimate it; by default, what assumes least of what the log allows.
        clip : float
            The smallest propensity that counts; smaller ones are clipped, `click_weights_` says at which price.
        sample_weight : array
            How much each row counts; not with clicks.
        groups : array
            Query ids under the name that scikit-learn's splitters have for them; `qid` comes first.
        eval_set : (X, y) or a list of such pairs
            The validation set, with labels.
        eval_qid, eval_group : array
            Its query ids, or the sizes of its consecutive lists; a list of such where `eval_set` is one.
        eval_metric : metric or its name
            What chooses the pass on the validation set; NDCG@10 where it is left out.
        patience : int >= 1
            Stops after this many passes without improvement on the validation set.
        """
        columns = dict(zip(_COLUMNS, (position, propensity, exploration, query, item, ranker), strict=True))
        if {*map(type, columns.values()), type(examination)} == {type(None)}:
            others = {"groups": groups, "eval_set": eval_set, "eval_qid": eval_qid, "eval_group": eval_group}
            others |= {"eval_metric": eval_metric, "patience": patience}
            return super().fit(X, y, qid, group, sample_weight=sample_weight, **others)
        if sample_weight is not None:
            raise DataError(OWN_WEIGHTS)
        with unchanged_if_refused(self):
            X, columns = named_columns(X, columns)
            rounds = self._rounds(X, y, qid, group, groups, reset=True)
            log = make_impressions(rounds, **columns)
            found = weigh_log(log, rounds, examination, clip)
            part = read_eval_set(eval_set, eval_qid, eval_group, eval_metric=eval_metric, patience=patience)
            self._learn(found.lists, found.weights, part, eval_metric, patience)
            self._remember(found)
        return self

    @property
    def examination_(self) -> Examination | None:
        """How likely each position was to be seen, as estimated or given; None where labels were learnt from."""
        check_is_fitted(self)
        kept = self._model.record.get("examination")
        return None if kept is None else Examination.from_dict(kept)

    def _remember(self, learnt: WeightedLog) -> None:
        self.click_weights_ = learnt.click_weights
        self._remember_examination(learnt.examination)

    def _remember_examination(self, examination: Any) -> None:
        if isinstance(examination, Examination):
            record = {**self._model.record, "examination": examination.to_dict()}
            self._model = replace(self._model, record=record)


class OnlineClickRanker(ClickRanker, OnlineRanker):
    """The same for a ranker that goes on learning, from a log that is streamed."""

    __metadata_request__partial_fit: ClassVar = {
        "qid": True, "examination": False, "clip": False, **dict.fromkeys(_COLUMNS, True),
    }  # fmt: skip

    def partial_fit(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        group: Any = None,
        *,
        position: Any = None,
        propensity: Any = None,
        exploration: Any = None,
        query: Any = None,
        item: Any = None,
        examination: Any = None,
        clip: float = 0.0,
        sample_weight: Any = None,
    ) -> Self:
        """Plays these lists once, in order, after all that came before; given positions, their clicks.

        A click is played as often as its weight says, whole numbers by turns; on pages that are shorter than the
        longest one of the call less often, so that every pair counts the same. The examination is the one that is
        given, or the ranker's own; a ranker that has none estimates it from these impressions. A randomised estimate
        goes on: with `exploration`, these impressions, also those without a click, are added to it before clicks are
        weighed.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per document.
        y : array
            The labels; or 1 for a click, 0 for none, or any gain of at least 0.
        qid : array, name of a column, or a scalar
            The query of each row; of clicks, the impression.
        group : array
            Sizes of consecutive lists instead.
        position : array, or name of a column
            Where each document stood, from 1 on: y holds clicks.
        propensity : array, or name of a column
            How likely the document was to be seen in its impression, where that is known.
        exploration : array, or name of a column
            How likely it was to be *shown* at its position, where rankings were drawn.
        query, item : array, or name of a column
            Which impressions share a query, and which rows are the same document.
        examination : Examination, array, or "randomised", "harvested", "em", "user-browsing"
            The curve from position 1 on, or how to estimate it.
        clip : float
            The smallest propensity that counts.
        sample_weight : array
            How much each row counts; not with clicks.
        """
        columns = {"position": position, "propensity": propensity, "exploration": exploration}
        columns |= {"query": query, "item": item}
        if {*map(type, columns.values()), type(examination)} == {type(None)}:
            return super().partial_fit(X, y, qid, group, sample_weight=sample_weight)
        if sample_weight is not None:
            raise DataError(OWN_WEIGHTS)
        blank = not hasattr(self, "learner_")
        with unchanged_if_refused(self):
            X, columns = named_columns(X, columns)
            rounds = self._rounds(X, y, qid, group, reset=blank)
            log = make_impressions(rounds, **columns)
            if examination is None and propensity is None and not blank:
                examination = self._own_examination(log)
            if not blank and not log.clicks.any():  # which weighs nothing, and tells of positions alone
                self._remember_examination(examination)
                return self
            found = weigh_log(log, rounds, examination, clip)
            times = repetitions(found.weights, 0)
            self._play(found.lists[np.repeat(np.arange(len(times)), times)], None, blank=blank)
            self._remember(found)
        return self

    def _own_examination(self, log: Impressions) -> Examination | None:
        own = self.examination_
        if own is None or own.sums is None or log.exploration is None:
            return own
        return update_examination(own, log)
