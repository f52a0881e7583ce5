"""The data sets that the papers and the comparisons use: facts in a plain table that imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass

from ranktron.errors import DataError

FIVE_FOLDS = tuple((f"Fold{i}/train", f"Fold{i}/vali", f"Fold{i}/test") for i in range(1, 6))

LETOR = "LETOR text: `label qid:ID 1:value 2:value ... #docid = NAME`"
SPARSE = "LETOR text without comments; features that a line leaves out are 0"
YANDEX = "text without qid: `label 1:value ... # ID`, the query id after the #, labels with decimals"
ARFF = "ARFF of Mulan: numeric features, then one attribute of 0 and 1 for each label"
CSV = "CSV with a header; the first column, `response`, is the class, counted from 1"

LETOR_TERMS = "research only, under the agreement on the download page; not to be passed on"
MULAN = "Mulan's collection of multilabel data sets"
MULAN_URL = "https://mulan.sourceforge.net/datasets-mlc.html"
MULAN_TERMS = "none stated with the data; cite the authors named on the page"
LETOR_URL = "https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/"
MSLR_URL = "https://www.microsoft.com/en-us/research/project/mslr/"
YANDEX_TERMS = "the terms of the contest: research; not to be passed on"
YANDEX_URL = "http://imat2009.yandex.ru/en/"
YAHOO_TERMS = "Yahoo's agreement for academic research: granted on request, not to be passed on"
YAHOO_URL = "https://webscope.sandbox.yahoo.com/catalog.php?datatype=c"
ISTELLA_TERMS = "Istella LETOR Licence Agreement: non-commercial use only"
ISTELLA_URL = "http://quickrank.isti.cnr.it/istella-dataset/"
ORDINAL_URL = "https://www.gatsby.ucl.ac.uk/~chuwei/ordinalregression.html"
WINE_URL = "https://archive.ics.uci.edu/dataset/186/wine+quality"
UCI_TERMS = "CC BY 4.0, as all of the UCI repository"


@dataclass(frozen=True)
class Archive:
    """The file that one downloads: its name, and its size in bytes and SHA-256 where they are known."""

    name: str
    bytes: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class Dataset:
    """What is known about a data set, and where its files belong.

    Parameters
    ----------
    name : str
    title : str
    kind : "ranking", "multilabel" or "ordinal"
    papers : tuple of str
        The papers whose experiments use it.
    queries, documents, features : int or None
        Counts over the whole set, None where there are none or none are published; `documents` counts the examples of
        sets that are no rankings.
    labels : str
    licence, source, url : str
        Terms of use, who gives the data out, and on which page.
    format : str
    folder : str
        The folder of the set under the folder of all data; capitals do not matter.
    folds : tuple of tuple of str
        For each fold how the names of its files begin: training, validation and test part; training and test; or one.
    divided : int
        Into how many folds the queries of all files are divided at random, where the set comes without folds; 0 if not.
    classes : int
        Of a multilabel set: how many labels stand at the end of each row.
    streamed : tuple of str
        The files whose queries the papers' online experiments pass over, where these are not all queries.
    streamed_queries : int or None
        How many these are.
    archive : Archive or None

    Examples
    --------
    >>> mq2008 = dataset("mq2008")
    >>> mq2008.queries, mq2008.features, mq2008.folder, mq2008.folds[0]
    (784, 46, 'mq2008', ('Fold1/train', 'Fold1/vali', 'Fold1/test'))
    """

    name: str
    title: str
    kind: str
    papers: tuple[str, ...]
    queries: int | None
    documents: int | None
    features: int
    labels: str
    licence: str
    source: str
    url: str
    format: str
    folder: str
    folds: tuple[tuple[str, ...], ...]
    divided: int = 0
    classes: int = 0
    archive: Archive | None = None
    streamed: tuple[str, ...] = ()
    streamed_queries: int | None = None

    @property
    def stream(self) -> tuple[str, ...]:
        """How the names of the files begin that hold every query of an online experiment, and hold it once.

        The test parts of five folds are the whole set; a set with one split is the whole of its files.

        >>> dataset("yahoo-set1").stream, dataset("yandex").stream, dataset("td2003").stream[:2]
        (('set1.train',), ('imat2009_learning',), ('Fold1/test', 'Fold2/test'))
        """
        if len(self.folds) > 1:
            return tuple(fold[-1] for fold in self.folds)
        return self.streamed or self.folds[0]

    @property
    def places(self) -> tuple[str, ...]:
        """How the names of all its files begin."""
        return tuple(dict.fromkeys(place for fold in self.folds for place in fold))

    @property
    def ending(self) -> str:
        """How the names of its files end; a further .gz or .zst is fine."""
        return {"multilabel": ".arff", "ordinal": ".csv"}.get(self.kind, ".txt")

    @property
    def where(self) -> str:
        """One sentence: where to get the data and where to put it.

        >>> print(dataset("yandex").where)
        get it from Yandex, Internet Mathematics 2009 (http://imat2009.yandex.ru/en/) and put it there as
        yandex-imat2009/imat2009_learning.txt
        """
        files = ", ".join(f"{self.folder}/{place}{self.ending}" for place in self.folds[0])
        more = f" and so on to Fold{len(self.folds)}" if len(self.folds) > 1 else ""
        return f"get it from {self.source} ({self.url}) and put it there as {files}{more}"


def _letor(name: str, title: str, papers: tuple[str, ...], queries: int, documents: int, features: int) -> Dataset:
    labels = "0, 1" if name.startswith("td") else "0, 1, 2"
    source = "Microsoft Research, LETOR"
    return Dataset(
        name, title, "ranking", papers, queries, documents, features, labels, LETOR_TERMS, source, LETOR_URL, LETOR,
        name, FIVE_FOLDS,
    )  # fmt: skip


def _mslr(size: str, papers: tuple[str, ...], queries: int, documents: int, archive: Archive) -> Dataset:
    return Dataset(
        f"mslr-web{size}", f"MSLR-WEB{size.upper()}", "ranking", papers, queries, documents, 136, "0 to 4",
        LETOR_TERMS, "Microsoft Research, MSLR-WEB", MSLR_URL, LETOR, f"mslr-web{size}", FIVE_FOLDS, archive=archive,
    )  # fmt: skip


def _yahoo(number: int, papers: tuple[str, ...], queries: int, documents: int, streamed: int) -> Dataset:
    fold = tuple(f"set{number}.{part}" for part in ("train", "valid", "test"))
    return Dataset(
        f"yahoo-set{number}", f"Yahoo! Learning to Rank Challenge, set {number}", "ranking", papers, queries, documents,
        700, "0 to 4", YAHOO_TERMS, "Yahoo Webscope, C14", YAHOO_URL, SPARSE, "yahoo-ltrc", (fold,),
        archive=Archive("ltrc_yahoo.tar.bz2"), streamed=fold[:1], streamed_queries=streamed,
    )  # fmt: skip


def _istella(name: str, title: str, documents: int, fold: tuple[str, ...], archive: Archive) -> Dataset:
    return Dataset(
        name, title, "ranking", (), 33_018, documents, 220, "0 to 4", ISTELLA_TERMS, "Istella", ISTELLA_URL, SPARSE,
        name, (fold,), archive=archive,
    )  # fmt: skip


def _multilabel(name: str, examples: int, features: int, classes: int) -> Dataset:
    return Dataset(
        name, f"{name.capitalize()} (multilabel)", "multilabel", (), None, examples, features, f"{classes} of 0 and 1",
        MULAN_TERMS, MULAN, MULAN_URL, ARFF, "multilabel", ((f"{name}-train", f"{name}-test"),),
        classes=classes,
    )  # fmt: skip


def _ordinal(
    name: str, title: str, file: str, examples: int, features: int, highest: int, licence: str, url: str
) -> Dataset:
    source = "the UCI repository" if url == WINE_URL else "W. Chu's benchmark of ordinal regression"
    return Dataset(
        name, f"{title} (ordinal)", "ordinal", (), None, examples, features, f"1 to {highest}", licence, source, url,
        CSV, "ordinal", ((file,),),
    )  # fmt: skip


_ALL = (
    _letor("ohsumed-letor3", "OHSUMED, LETOR 3.0", ("RANKMM",), 106, 16_140, 45),
    _letor("ohsumed-letor2", "OHSUMED, LETOR 2.0", ("COMMITTEE",), 106, 16_140, 25),
    _letor("td2003", "TREC 2003 topic distillation, LETOR 2.0", ("COMMITTEE",), 50, 49_171, 44),
    _letor("td2004", "TREC 2004 topic distillation, LETOR 2.0", ("COMMITTEE",), 75, 74_170, 44),
    _letor("mq2007", "Million Query 2007, LETOR 4.0", (), 1_692, 69_623, 46),
    _letor("mq2008", "Million Query 2008, LETOR 4.0", (), 784, 15_211, 46),
    _mslr("10k", ("SLAM",), 10_000, 1_200_192, Archive(
        "MSLR-WEB10K.zip", 1_234_144_912, "2902142ea33f18c59414f654212de5063033b707d5c3939556124b1120d3a0ba",
    )),
    _mslr("30k", (), 31_531, 3_771_125, Archive(
        "MSLR-WEB30K.zip", 3_849_406_307, "08cb7977e1d5cbdeb57a9a2537a0923dbca6d46a76db9a6afc69e043c85341ae",
    )),
    _yahoo(1, ("SLAM", "TOPK"), 29_921, 709_877, 19_944),
    _yahoo(2, (), 6_330, 172_870, 1_266),
    Dataset(
        "yandex", "Yandex Internet Mathematics 2009", "ranking", ("SLAM", "TOPK"), 9_124, None, 245,
        "0 to 4, with decimals", YANDEX_TERMS, "Yandex, Internet Mathematics 2009", YANDEX_URL, YANDEX,
        "yandex-imat2009", (("imat2009_learning",),),
    ),
    Dataset(
        "mslr-sample", "MSLR-WEB, sample", "ranking", (), 36, 3_634, 136, "0 to 4", LETOR_TERMS,
        "Microsoft Research, MSLR-WEB: queries 14, 19, …, 99 of the first fold's validation part, 10, 15, …, 95 of its "
        "test part", MSLR_URL, LETOR, "mslr-sample", (("valid", "test"),), divided=5,
    ),
    Dataset(
        "yandex-sample", "Yandex Internet Mathematics 2009, sample", "ranking", (), 104, 1_000, 245,
        "0 to 4, with decimals", YANDEX_TERMS, "Yandex, Internet Mathematics 2009: 104 queries of the labelled file",
        YANDEX_URL, YANDEX, "yandex-imat2009-sample", (("learn",),), divided=5,
    ),
    _istella("istella", "Istella LETOR, full", 10_454_629, ("full/train", "full/test"), Archive(
        "istella-letor.tar.gz", 1_288_401_248, "d45899d9a6a0e48afb250aac7ee3dc50e73e263687f15761d754515cd8284e0b",
    )),
    _istella("istella-s", "Istella-S LETOR", 3_408_630, ("sample/train", "sample/vali", "sample/test"), Archive(
        "istella-s-letor.tar.gz", 472_129_615, "41b21116a3650cc043dbe16f02ee39f4467f9405b37fdbcc9a6a05e230a38981",
    )),
    _multilabel("emotions", 593, 72, 6),
    _multilabel("scene", 2_407, 294, 6),
    _multilabel("yeast", 2_417, 103, 14),
    _ordinal("machine", "Machine CPU", "machine_ord", 199, 6, 10, UCI_TERMS, ORDINAL_URL),
    _ordinal("stock", "Stocks domain", "stock_ord", 950, 9, 5, "none stated with the data", ORDINAL_URL),
    _ordinal("abalone", "Abalone", "abalone_ord", 4_177, 10, 10, UCI_TERMS, ORDINAL_URL),
    _ordinal("wine-red", "Red wine quality", "winequality-red", 1_359, 11, 6, UCI_TERMS, WINE_URL),
    _ordinal("wine-white", "White wine quality", "winequality-white", 3_961, 11, 7, UCI_TERMS, WINE_URL),
)  # fmt: skip

DATASETS = {one.name: one for one in _ALL}


def dataset(name: str) -> Dataset:
    """A data set by its name.

    >>> dataset("td2003").queries
    50
    >>> dataset("td2005")
    Traceback (most recent call last):
    ranktron.errors.DataError: there is no data set 'td2005'; `python -m reproduction datasets` lists all of them
    """
    if name not in DATASETS:
        raise DataError(f"there is no data set {name!r}; `python -m reproduction datasets` lists all of them")
    return DATASETS[name]
