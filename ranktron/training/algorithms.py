"""The table of algorithms: names, parameters, defaults. It imports nothing heavy, so that `--help` is quick.

Estimators, command line and service all read it; the defaults are those of `ranktron.defaults`.
"""

from ranktron.data.option_names import IMPUTATIONS
from ranktron.defaults import HOW, PRESETS
from ranktron.errors import DataError
from ranktron.training.parameters import Algorithm, Parameter

STEPS = ("constant", "sqrt")

TRAINING = (
    Parameter("n_epochs", HOW[PRESETS[0]]["n_epochs"], "passes over the data", above=0),
    Parameter("shuffle", HOW[PRESETS[0]]["shuffle"], "whether each pass takes the queries in a new order"),
)

NAN = Parameter(
    "nan",
    "error",
    "what stands for a missing value (NaN), kept in the model: nothing, the feature's mean, 0, or the mean and a "
    "further feature that says so",
    choices=IMPUTATIONS,
)
MAP = Parameter(
    "map",
    None,
    "None, or a feature map fitted with the model: bins:N, bins-linear:N, rff:N, nystroem:N, products:N or leaves:N",
)

CATEGORICAL = Parameter(
    "categorical",
    "auto",
    "columns of a data frame of which each category becomes a feature: their names, None, or those whose type says so",
)


PRESET = Parameter(
    "preset",
    PRESETS[0],
    "where the values that are not given come from: recommended, or as the paper prints them, features unscaled",
    choices=PRESETS,
)
DEFAULT_ALGORITHM = "hinge"


def _setting(name: str, help: str, above: float | None = None, choices: tuple[str, ...] = ()) -> Parameter:
    """A parameter of a row below, which has the default that `ranktron.defaults` has for that row."""
    return Parameter(name, None, help, above, choices)


_ETA = _setting("eta", "step size", above=0.0)
_STEP = _setting("step", "constant, or eta divided by the square root of the round number", choices=STEPS)
_BALANCE = _setting("balance", "whether every query weighs the same, or every pair", choices=("query", "pair"))
_AVERAGE = _setting("average", "use the average of all weight vectors instead of the last one")
_PRICE = _setting(
    "exploration_price",
    "explore only as far as no list falls below the one by score by more than this share of its estimated reward",
    above=-1.0,
)
_MARGIN = _setting("margin", "correctly ordered pairs closer than this in score still incur loss", above=0.0)
_SLAM = "Chaudhuri and Tewari, Perceptron-like Algorithms for Online Learning to Rank"


_COMMITTEE = "Elsas, Carvalho and Carbonell, Fast Learning of Document Ranking Functions with the Committee Perceptron"
_PAIRS = (
    _setting("alpha_bound", "skip pairs misranked in more than this share of the passes; 1: skip none"),
    _setting("selective", "ignore hypotheses that ranked fewer pairs correctly than this", above=-1),
    _setting("pairs_per_query", "pairs of each query sampled in each pass; 0: all pairs", above=-1),
)
_MEMBERS = (
    _setting("size", "members of the committee", above=0),
    _setting("combine", "average the members' scores, or let them vote (Borda)", choices=("average", "borda")),
    _setting(
        "weights",
        "weight of a member: its metric on the validation set (its success counter without one), its counter, or 1",
        choices=("metric", "count", "uniform"),
    ),
    _setting("subcommittee", "combine only this many members, the best on the validation set; 0: all", above=-1),
)


ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm.with_defaults(PRESETS[0])
    for algorithm in [
        Algorithm(
            name="slam",
            estimator="SLAMPerceptron",
            builder="ranktron.learners.slam:slam_perceptron",
            summary="mistake-driven updates on a large-margin bound on the loss in NDCG, NDCG@k or AP (Algorithm 2)",
            paper=_SLAM,
            parameters=(
                _setting("metric", "ndcg, ndcg@k or ap: what is optimised, and what counts as a mistake"),
                _ETA,
                _MARGIN,
                _setting(
                    "fraction",
                    "share of the lower-graded documents to compare with; 0: the best-scored; try 0.7 on noisy data",
                ),
                _setting("binarise", "whether ap treats every label above 0 as relevant, or refuses graded labels"),
                _STEP,
                _AVERAGE,
            ),
        ),
        Algorithm(
            name="minimax",
            estimator="MinimaxPerceptron",
            builder="ranktron.learners.minimax:minimax_perceptron",
            summary="mistake-driven updates on the worst pair of a query (Algorithm 3); the same ranking for any eta",
            paper=_SLAM,
            parameters=(_ETA, _AVERAGE),
        ),
        Algorithm(
            name="listnet",
            estimator="OnlineListNet",
            builder="ranktron.learners.listnet:online_listnet",
            summary="online gradient descent on ListNet's cross-entropy",
            paper="Cao et al., Learning to Rank: From Pairwise Approach to Listwise Approach",
            parameters=(_ETA, _STEP, _AVERAGE),
        ),
        Algorithm(
            name="hinge",
            estimator="HingePerceptron",
            builder="ranktron.learners.hinge:hinge_perceptron",
            summary="mistake-driven updates on the mean margin violation over all pairs of a query",
            paper="",
            parameters=(
                _ETA,
                _MARGIN,
                _AVERAGE,
            ),
        ),
        Algorithm(
            name="topk",
            estimator="TopKRanker",
            builder="ranktron.learners.top_k.settings:top_k_ranker",
            summary="updates on a loss over the whole list, estimated from labels of the first k documents shown",
            paper="Chaudhuri and Tewari, Online Learning to Rank with Feedback at the Top",
            parameters=(
                _setting(
                    "surrogate",
                    "loss to learn; ranksvm needs k of at least 2",
                    choices=("ranksvm", "squared", "kl", "smooth-dcg"),
                ),
                _setting("k", "number of shown documents whose labels are received", above=0),
                _setting(
                    "setting",
                    "steps and exploration of the paper, or better ones; parameters left at 0 take the preset's value",
                    choices=PRESETS,
                ),
                _setting(
                    "explore", "share of rounds that explore, times t^(-1/3); -1: t^(-1/6) if recommended", above=-2.0
                ),
                _setting("eta", "step size: times t^(-2/3) in the paper, adaptive if recommended", above=-1.0),
                _setting("radius", "the weights stay within a ball of this radius", above=-1.0),
                _setting("shortlist", "explore only among this many top-scored documents", above=-1),
                _setting("epsilon", "smoothing of smooth-dcg", above=0.0),
                _setting(
                    "floor",
                    "lower bound on propensities: less variance, some bias; -1: 0.1 for ranksvm and squared if "
                    "recommended, else 0",
                    above=-2.0,
                ),
                _setting("answered", "share of the shown documents whose labels come back", above=0.0),
                _setting("highest", "highest possible label; 0: any", above=-1.0),
                _setting(
                    "strict",
                    "refuse queries of fewer than k or 2 documents, and explore of 1/2 or more, as setting=paper does",
                ),
                _setting("seed", "seed of the exploration", above=-1),
                _AVERAGE,
                _PRICE,
                _setting("residual", "squared, kl: weight how far scores are from labels instead of labels alone"),
            ),
        ),
        Algorithm(
            name="pdgd",
            estimator="PDGDRanker",
            builder="ranktron.learners.clicks.pdgd:pdgd_ranker",
            summary="shows rankings drawn from its scores and learns from clicks, without the bias of the positions",
            paper="Oosterhuis and de Rijke, Differentiable Unbiased Online Learning to Rank",
            parameters=(
                _ETA,
                _setting("decay", "the step of round t is eta times decay^t; 1: constant", above=0.0),
                _setting("k", "number of documents that the user sees", above=0),
                _setting("seed", "seed of the rankings that are drawn", above=-1),
                _AVERAGE,
                _PRICE,
            ),
        ),
        Algorithm(
            name="predtron",
            estimator="PredtronRanker",
            builder="ranktron.learners.predtron.ranker:predtron_ranker",
            summary="mistake-driven updates towards the right permutation, with losses, norms and margins of choice",
            paper="Jain, Natarajan and Tewari, Predtron",
            parameters=(
                _setting(
                    "representation",
                    "value of position i in the vector of a permutation: a larger exponent needs less margin further "
                    "down; discount is NDCG's 1/log2(1 + i), fastest on long lists",
                    choices=("-i", "-i^1.1", "-i^2", "1/i", "discount"),
                ),
                _setting("loss", "ndcg, ndcg@k or p@k: what is optimised, and what counts as a mistake"),
                _setting(
                    "variant",
                    "standard, or loss-driven: updates in proportion to the loss, and the same ranking for any eta",
                    choices=("standard", "loss-driven"),
                ),
                _setting(
                    "norm",
                    "norm of the margin; l1 suits many features of which few matter",
                    choices=("l2", "l1"),
                ),
                _ETA,
                _setting(
                    "step",
                    "constant (eta), or the step size of the paper's theorems",
                    choices=("constant", "theory"),
                ),
                _setting("radius", "largest operator norm of a query's features; for step=theory", above=0.0),
                _setting("documents", "largest number of documents of a query; for step=theory", above=-1.0),
                _setting("highest", "highest grade; for step=theory", above=-1.0),
                _AVERAGE,
            ),
        ),
        Algorithm(
            name="pairwise",
            estimator="PairwisePerceptron",
            builder="ranktron.learners.pairwise.learner:pairwise_perceptron",
            solution="ranktron.learners.pairwise.passes:fit_pairwise",
            summary="one small update for every misranked pair, in passes over the shuffled pairs of all queries",
            paper=_COMMITTEE,
            parameters=(
                _setting(
                    "output",
                    "last, pocket (the hypothesis that survived longest), average, or voted (all hypotheses vote)",
                    choices=("last", "pocket", "average", "voted"),
                ),
                *_PAIRS,
            ),
        ),
        Algorithm(
            name="committee",
            estimator="CommitteePerceptron",
            builder="ranktron.learners.pairwise.committee:committee_perceptron",
            solution="ranktron.learners.pairwise.passes:fit_committee",
            summary="the longest-surviving hypotheses of the pairwise perceptron, weighted on the validation set",
            paper=_COMMITTEE,
            parameters=(
                *_MEMBERS[:3],
                _setting("metric", "metric that weights the members on the validation set"),
                _MEMBERS[3],
                *_PAIRS,
            ),
        ),
        Algorithm(
            name="ranksvm",
            estimator="RankSVM",
            builder="ranktron.learners.batch.rank_svm:rank_svm",
            solution="ranktron.learners.batch.rank_svm:fit_rank_svm",
            summary="support vector machine on pairs of documents, solved in the primal",
            paper="Joachims, Optimizing Search Engines using Clickthrough Data",
            parameters=(
                _setting("C", "weight of the mean loss against the regulariser |w|^2 / 2", above=0.0),
                _setting("loss", "squared hinge, or plain hinge", choices=("squared", "hinge")),
                _BALANCE,
                _setting("tol", "norm of the gradient at which to stop, relative to the start", above=0.0),
                _setting("max_iter", "maximum number of trust-region iterations", above=0),
            ),
        ),
        Algorithm(
            name="smoothrank",
            estimator="SmoothRank",
            builder="ranktron.learners.batch.smooth_rank:smooth_rank",
            solution="ranktron.learners.batch.smooth_rank:fit_smooth_rank",
            summary="NDCG itself, made smooth and maximised near the weights of ListNet",
            paper="Chapelle and Wu, Gradient Descent Optimization of Smoothed Information Retrieval Metrics",
            parameters=(
                _setting("k", "NDCG@k is maximised", above=0),
                _setting("C", "weight of the mean NDCG against half of the squared distance from ListNet", above=0.0),
                _setting("max_iter", "maximum number of iterations for each of five smoothings", above=0),
            ),
        ),
        Algorithm(
            name="rankboost",
            estimator="RankBoost",
            builder="ranktron.learners.batch.rank_boost:rank_boost",
            solution="ranktron.learners.batch.rank_boost:fit_rank_boost",
            summary="a weighted sum of thresholded features, chosen greedily",
            paper="Freund et al., An Efficient Boosting Algorithm for Combining Preferences",
            parameters=(
                _setting(
                    "n_rounds",
                    "maximum number of thresholds; the validation set chooses how many are kept",
                    above=0,
                ),
                _BALANCE,
            ),
        ),
        Algorithm(
            name="rankmm",
            estimator="RankMM",
            builder="ranktron.learners.batch.rank_mm:rank_mm",
            solution="ranktron.learners.batch.rank_mm:fit_rank_mm",
            summary="maximum margins between grades, solved in the dual to a small duality gap",
            paper="Agarwal and Collins, Maximum Margin Ranking Algorithms for Information Retrieval",
            parameters=(
                _setting(
                    "loss",
                    "over a query: the average pair, the worst pair (max), or the worst document (max-average)",
                    choices=("average", "max", "max-average"),
                ),
                _setting("C", "weight of the mean loss against the regulariser |w|^2 / 2", above=0.0),
                _setting(
                    "step",
                    "exact (no step size, to the gap tol) or paper (as published: eta, and n_epochs passes)",
                    choices=("exact", "paper"),
                ),
                _setting("tol", "duality gap at which the exact step stops, relative to the objective", above=0.0),
                _setting("max_iter", "maximum number of passes of the exact step", above=0),
                _setting(
                    "max_seconds", "stop after the first pass that ends later than this; 0: no limit", above=-1e-9
                ),
                _setting("eta", "step size of the paper's steps", above=0.0),
                _setting("corners", "corners of its dual variables that each query remembers", above=0),
                _setting("early_stopping", "keep the best pass on the validation set instead of the exact solution"),
                _setting("memory", "gigabytes that the dual variables may take", above=0.0),
                _AVERAGE,
            ),
        ),
        Algorithm(
            name="kernel",
            estimator="KernelPerceptron",
            builder="ranktron.learners.kernelized.learner:kernel_perceptron",
            summary="updates of another learner in dual form: with a kernel, and a budget of remembered documents",
            paper=_SLAM,
            parameters=(
                _setting("kernel", "linear, poly, or rbf (Gaussian)", choices=("linear", "poly", "rbf")),
                _setting("budget", "maximum number of remembered documents; 0: no limit", above=-1),
                _setting("metric", "what slam and predtron optimise, and what counts as a mistake"),
                _setting(
                    "update",
                    "learner whose updates are made: slam, minimax, hinge, listnet, pairwise or predtron",
                    choices=("slam", "minimax", "hinge", "listnet", "pairwise", "predtron"),
                ),
                _setting(
                    "removal",
                    "when the budget is full: remove the oldest, a random or the smallest document, or project onto "
                    "the others; auto: smallest for output=last, projection otherwise",
                    choices=("auto", "oldest", "random", "smallest", "projection"),
                ),
                _ETA,
                _setting("gamma", "width of the kernel; 0: one over the number of features", above=-1.0),
                _setting("degree", "degree of poly", above=0),
                _setting("constant", "constant of poly", above=-1e-9),
                _MARGIN,
                _setting(
                    "fraction",
                    "share of the lower-graded documents that slam compares with; 0: the best-scored one",
                ),
                _setting("megabytes", "budget in megabytes, in addition to the one in documents; 0: none", above=-1.0),
                _AVERAGE,
                _setting(
                    "output",
                    "hypothesis to use: last or average; with update=pairwise also pocket, voted or committee",
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
    builder="ranktron.learners.fixed_scorer:Fixed",
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
