"""The rankers that learn online: one small class each, its parameters in `algorithms.py`."""

from ranktron.estimators.base import OnlineRanker, from_table


@from_table("hinge")
class HingePerceptron(OnlineRanker):
    """A linear ranker that steps along the margin violations of a list whenever it misorders one.

    Examples
    --------
    >>> from ranktron.simulate import Separable
    >>> lists = Separable().rounds(200)
    >>> qid = np.repeat(lists.qids, np.diff(lists.offsets))
    >>> ranker = HingePerceptron(random_state=0).fit(lists.X, lists.labels, qid=qid)
    >>> ranker.score(lists.X, lists.labels, qid=qid) > 0.99
    True
    """
