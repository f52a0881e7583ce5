"""The table of algorithms: names, parameters, defaults. It imports nothing heavy, so that `--help` is quick.

Estimators, command line and service all read it: a default is written down once, here.
"""

from ranktron.errors import DataError
from ranktron.training.parameters import Algorithm, Parameter

STEPS = ("constant", "sqrt")

TRAINING = (
    Parameter("n_epochs", 10, "passes over the data", above=0),
    Parameter("shuffle", True, "whether every pass takes the lists in a new order (never the rows of a list)"),
)

MAP = Parameter(
    "map",
    None,
    "None, or bins:N, bins-linear:N, rff:N, nystroem:N, products:N: a feature map fitted with the model",
)

_AVERAGE = Parameter("average", False, "serve the mean of all weights instead of the last ones")

_MARGIN = Parameter("margin", 1.0, "lead in score under which a well-ordered pair still pays", above=0.0)
_SLAM = "Chaudhuri and Tewari, Perceptron-like Algorithms for Online Learning to Rank"


def _step(default: str) -> Parameter:
    return Parameter("step", default, "constant, or eta divided by the root of the round's number", choices=STEPS)


def _eta(default: float) -> Parameter:
    return Parameter("eta", default, "step size", above=0.0)


_COMMITTEE = "Elsas, Carvalho and Carbonell, Fast Learning of Document Ranking Functions with the Committee Perceptron"
_PAIRS = (
    Parameter("alpha_bound", 1.0, "pairs misranked in more than this share of the passes are left out; 1: none"),
    Parameter("selective", 0, "hypotheses that ranked fewer pairs well than this count for nothing", above=-1),
    Parameter("pairs_per_query", 0, "pairs of each list drawn at random for each pass; 0: all of them", above=-1),
)
_MEMBERS = (
    Parameter("size", 30, "members of the committee", above=0),
    Parameter("combine", "average", "their mean, or their vote on each list", choices=("average", "borda")),
    Parameter(
        "weights",
        "metric",
        "a member weighs its metric on held-out lists (its counter without any), its counter, or one",
        choices=("metric", "count", "uniform"),
    ),
    Parameter("subcommittee", 0, "combine only that many, the best on held-out lists; 0: all", above=-1),
)


def _balance(default: str) -> Parameter:
    return Parameter("balance", default, "whether every list weighs the same, or every pair", choices=("query", "pair"))


ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in [
        Algorithm(
            name="slam",
            estimator="SLAMPerceptron",
            builder="ranktron.learners.slam:slam_perceptron",
            summary="mistake-driven steps on a large-margin bound of what NDCG, NDCG@k or AP lose (Algorithm 2)",
            paper=_SLAM,
            parameters=(
                Parameter("metric", "ndcg@10", "ndcg, ndcg@k or ap: what is learnt, and what counts as a mistake"),
                _eta(0.1),
                _MARGIN,
                Parameter(
                    "fraction",
                    0.0,
                    "share of the lower documents compared with; 0: their maximum; noisy data: 0.7",
                ),
                Parameter("binarise", True, "whether ap takes every label above 0 for relevant, or refuses grades"),
                _step("constant"),
                _AVERAGE,
            ),
        ),
        Algorithm(
            name="minimax",
            estimator="MinimaxPerceptron",
            builder="ranktron.learners.minimax:minimax_perceptron",
            summary="mistake-driven steps on the worst pair of a list (Algorithm 3); the same ranking for every eta",
            paper=_SLAM,
            parameters=(_eta(1.0), _AVERAGE),
        ),
        Algorithm(
            name="listnet",
            estimator="OnlineListNet",
            builder="ranktron.learners.listnet:online_listnet",
            summary="online gradient descent on ListNet's cross-entropy",
            paper="Cao et al., Learning to Rank: From Pairwise Approach to Listwise Approach",
            parameters=(_eta(0.1), _step("sqrt"), _AVERAGE),
        ),
        Algorithm(
            name="hinge",
            estimator="HingePerceptron",
            builder="ranktron.learners.hinge:hinge_perceptron",
            summary="mistake-driven steps along the mean margin violation of all pairs of a list",
            paper="",
            parameters=(
                _eta(1.0),
                _MARGIN,
                _AVERAGE,
            ),
        ),
        Algorithm(
            name="topk",
            estimator="TopKRanker",
            builder="ranktron.learners.top_k.settings:top_k_ranker",
            summary="steps on what the labels of the first k shown documents say of a loss of the whole list",
            paper="Chaudhuri and Tewari, Online Learning to Rank with Feedback at the Top",
            parameters=(
                Parameter(
                    "surrogate",
                    "ranksvm",
                    "the loss to learn; ranksvm needs k of at least 2",
                    choices=("ranksvm", "squared", "kl", "smooth-dcg"),
                ),
                Parameter("k", 2, "how many of the shown documents a label is heard of", above=0),
                Parameter(
                    "setting",
                    "recommended",
                    "the paper's own steps and exploration, or those that do better; what is 0 below is the setting's",
                    choices=("recommended", "paper"),
                ),
                Parameter("explore", 0.0, "share of exploring rounds, times t^(-1/3)", above=-1.0),
                Parameter("eta", 0.0, "step size: times t^(-2/3) in the paper, adaptive if recommended", above=-1.0),
                Parameter("radius", 0.0, "the weights stay in a ball of this radius", above=-1.0),
                Parameter("shortlist", 0, "explore among that many best-scored documents", above=-1),
                Parameter("epsilon", 0.01, "how much smooth-dcg is smoothed", above=0.0),
                Parameter("floor", 0.0, "propensities count as at least this: less variance, some bias", above=-1.0),
                Parameter("answered", 1.0, "share of the shown documents whose label comes back", above=0.0),
                Parameter("highest", 0.0, "the highest label there can be; 0: any", above=-1.0),
                Parameter(
                    "strict",
                    False,
                    "refuse lists of fewer than k or 2 documents, and explore of 1/2 or more, as setting=paper does",
                ),
                Parameter("seed", 0, "of the exploration", above=-1),
                Parameter("average", True, "serve the mean of all weights instead of the last ones"),
            ),
        ),
        Algorithm(
            name="predtron",
            estimator="PredtronRanker",
            builder="ranktron.learners.predtron.ranker:predtron_ranker",
            summary="mistake-driven steps towards the right permutation, whatever the loss, its norm and its margin",
            paper="Jain, Natarajan and Tewari, Predtron",
            parameters=(
                Parameter(
                    "representation",
                    "-i^1.1",
                    "what a place i is worth in the vector of a permutation: a larger exponent asks for less room "
                    "further down; discount is NDCG's own 1/log2(1 + i), quickest on long lists",
                    choices=("-i", "-i^1.1", "-i^2", "1/i", "discount"),
                ),
                Parameter("loss", "ndcg", "ndcg, ndcg@k or p@k: what is learnt, and what counts as a mistake"),
                Parameter(
                    "variant",
                    "standard",
                    "standard, or loss-driven: steps as long as the loss is large, and the same ranking for every eta",
                    choices=("standard", "loss-driven"),
                ),
                Parameter(
                    "norm",
                    "l2",
                    "the norm of the margin; l1 suits many features of which few matter",
                    choices=("l2", "l1"),
                ),
                _eta(0.1),
                Parameter(
                    "step",
                    "constant",
                    "constant (eta), or the step of the paper's theorems",
                    choices=("constant", "theory"),
                ),
                Parameter(
                    "radius", 1.0, "how large the lists are at most (their operator norm); for theory", above=0.0
                ),
                Parameter("documents", 0, "how long the lists are at most; for theory", above=-1.0),
                Parameter("highest", 0, "the highest grade; for theory", above=-1.0),
                _AVERAGE,
            ),
        ),
        Algorithm(
            name="pairwise",
            estimator="PairwisePerceptron",
            builder="ranktron.learners.pairwise.learner:pairwise_perceptron",
            solution="ranktron.learners.pairwise.passes:solve_pairwise",
            summary="one small step for every misranked pair, in passes over the mixed pairs of all lists",
            paper=_COMMITTEE,
            parameters=(
                Parameter(
                    "output",
                    "average",
                    "last, pocket (the hypothesis that survived longest), average or voted (all of them)",
                    choices=("last", "pocket", "average", "voted"),
                ),
                *_PAIRS,
            ),
        ),
        Algorithm(
            name="committee",
            estimator="CommitteePerceptron",
            builder="ranktron.learners.pairwise.committee:committee_perceptron",
            solution="ranktron.learners.pairwise.passes:solve_committee",
            summary="the hypotheses of the pairwise perceptron that survived longest, weighed on held-out lists",
            paper=_COMMITTEE,
            parameters=(
                *_MEMBERS[:3],
                Parameter("metric", "ndcg@10", "what weighs the members on held-out lists"),
                _MEMBERS[3],
                *_PAIRS,
            ),
        ),
        Algorithm(
            name="ranksvm",
            estimator="RankSVM",
            builder="ranktron.learners.batch.rank_svm:rank_svm",
            solution="ranktron.learners.batch.rank_svm:solve",
            summary="the support vector machine on pairs, solved in the primal to a gradient of zero",
            paper="Joachims, Optimizing Search Engines using Clickthrough Data",
            parameters=(
                Parameter("C", 1.0, "weight of the mean loss against half the squared length of w", above=0.0),
                Parameter("loss", "squared", "squared hinge, or plain hinge", choices=("squared", "hinge")),
                _balance("query"),
                Parameter("tol", 1e-6, "length of the gradient at the solution, relative to the start", above=0.0),
                Parameter("max_iter", 1000, "most iterations of the trust region", above=0),
            ),
        ),
        Algorithm(
            name="rankboost",
            estimator="RankBoost",
            builder="ranktron.learners.batch.rank_boost:rank_boost",
            solution="ranktron.learners.batch.rank_boost:solve",
            summary="a weighted sum of thresholded features, chosen one by one",
            paper="Freund et al., An Efficient Boosting Algorithm for Combining Preferences",
            parameters=(
                Parameter("n_rounds", 300, "most thresholds to choose; held-out lists choose how many", above=0),
                _balance("pair"),
            ),
        ),
        Algorithm(
            name="rankmm",
            estimator="RankMM",
            builder="ranktron.learners.batch.rank_mm:rank_mm",
            solution="ranktron.learners.batch.rank_mm:solve",
            summary="maximum margins between grades, solved in the dual until the duality gap is small",
            paper="Agarwal and Collins, Maximum Margin Ranking Algorithms for Information Retrieval",
            parameters=(
                Parameter(
                    "loss",
                    "average",
                    "a list's average pair, its worst pair (max), or its worst document (max-average)",
                    choices=("average", "max", "max-average"),
                ),
                Parameter("C", 1.0, "weight of the mean loss against half the squared length of w", above=0.0),
                Parameter(
                    "step",
                    "exact",
                    "exact (no step size, to the gap tol) or paper (as published: eta, and n_epochs passes)",
                    choices=("exact", "paper"),
                ),
                Parameter("tol", 1e-4, "gap at which the exact step is done, relative to the objective", above=0.0),
                Parameter("max_iter", 1000, "most passes of the exact step", above=0),
                Parameter("max_seconds", 0.0, "stop after the pass that ends later than this; 0: never", above=-1e-9),
                Parameter("eta", 0.01, "step size of the paper's steps", above=0.0),
                Parameter("corners", 20, "how many corners of its dual variables a list remembers", above=0),
                Parameter("early_stopping", False, "keep the best pass on held-out lists, not the exact solution"),
                Parameter("memory", 4.0, "gigabytes that dual variables may take", above=0.0),
                _AVERAGE,
            ),
        ),
        Algorithm(
            name="kernel",
            estimator="KernelPerceptron",
            builder="ranktron.learners.kernelized.learner:kernel_perceptron",
            summary="the steps of another learner in dual form: a kernel bends the space, a budget bounds what is kept",
            paper=_SLAM,
            parameters=(
                Parameter("kernel", "rbf", "linear, poly, or rbf (Gaussian)", choices=("linear", "poly", "rbf")),
                Parameter("budget", 2000, "documents remembered at most; 0: all", above=-1),
                Parameter("metric", "ndcg@10", "what slam and predtron learn, and what counts as a mistake"),
                Parameter(
                    "update",
                    "slam",
                    "whose steps: slam, minimax, hinge, listnet, pairwise or predtron",
                    choices=("slam", "minimax", "hinge", "listnet", "pairwise", "predtron"),
                ),
                Parameter(
                    "removal",
                    "auto",
                    "who goes when the budget is full: the oldest, random or smallest; or projection onto those there; "
                    "auto: smallest for output=last, projection for the others",
                    choices=("auto", "oldest", "random", "smallest", "projection"),
                ),
                _eta(0.1),
                Parameter("gamma", 0.0, "width of the kernel; 0: one over the number of features", above=-1.0),
                Parameter("degree", 2, "of poly", above=0),
                Parameter("constant", 1.0, "of poly", above=-1e-9),
                _MARGIN,
                Parameter("fraction", 0.0, "share of the lower documents that slam compares with; 0: their maximum"),
                Parameter("megabytes", 0.0, "budget in megabytes, beside that in documents; 0: none", above=-1.0),
                _AVERAGE,
                Parameter(
                    "output",
                    "last",
                    "what to serve: last or average; of pairwise also pocket, voted or committee",
                    choices=("last", "pocket", "average", "voted", "committee"),
                ),
                *_MEMBERS,
                *_PAIRS[1:],
            ),
        ),
    ]
}


FIXED = Algorithm(
    name="linear",
    estimator="",
    builder="ranktron.learners.fixed:Fixed",
    summary="fixed weights: they score, and do not learn",
    paper="",
    parameters=(),
)


def algorithm(name: str) -> Algorithm:
    """Looks an algorithm up by its command-line name.

    >>> algorithm("hinge").estimator
    'HingePerceptron'
    """
    if name not in ALGORITHMS:
        raise DataError(f"there is no algorithm {name!r}; choose from {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def stored_algorithm(kind: str) -> Algorithm:
    """Looks up what a model file calls its kind: an algorithm, or fixed weights."""
    return FIXED if kind == FIXED.name else algorithm(kind)
