"""The rankers that learn online: one small class each, its parameters in `algorithms.py`."""

import warnings

from ranktron.estimators.base import OnlineRanker
from ranktron.estimators.clicks import OnlineClickRanker
from ranktron.estimators.parameters import from_table
from ranktron.metrics import Metric
from ranktron.training.parameters import Parameter

_FEEDBACK = Parameter(
    "feedback",
    None,
    "who answers while fitting: None (the simulation from labels described above), the name of a simulated user "
    "(perfect, navigational, informational, position-based, dependent-click, dynamic-bayesian) who clicks by as many "
    "grades as the labels have and with random_state as seed, or a function (round, ranking) -> Feedback",
)


@from_table("hinge")
class HingePerceptron(OnlineClickRanker):
    """A linear ranker that steps along the margin violations of a list whenever it misorders one.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable().rounds(200)
    >>> qid = np.repeat(lists.qids, np.diff(lists.offsets))
    >>> ranker = HingePerceptron(random_state=0).fit(lists.X, lists.labels, qid=qid)
    >>> ranker.score(lists.X, lists.labels, qid=qid) > 0.99
    True
    """


@from_table("slam")
class SLAMPerceptron(OnlineRanker):
    """The perceptron for NDCG, NDCG@k or AP: one step on a large-margin bound of the measure, on its mistakes only.

    Its defaults are for noisy data; `preset="paper"` compares with the maximum instead of a `fraction`, as printed.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable().rounds(200)
    >>> qid = np.repeat(lists.qids, np.diff(lists.offsets))
    >>> ranker = SLAMPerceptron(random_state=0).fit(lists.X, lists.labels, qid=qid)
    >>> ranker.score(lists.X, lists.labels, qid=qid) > 0.99
    True
    """

    metric: str | Metric


@from_table("minimax")
class MinimaxPerceptron(OnlineRanker):
    """The perceptron of the worst pair: on separable data no deterministic learner has a better guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable().rounds(200)
    >>> qid = np.repeat(lists.qids, np.diff(lists.offsets))
    >>> ranker = MinimaxPerceptron(random_state=0).fit(lists.X, lists.labels, qid=qid)
    >>> ranker.score(lists.X, lists.labels, qid=qid) > 0.99
    True
    """


@from_table("listnet")
class OnlineListNet(OnlineRanker):
    """Online gradient descent on ListNet's cross-entropy: a strong linear baseline on noisy data.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable().rounds(200)
    >>> qid = np.repeat(lists.qids, np.diff(lists.offsets))
    >>> ranker = OnlineListNet(random_state=0).fit(lists.X, lists.labels, qid=qid)
    >>> ranker.score(lists.X, lists.labels, qid=qid) > 0.95
    True
    """


@from_table("topk", _FEEDBACK)
class TopKRanker(OnlineRanker):
    """Learns from the labels of the first k documents that it shows, and never receives those of the others (RTop-kF).

    `fit` and `partial_fit` simulate: they are given all labels, and only those of the first k shown documents reach
    the learner. Real feedback goes through `learner_.rank(X, number)` and `learner_.learn(X, ranking, feedback)`.

    With one label of each list (`k=1`, surrogates `squared` and `kl`) features that are scaled within each list
    (`scale="minmax-query"`) are learnt from faster where few of them decide.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable().rounds(200)
    >>> qid = np.repeat(lists.qids, np.diff(lists.offsets))
    >>> ranker = TopKRanker(random_state=0).fit(lists.X, lists.labels, qid=qid)
    >>> ranker.score(lists.X, lists.labels, qid=qid) > 0.95
    True
    """

    @property
    def setting(self) -> str:
        """The old name of `preset`, until 0.3."""
        warnings.warn("setting of TopKRanker is now preset", DeprecationWarning, stacklevel=2)
        word: str = self.preset
        return word


@from_table("pdgd", _FEEDBACK)
class PDGDRanker(OnlineRanker):
    """Learns from clicks on rankings that it draws, and undoes the bias of what stands higher being seen more (PDGD).

    `fit` and `partial_fit` simulate: the user sees the first k documents of a ranking drawn by the scores and, unless
    `feedback` says otherwise, clicks each that has a label above 0. Real clicks go through `learner_.rank(X, number)`
    and `learner_.learn(X, ranking, feedback)`. `predict` and `rank` of the estimator draw nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable().rounds(200)
    >>> qid = np.repeat(lists.qids, np.diff(lists.offsets))
    >>> ranker = PDGDRanker(eta=1.0, feedback="informational", random_state=0).fit(lists.X, lists.labels, qid=qid)
    >>> ranker.score(lists.X, lists.labels, qid=qid) > 0.9
    True
    """


@from_table("kernel")
class KernelPerceptron(OnlineRanker):
    """A mistake-driven learner in dual form: it remembers documents, and a kernel bends what it learns from them.

    Not linear: there are no weights `coef_`. With `update="pairwise"` it also
    serves that family's pocket, voted and committee outputs; votes need `qid` in `predict`.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable().rounds(100)
    >>> qid = np.repeat(lists.qids, np.diff(lists.offsets))
    >>> ranker = KernelPerceptron(kernel="rbf", n_epochs=3, random_state=0).fit(lists.X, lists.labels, qid=qid)
    >>> ranker.score(lists.X, lists.labels, qid=qid) > 0.95
    True
    """

    metric: str | Metric
