"""RankMM: maximum margins between the grades of a list."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ranktron.estimators.clicks import ClickRanker
from ranktron.estimators.parameters import from_table
from ranktron.types import Floats


@from_table("rankmm")
class RankMM(ClickRanker):
    """The linear ranker of maximum margin: a pair should be as far apart in score as in label.

    `loss="average"` is RankMM-1, `"max"` RankMM-2 and `"max-average"` RankMM-3. The default `step="exact"` asks for
    nothing but `C`: it takes as many passes as the gap wants, and `n_epochs` counts for the paper's steps only.
    Held-out lists (`eval_set`) choose the pass of the paper's steps, and with `early_stopping` of the exact one.

    Examples
    --------
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable().rounds(100)
    >>> qid = np.repeat(lists.qids, np.diff(lists.offsets))
    >>> ranker = RankMM(C=100.0).fit(lists.X, lists.labels, qid=qid)
    >>> ranker.score(lists.X, lists.labels, qid=qid) > 0.99, bool(ranker.gap_ <= 1e-4 * ranker.gaps_[:, 0].min())
    (True, True)
    """

    @property
    def gaps_(self) -> Floats:
        """For each pass the primal value, the dual value, and the gap between the best of both so far."""
        check_is_fitted(self)
        return np.asarray(self._model.state["history"])

    @property
    def gap_(self) -> float:
        """How far the objective of the best pass is from the minimum, at most."""
        return float(self.gaps_[-1, 2])
