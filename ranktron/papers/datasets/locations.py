"""Finding the files of a data set under the folder of all data, and comparing them with what is known of them."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ranktron.errors import DataError
from ranktron.papers.datasets.checksums import KNOWN
from ranktron.papers.datasets.table import Dataset, dataset

Folder = str | os.PathLike[str]


class KnownFile(NamedTuple):
    """What is known of a file as unpacked: its size (None where nobody published it) and its SHA-256."""

    bytes: int | None
    sha256: str


def data_folder(given: Folder | None = None) -> Path:
    """The folder of all data: the given one, else the one that RANKTRON_DATA names.

    >>> data_folder("/data").name
    'data'
    """
    folder = os.environ.get("RANKTRON_DATA") if given is None else given
    if not folder:
        raise DataError("which folder holds the data? say so with --data DIR or in RANKTRON_DATA")
    return Path(folder)


def find_dataset(name: str, folder: Folder | None = None) -> Path:
    """The folder of a data set; an error that says what is missing and where to get it, unless all its files are there.

    >>> find_dataset("td2003", getfixture("tmp_path"))
    Traceback (most recent call last):
    ranktron.errors.DataError: .../td2003: TREC 2003 topic distillation, LETOR 2.0 is not there; get it from Microsoft
    Research, LETOR (https://...) and put it there as td2003/Fold1/train.txt, td2003/Fold1/vali.txt,
    td2003/Fold1/test.txt and so on to Fold5
    """
    what, root = dataset(name), data_folder(folder)
    missing = absent(name, folder)
    if not missing:
        return _home(what, root)
    which = "is not there" if len(missing) == len(what.places) else f"has no file {missing[0]}.*"
    packed = what.archive and (_home(what, root) / what.archive.name)
    if packed and packed.is_file():
        raise DataError(f"{packed}: unpack this archive; {what.title} is read from the files in it")
    raise DataError(f"{root / what.folder}: {what.title} {which}; {what.where}")


def absent(name: str, folder: Folder | None = None) -> list[str]:
    """The files of a data set that are not in the folder, by how their names begin; none if it can be read.

    >>> absent("istella-s", getfixture("tmp_path"))
    ['sample/train', 'sample/vali', 'sample/test']
    """
    what = dataset(name)
    home = _home(what, data_folder(folder))
    return [place for place in what.places if not _find_files(home, place)]


def file_at(name: str, place: str, folder: Folder | None = None) -> Path:
    """The one file whose name begins so."""
    home = find_dataset(name, folder)
    found = _find_files(home, place)
    if len(found) > 1:
        raise DataError(f"{home}: {found[0].name} and {found[1].name} both look like {place}: keep one of them")
    return found[0]


def _home(what: Dataset, root: Path) -> Path:
    """The folder of a set: as archives unpack it, its name may have capitals."""
    entries = sorted(root.iterdir()) if root.is_dir() else []
    return next((e for e in entries if e.is_dir() and e.name.lower() == what.folder), root / what.folder)


def _find_files(home: Path, place: str) -> list[Path]:
    """The files that begin so, whatever their endings: text, compressed, Parquet or a store."""
    start = home / place
    others = (".json", ".md", ".xml")
    found = start.parent.glob(f"{start.name}*") if start.parent.is_dir() else []
    return sorted(path for path in found if path.is_file() and path.suffix not in others)


@cache
def known_files(name: str) -> dict[str, KnownFile]:
    """The sizes and checksums of a data set's files that are known.

    >>> known_files("mq2008")["Fold1/test"].bytes, known_files("td2003")
    (1765771, {})
    """
    rows = (line.split() for line in KNOWN.strip().splitlines())
    return {place: KnownFile(None if size == "-" else int(size), sha) for one, place, size, sha in rows if one == name}


def verify_file(name: str, place: str, folder: Folder | None = None) -> bool | None:
    """Compares a file's size and checksum with what is known: True if they agree, None if nothing can be compared.

    Compressed files are compared as unpacked, text with any line ends. Converted files (Parquet, stores) and files of
    which nothing is known cannot be compared. A file that differs is an error.
    """
    from ranktron.data.io.formats import TEXT, detect_kind

    path, expected = file_at(name, place, folder), known_files(name).get(place)
    if expected is None or detect_kind(path) not in TEXT:
        return None
    size, sha = checksum_file(path)
    if sha == expected.sha256 or _with_plain_lines(path) == expected.sha256:
        return True
    told = f"{size:,} bytes instead of {expected.bytes:,}" if expected.bytes not in (None, size) else f"SHA-256 {sha}"
    raise DataError(f"{path} is not the file that {dataset(name).title} has there ({told}): fetch it again")


def checksum_file(path: Folder) -> tuple[int, str]:
    """Size and SHA-256 of a file's content, unpacked.

    >>> import gzip
    >>> path = getfixture("tmp_path") / "a.gz"
    >>> _ = path.write_bytes(gzip.compress(b"abc"))
    >>> checksum_file(path)
    (3, 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
    """
    from ranktron.data.io.formats import blocks

    size, digest = 0, hashlib.sha256()
    for block in blocks(Path(path)):
        size += len(block)
        digest.update(block)
    return size, digest.hexdigest()


def _with_plain_lines(path: Path) -> str:
    from ranktron.data.io.formats import blocks

    digest = hashlib.sha256()
    for block in blocks(path):
        digest.update(block.replace(b"\r", b""))
    return digest.hexdigest()
