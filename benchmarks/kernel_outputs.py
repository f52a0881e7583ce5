"""The outputs of the pairwise perceptron in dual form, under each rule of a budget: a table of docs/nonlinear.md.

`python -m benchmarks.kernel_outputs` prints it.
"""

from ranktron import evaluate, play
from ranktron.data.synthetic import WebSearch
from ranktron.learners import (
    Average,
    Committee,
    Gaussian,
    KernelLearner,
    Last,
    Oldest,
    PairSteps,
    Projection,
    Random,
    Smallest,
    feedback,
)
from ranktron.learners.kernelized.budget import UNLIMITED
from ranktron.learners.pairwise.learner import OUTPUTS
from ranktron.learners.schedule import Schedule
from ranktron.training.model import served_scores

READOUTS = {
    "last": Last(),
    "average": Average(),
    "pocket": OUTPUTS["pocket"],
    "committee": Committee(30, "average", "count"),
    "committee, borda": Committee(30, "borda", "count"),
    "voted": OUTPUTS["voted"],
}


def served(rule, output, budget=400, epochs=3):
    """NDCG@10 on other lists after some passes over 200 lists of about 12 documents, and how many are kept."""
    source = WebSearch(features=5, documents=12)
    lists, test = source.rounds(200), source.rounds(300, skip=1000)
    most = UNLIMITED if rule is None else budget
    learner = KernelLearner(5, PairSteps(), Gaussian(0.2), most, rule or Smallest(), output)
    for epoch in range(epochs):
        for _ in play(learner, Schedule(epochs).epoch(lists, epoch, 0), feedback.full):
            pass
    return evaluate(served_scores(learner, test), test, "ndcg@10").means["ndcg@10"], len(learner.support)


if __name__ == "__main__":
    print(f"| rule | {' | '.join(READOUTS)} | documents kept |\n|---|{'---|' * len(READOUTS)}---|")
    for rule in (None, Projection(), Random(), Oldest(), Smallest(), Smallest(fade=0.0)):
        found = [served(rule, output) for output in READOUTS.values()]
        print(f"| `{rule}` | {' | '.join(f'{value:.3f}' for value, _ in found)} | {found[0][1]:,} |", flush=True)
