"""The rankers that are trained in passes over all pairs, or solved: one small class each."""

from ranktron.estimators.base import BaseRanker, OnlineRanker
from ranktron.estimators.clicks import ClickRanker
from ranktron.estimators.parameters import from_table
from ranktron.metrics import Metric


@from_table("pairwise")
class PairwisePerceptron(OnlineRanker):
    """The perceptron on pairs of documents: its last, longest-lived, average or voting hypotheses.

    `fit` mixes the pairs of all lists in every pass; `partial_fit` takes the pairs of one list, then the next.
    `output="voted"` depends on the list: `predict` needs `qid` and there are no weights `coef_`.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable().rounds(100)
    >>> qid = np.repeat(lists.qids, np.diff(lists.offsets))
    >>> ranker = PairwisePerceptron(random_state=0).fit(lists.X, lists.labels, qid=qid)
    >>> ranker.score(lists.X, lists.labels, qid=qid) > 0.98
    True
    """


@from_table("committee")
class CommitteePerceptron(OnlineRanker):
    """The hypotheses of a pairwise perceptron that survived longest, averaged or voting.

    Held-out lists (`eval_set`) choose the pass and weigh the members by `metric`; without them members weigh as many
    pairs as they ranked well in a row. `combine="borda"` depends on the list: `predict` needs `qid` and there are no
    weights `coef_`.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable().rounds(100)
    >>> qid = np.repeat(lists.qids, np.diff(lists.offsets))
    >>> ranker = CommitteePerceptron(size=10, random_state=0).fit(lists.X, lists.labels, qid=qid)
    >>> ranker.score(lists.X, lists.labels, qid=qid) > 0.99
    True
    """

    metric: str | Metric


@from_table("ranksvm")
class RankSVM(ClickRanker):
    """The support vector machine on pairs of documents, solved without forming a pair; on labels, or on clicks.

    `n_epochs`, `shuffle` and `random_state` have no effect: the solution is unique.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable().rounds(100)
    >>> qid = np.repeat(lists.qids, np.diff(lists.offsets))
    >>> RankSVM(C=100.0).fit(lists.X, lists.labels, qid=qid).score(lists.X, lists.labels, qid=qid) > 0.99
    True
    """


@from_table("smoothrank")
class SmoothRank(BaseRanker):
    """NDCG itself, made smooth and maximised, beginning with the weights of ListNet.

    `n_epochs`, `shuffle` and `random_state` are those of ListNet's passes. With few queries, NDCG on the training set
    is soon better than on others: a smaller `C` stays closer to ListNet.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable().rounds(100)
    >>> qid = np.repeat(lists.qids, np.diff(lists.offsets))
    >>> SmoothRank(C=100.0).fit(lists.X, lists.labels, qid=qid).score(lists.X, lists.labels, qid=qid) > 0.97
    True
    """


@from_table("rankboost")
class RankBoost(BaseRanker):
    """A weighted sum of thresholded features, each chosen to mend the pairs that the others get wrong.

    `n_epochs`, `shuffle` and `random_state` have no effect. Not linear: there are no weights `coef_`.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable(features=4).rounds(100)
    >>> qid = np.repeat(lists.qids, np.diff(lists.offsets))
    >>> RankBoost().fit(lists.X, lists.labels, qid=qid).score(lists.X, lists.labels, qid=qid) > 0.9
    True
    """
