"""The calls of `pt.ltr.apply_learned_model`, made as PyTerrier 1.1 makes them; it needs Java for nearly all else.

With `form="ltr"` it sorts both parts by query, and passes group sizes and lists of validation parts. With
`form="regression"`, its default, it passes features and labels alone: rankers cannot learn from that.
"""

import numpy as np
import pandas
import pytest
from sklearn.base import clone

import ranktron

RANKERS = [
    ranktron.HingePerceptron(random_state=0),
    ranktron.RankSVM(),
    ranktron.CommitteePerceptron(random_state=0),
    ranktron.TopKRanker(random_state=0),
    ranktron.RankBoost(n_rounds=30),
]


def results(queries, seed):
    """What a pipeline hands over: a row per query and document, with an array of features."""
    rng = np.random.default_rng(seed)
    rows = [(q, f"{q}-{i}", rng.normal(size=4)) for q in queries for i in range(8)]
    frame = pandas.DataFrame(rows, columns=["qid", "docno", "features"])
    return frame.sample(frac=1.0, random_state=seed)


def judged(frame):
    labels = [int(np.clip(f[1] - f[2] + 1.0, 0.0, 2.0)) for f in frame["features"]]
    judgments = frame[["qid", "docno"]].assign(label=labels)
    return judgments[judgments["label"] > 0]  # what nobody judged is not in the file


def table(frame, judgments):
    merged = frame.merge(judgments, on=["qid", "docno"], how="left").fillna({"label": 0}).sort_values("qid")
    sizes = merged.groupby("qid", sort=False)["docno"].count().to_numpy()
    return np.stack(merged["features"].values), merged["label"].values, sizes


def learnt(learner, train, valid):
    """`form="ltr"`."""
    X, y, sizes = table(train, judged(train))
    valid_X, valid_y, valid_sizes = table(valid, judged(valid))
    learner.fit(X, y, group=sizes, eval_set=[(valid_X, valid_y)], eval_group=[valid_sizes])


@pytest.mark.parametrize("learner", RANKERS, ids=lambda learner: type(learner).__name__)
def test_form_ltr_works_unchanged(learner):
    train, valid = results(["q1", "q10", "q2", "q3"], 0), results(["v1", "v2"], 1)
    learnt(learner, train, valid)
    test = results(["t1", "t2", "t3"], 2)
    scores = learner.predict(np.stack(test["features"].values))
    assert scores.shape == (24,)
    assert not hasattr(learner, "feature_importances_")  # it would be compared with the number of features

    X, y, sizes = table(train, judged(train))
    valid_X, valid_y, valid_sizes = table(valid, judged(valid))
    same = clone(learner).fit(X, y, qid=np.repeat([7, 3, 9, 1], sizes), eval_set=(valid_X, valid_y),
                              eval_qid=np.repeat(["a", "b"], valid_sizes))  # fmt: skip
    np.testing.assert_array_equal(same.predict(np.stack(test["features"].values)), scores)
    assert learner.with_queries_
