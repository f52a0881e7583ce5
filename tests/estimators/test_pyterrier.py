"""The calls of `pt.ltr.apply_learned_model`, made as PyTerrier 1.1 makes them; it needs Java for nearly all else.

With `form="ltr"` it sorts both parts by query, and passes group sizes and lists of validation parts. With
`form="regression"`, its default, it passes features and labels alone: rankers cannot learn from that.
"""

import numpy as np
import pandas
import pytest

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
    learnt(learner, results(["q1", "q10", "q2", "q3"], 0), results(["v1", "v2"], 1))
    test = results(["t1", "t2", "t3"], 2)
    test = test.assign(score=learner.predict(np.stack(test["features"].values)))
    test = test.merge(judged(test), on=["qid", "docno"], how="left").fillna({"label": 0})
    lists = ranktron.Rounds.from_arrays(np.zeros((len(test), 1)), test["label"], test["qid"].to_numpy())
    scores = test["score"].to_numpy()
    found = ranktron.evaluate(scores if lists.rows is None else scores[lists.rows], lists, [ranktron.metric("ndcg@10")])
    assert found.means["ndcg@10"] > 0.85
    assert not hasattr(learner, "feature_importances_")  # it would be compared with the number of features
