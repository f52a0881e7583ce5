"""Where the experiments' data sets are, and where those come from that are not there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ranktron.protocol import Fold, read_folds


class Source(NamedTuple):
    """A data set: what it is called, and one sentence on where to get it and where to put it."""

    title: str
    where: str


SOURCES: Mapping[str, Source] = {
    name: Source(title, f"{title}: get it from {place} and put it into the folder {name} of --data.")
    for name, title, place in (
        ("ohsumed-letor2", "OHSUMED (LETOR 2.0)", "Microsoft Research's LETOR pages"),
        ("ohsumed-letor3", "OHSUMED (LETOR 3.0)", "Microsoft Research's LETOR pages"),
        ("mq2008", "MQ2008 (LETOR 4.0)", "Microsoft Research's LETOR pages"),
        ("td2003", "TREC 2003 (LETOR 2.0)", "Microsoft Research's LETOR pages"),
        ("td2004", "TREC 2004 (LETOR 2.0)", "Microsoft Research's LETOR pages"),
        ("mslr-web10k", "MSLR-WEB10K", "Microsoft Research's MSLR pages"),
        ("yahoo-ltrc", "Yahoo! Learning to Rank Challenge, set 1", "Yahoo's Webscope programme"),
        ("yandex-imat2009", "Yandex Internet Mathematics 2009", "Yandex's IMAT 2009 pages"),
    )
}


def find(root: Path | None, name: str) -> Path | None:
    """The folder of a data set with its folds; None where it is not."""
    if root is None:
        return None
    folder = root / name
    return folder if any(folder.glob("Fold*/train*")) or any(folder.glob("train*")) else None


@lru_cache(maxsize=2)
def folds(folder: str) -> list[Fold]:
    """All folds of a data set; a process that computes several cells reads them once."""
    return list(read_folds(folder))


def where(name: str) -> str:
    """One sentence: where to get a data set and where to put it."""
    return SOURCES[name].where
