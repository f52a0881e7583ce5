# Written by `pytest tests/test_stubs.py --write-docs` from the code: do not edit.
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ranktron.data.maps import FeatureMap
from ranktron.estimators.base import BaseRanker
from ranktron.estimators.base import OnlineRanker
from ranktron.estimators.clicks import ClickRanker
from ranktron.estimators.clicks import OnlineClickRanker
from ranktron.estimators.predtron_classes import PredtronClassifier as _PredtronClassifier
from ranktron.estimators.predtron_classes import PredtronOrdinal as _PredtronOrdinal
from ranktron.estimators.predtron_labels import PredtronLabelRanker as _PredtronLabelRanker
from ranktron.estimators.predtron_labels import PredtronMultilabel as _PredtronMultilabel
from ranktron.metrics import Metric
from ranktron.training.model import Model
from ranktron.types import FeedbackModel, Floats

class CommitteePerceptron(OnlineRanker):
    def __init__(
        self,
        *,
        size: int = 30,
        combine: Literal["average", "borda"] = "average",
        weights: Literal["metric", "count", "uniform"] = "metric",
        metric: str | Metric = "ndcg@10",
        subcommittee: int = 0,
        alpha_bound: float = 1.0,
        selective: int = 0,
        pairs_per_query: int = 0,
        n_epochs: int = 10,
        shuffle: bool = True,
        scale: Literal["auto", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard"] | None = "auto",
        map: str | FeatureMap | None = None,
        nan: Literal["error", "mean", "zero", "indicator"] = "error",
        categorical: str | Sequence[str] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        ungrouped: Literal["error", "one-list"] = "error",
        features: Sequence[str] | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

class HingePerceptron(OnlineClickRanker):
    def __init__(
        self,
        *,
        eta: float = 0.1,
        margin: float = 1.0,
        average: bool = True,
        n_epochs: int = 10,
        shuffle: bool = True,
        scale: Literal["auto", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard"] | None = "auto",
        map: str | FeatureMap | None = None,
        nan: Literal["error", "mean", "zero", "indicator"] = "error",
        categorical: str | Sequence[str] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        ungrouped: Literal["error", "one-list"] = "error",
        features: Sequence[str] | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

class KernelPerceptron(OnlineRanker):
    def __init__(
        self,
        *,
        kernel: Literal["linear", "poly", "rbf"] = "rbf",
        budget: int = 2000,
        metric: str | Metric = "ndcg@10",
        update: Literal["slam", "minimax", "hinge", "listnet", "pairwise", "predtron"] = "slam",
        removal: Literal["auto", "oldest", "random", "smallest", "projection"] = "auto",
        eta: float = 0.1,
        gamma: float = 0.0,
        degree: int = 2,
        constant: float = 1.0,
        margin: float = 1.0,
        fraction: float = 0.0,
        megabytes: float = 0.0,
        average: bool = False,
        selective: int = 0,
        pairs_per_query: int = 0,
        n_epochs: int = 10,
        shuffle: bool = True,
        scale: Literal["auto", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard"] | None = "auto",
        map: str | FeatureMap | None = None,
        nan: Literal["error", "mean", "zero", "indicator"] = "error",
        categorical: str | Sequence[str] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        ungrouped: Literal["error", "one-list"] = "error",
        features: Sequence[str] | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

class LambdaMART(BaseRanker):
    def __init__(
        self,
        *,
        n_rounds: int = 100,
        num_leaves: int = 31,
        learning_rate: float = 0.1,
        min_data_in_leaf: int = 20,
        n_epochs: int = 10,
        shuffle: bool = True,
        scale: Literal["auto", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard"] | None = None,
        map: str | FeatureMap | None = None,
        nan: Literal["error", "mean", "zero", "indicator"] = "error",
        categorical: str | Sequence[str] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        ungrouped: Literal["error", "one-list"] = "error",
        features: Sequence[str] | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

class MinimaxPerceptron(OnlineRanker):
    def __init__(
        self,
        *,
        eta: float = 1.0,
        average: bool = True,
        n_epochs: int = 30,
        shuffle: bool = True,
        scale: Literal["auto", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard"] | None = "auto",
        map: str | FeatureMap | None = None,
        nan: Literal["error", "mean", "zero", "indicator"] = "error",
        categorical: str | Sequence[str] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        ungrouped: Literal["error", "one-list"] = "error",
        features: Sequence[str] | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

class OnlineListNet(OnlineRanker):
    def __init__(
        self,
        *,
        eta: float = 0.03,
        step: Literal["constant", "sqrt"] = "sqrt",
        average: bool = True,
        n_epochs: int = 10,
        shuffle: bool = True,
        scale: Literal["auto", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard"] | None = "auto",
        map: str | FeatureMap | None = None,
        nan: Literal["error", "mean", "zero", "indicator"] = "error",
        categorical: str | Sequence[str] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        ungrouped: Literal["error", "one-list"] = "error",
        features: Sequence[str] | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

class PDGDRanker(OnlineRanker):
    def __init__(
        self,
        *,
        eta: float = 0.1,
        decay: float = 0.9999977,
        k: int = 10,
        seed: int = 0,
        average: bool = False,
        exploration_price: float = 1.0,
        feedback: FeedbackModel | str | None = None,
        n_epochs: int = 10,
        shuffle: bool = True,
        scale: Literal["auto", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard"] | None = "auto",
        map: str | FeatureMap | None = None,
        nan: Literal["error", "mean", "zero", "indicator"] = "error",
        categorical: str | Sequence[str] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        ungrouped: Literal["error", "one-list"] = "error",
        features: Sequence[str] | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

class PairwisePerceptron(OnlineRanker):
    def __init__(
        self,
        *,
        output: Literal["last", "pocket", "average", "voted"] = "average",
        alpha_bound: float = 1.0,
        selective: int = 0,
        pairs_per_query: int = 0,
        n_epochs: int = 10,
        shuffle: bool = True,
        scale: Literal["auto", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard"] | None = "auto",
        map: str | FeatureMap | None = None,
        nan: Literal["error", "mean", "zero", "indicator"] = "error",
        categorical: str | Sequence[str] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        ungrouped: Literal["error", "one-list"] = "error",
        features: Sequence[str] | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

class PredtronClassifier(_PredtronClassifier):
    def __init__(
        self,
        *,
        loss: Any = "zero-one",
        reject: Any = None,
        reject_label: Any = None,
        variant: Literal["standard", "loss-driven"] = "standard",
        norm: Literal["l2", "l1", "group", "trace"] = "l2",
        eta: float | str = 0.1,
        radius: float | None = None,
        average: bool = True,
        scale: Literal["auto", "standard"] | None = "auto",
        fit_intercept: bool = True,
        n_epochs: int = 10,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

class PredtronLabelRanker(_PredtronLabelRanker):
    def __init__(
        self,
        *,
        representation: Literal["-i", "-i^1.1", "-i^2", "1/i", "discount"] = "-i^1.1",
        loss: str = "ndcg",
        variant: Literal["standard", "loss-driven"] = "standard",
        norm: Literal["l2", "l1", "group", "trace"] = "l2",
        eta: float | str = 0.1,
        radius: float | None = None,
        average: bool = True,
        scale: Literal["auto", "standard"] | None = "auto",
        fit_intercept: bool = True,
        n_epochs: int = 10,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

class PredtronMultilabel(_PredtronMultilabel):
    def __init__(
        self,
        *,
        loss: Literal["subset", "hamming", "error-set"] = "hamming",
        class_cost: float = 0.1,
        variant: Literal["standard", "loss-driven"] = "standard",
        norm: Literal["l2", "l1", "group", "trace"] = "l2",
        eta: float | str = 0.1,
        radius: float | None = None,
        average: bool = True,
        scale: Literal["auto", "standard"] | None = "auto",
        fit_intercept: bool = True,
        n_epochs: int = 10,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

class PredtronOrdinal(_PredtronOrdinal):
    def __init__(
        self,
        *,
        variant: Literal["standard", "loss-driven"] = "standard",
        norm: Literal["l2", "l1", "group", "trace"] = "l2",
        eta: float | str = 0.1,
        radius: float | None = None,
        average: bool = True,
        scale: Literal["auto", "standard"] | None = "auto",
        fit_intercept: bool = True,
        n_epochs: int = 10,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

class PredtronRanker(OnlineRanker):
    def __init__(
        self,
        *,
        representation: Literal["-i", "-i^1.1", "-i^2", "1/i", "discount"] = "-i^1.1",
        loss: str = "ndcg",
        variant: Literal["standard", "loss-driven"] = "standard",
        norm: Literal["l2", "l1"] = "l2",
        eta: float = 0.1,
        step: Literal["constant", "theory"] = "constant",
        radius: float = 1.0,
        documents: int = 0,
        highest: int = 0,
        average: bool = True,
        n_epochs: int = 10,
        shuffle: bool = True,
        scale: Literal["auto", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard"] | None = "auto",
        map: str | FeatureMap | None = None,
        nan: Literal["error", "mean", "zero", "indicator"] = "error",
        categorical: str | Sequence[str] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        ungrouped: Literal["error", "one-list"] = "error",
        features: Sequence[str] | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

class RankBoost(BaseRanker):
    def __init__(
        self,
        *,
        n_rounds: int = 300,
        balance: Literal["query", "pair"] = "pair",
        n_epochs: int = 10,
        shuffle: bool = True,
        scale: Literal["auto", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard"] | None = None,
        map: str | FeatureMap | None = None,
        nan: Literal["error", "mean", "zero", "indicator"] = "error",
        categorical: str | Sequence[str] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        ungrouped: Literal["error", "one-list"] = "error",
        features: Sequence[str] | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

class RankMM(ClickRanker):
    def __init__(
        self,
        *,
        loss: Literal["average", "max", "max-average"] = "average",
        C: float = 1.0,
        step: Literal["exact", "paper"] = "exact",
        tol: float = 0.0001,
        max_iter: int = 1000,
        max_seconds: float = 0.0,
        eta: float = 0.01,
        corners: int = 20,
        early_stopping: bool = False,
        memory: float = 4.0,
        average: bool = False,
        n_epochs: int = 10,
        shuffle: bool = True,
        scale: Literal["auto", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard"] | None = "auto",
        map: str | FeatureMap | None = None,
        nan: Literal["error", "mean", "zero", "indicator"] = "error",
        categorical: str | Sequence[str] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        ungrouped: Literal["error", "one-list"] = "error",
        features: Sequence[str] | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...
    @property
    def gaps_(self) -> Floats: ...
    @property
    def gap_(self) -> float: ...

class RankSVM(ClickRanker):
    def __init__(
        self,
        *,
        C: float = 1.0,
        loss: Literal["squared", "hinge"] = "squared",
        balance: Literal["query", "pair"] = "query",
        tol: float = 1e-06,
        max_iter: int = 1000,
        n_epochs: int = 10,
        shuffle: bool = True,
        scale: Literal["auto", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard"] | None = "auto",
        map: str | FeatureMap | None = None,
        nan: Literal["error", "mean", "zero", "indicator"] = "error",
        categorical: str | Sequence[str] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        ungrouped: Literal["error", "one-list"] = "error",
        features: Sequence[str] | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

class SLAMPerceptron(OnlineRanker):
    def __init__(
        self,
        *,
        metric: str | Metric = "ndcg@10",
        eta: float = 0.3,
        margin: float = 1.0,
        fraction: float = 0.7,
        binarise: bool = True,
        step: Literal["constant", "sqrt"] = "sqrt",
        average: bool = True,
        n_epochs: int = 10,
        shuffle: bool = True,
        scale: Literal["auto", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard"] | None = "auto",
        map: str | FeatureMap | None = None,
        nan: Literal["error", "mean", "zero", "indicator"] = "error",
        categorical: str | Sequence[str] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        ungrouped: Literal["error", "one-list"] = "error",
        features: Sequence[str] | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

class SmoothRank(BaseRanker):
    def __init__(
        self,
        *,
        k: int = 10,
        C: float = 10.0,
        max_iter: int = 50,
        n_epochs: int = 10,
        shuffle: bool = True,
        scale: Literal["auto", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard"] | None = "auto",
        map: str | FeatureMap | None = None,
        nan: Literal["error", "mean", "zero", "indicator"] = "error",
        categorical: str | Sequence[str] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        ungrouped: Literal["error", "one-list"] = "error",
        features: Sequence[str] | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

class TopKRanker(OnlineRanker):
    def __init__(
        self,
        *,
        surrogate: Literal["ranksvm", "squared", "kl", "smooth-dcg"] = "ranksvm",
        k: int = 2,
        explore: float | None = None,
        eta: float | None = None,
        radius: float | None = None,
        shortlist: int | None = None,
        epsilon: float = 0.01,
        floor: float | None = None,
        answered: float = 1.0,
        highest: float | None = None,
        strict: bool = False,
        seed: int = 0,
        average: bool = True,
        exploration_price: float = 1.0,
        residual: bool = True,
        feedback: FeedbackModel | str | None = None,
        n_epochs: int = 30,
        shuffle: bool = True,
        scale: Literal["auto", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard"] | None = "minmax",
        map: str | FeatureMap | None = None,
        nan: Literal["error", "mean", "zero", "indicator"] = "error",
        categorical: str | Sequence[str] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        ungrouped: Literal["error", "one-list"] = "error",
        features: Sequence[str] | None = None,
        preset: Literal["recommended", "paper"] = "recommended",
    ) -> None: ...

def as_estimator(model: Model) -> BaseRanker: ...
