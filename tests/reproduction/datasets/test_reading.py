"""The table of data sets, and the loaders on small files of every set's own format and on the real sets."""

import gzip
import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ranktron.cli import main
from ranktron.errors import DataError
from reproduction import datasets
from reproduction.__main__ import cli
from reproduction.datasets import (
    DATASETS,
    absent,
    dataset,
    find_dataset,
    folds,
    known_files,
    locations,
    reading,
    table,
    verify_file,
)
from reproduction.harness.data import SOURCES, all_lists
from reproduction.harness.data import cached_folds as harness_folds

RANKINGS = [name for name, one in DATASETS.items() if one.kind == "ranking"]
OTHERS = [name for name in DATASETS if name not in RANKINGS]


def dense(rng, label, qid, width):
    values = " ".join(f"{j}:{value:.6f}" for j, value in enumerate(rng.random(width), 1))
    return f"{label} qid:{qid} {values} #docid = D{rng.integers(1000)}"


def sparse(rng, label, qid, width):
    kept = sorted({*rng.choice(width, 5, replace=False) + 1, width})
    return f"{label} qid:{qid} " + " ".join(f"{j}:{rng.random():.4f}" for j in kept)


def yandex(rng, label, qid, width):
    kept = sorted(rng.choice(width, 5, replace=False) + 1)
    return f"{label + 0.25} " + " ".join(f"{j}:{rng.random():.6f}" for j in kept) + f" # {qid}"


LINES = {table.LETOR: dense, table.SPARSE: sparse, table.YANDEX: yandex}


# How many lists the papers' online experiments have: SLAM and TOPK name 10,000, 19,944 and 9,124.
STREAMED = {"mslr-web10k": 10_000, "yahoo-ltrc": 19_944, "yandex-imat2009": 9_124}
PARTS = {"yahoo-set1": (19_944, 2_994, 6_983), "yahoo-set2": (1_266, 1_266, 3_798), "yandex": (9_124,),
         "istella": (23_219, 9_799), "istella-s": (19_245, 7_211, 6_562), "mslr-sample": (18, 18),
         "yandex-sample": (104,)}  # fmt: skip


def whole(name, root):
    """Files with as many queries as a set has, two documents each; as small as its format allows."""
    one = DATASETS[name]
    if len(one.folds) > 1:
        cuts = [one.queries * i // 5 for i in range(6)]
        fifths = [range(a, b) for a, b in pairwise(cuts)]
        files = {}
        for i, (train, vali, test) in enumerate(one.folds):
            turned = [fifths[(i + j) % 5] for j in range(5)]
            files |= {train: [q for part in turned[:3] for q in part], vali: turned[3], test: turned[4]}
    else:
        cuts = np.cumsum((0, *PARTS[name]))
        files = {place: range(cuts[i], cuts[i + 1]) for i, place in enumerate(one.folds[0])}
    ending = (lambda q: f" # {q}") if one.format == table.YANDEX else (lambda q: "")
    qid = (lambda q: "") if one.format == table.YANDEX else (lambda q: f" qid:{q}")
    for place, queries in files.items():
        path = root / one.folder / f"{place}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{g}{qid(q)} 1:{g} {one.features}:1{ending(q)}\n" for q in queries for g in (0, 1)))
    return root / one.folder


@pytest.mark.parametrize("name", RANKINGS)
def test_a_stream_has_every_query_once(name, tmp_path):
    one, home = DATASETS[name], whole(name, tmp_path)
    parts = datasets.read_stream(name, tmp_path)
    qids = [qid for part in parts for qid in part.qids.tolist()]
    wanted = PARTS[name][0] if name.startswith("yahoo") else one.queries
    assert len(qids) == len(set(qids)) == wanted
    if SOURCES[one.folder] is one:  # the experiments know a set by its folder
        assert len(all_lists(str(home))) == wanted == STREAMED.get(one.folder, wanted)
        all_lists.cache_clear()
        harness_folds.cache_clear()


def test_a_stream_of_the_wrong_size_is_refused(small, tmp_path):
    small("yahoo-set1")
    with pytest.raises(DataError, match=r"10 queries in set1.train, but Yahoo.* has 19,944 there, each of them once"):
        datasets.read_stream("yahoo-set1", tmp_path)
    small("td2003")
    with pytest.raises(DataError, match=r"10 queries in Fold1/test.* has 30 there"):  # the folds share their queries
        datasets.read_stream("td2003", tmp_path)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A maker of small sets in a set's own format and layout, announced in the table with their own counts."""

    def make(name, queries=10, documents=3):
        one, rng = DATASETS[name], np.random.default_rng(7)
        home = tmp_path / one.folder
        for fold in one.folds:
            qid = 0
            for place in fold:
                path = home / f"{place}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                qids = range(qid, qid + queries)
                rows = [LINES[one.format](rng, i % 3, q, one.features) for q in qids for i in range(documents)]
                path.write_text("\n".join(rows) + "\n")
                qid += queries
        total = queries * len(one.folds[0])
        counts = {"queries": total, "documents": None if one.documents is None else total * documents}
        monkeypatch.setitem(table.DATASETS, name, replace(one, **counts))
        monkeypatch.setattr(locations, "KNOWN", "")
        known_files.cache_clear()
        return home

    yield make
    known_files.cache_clear()


def test_the_table_is_whole():
    wanted = {"ohsumed-letor3", "ohsumed-letor2", "mq2008", "mq2007", "td2003", "td2004", "mslr-web10k", "mslr-web30k"}
    wanted |= {"yahoo-set1", "yahoo-set2", "yandex", "istella", "istella-s", "mslr-sample", "yandex-sample"}
    assert wanted == set(RANKINGS)
    for one in DATASETS.values():
        assert one.url.startswith("http"), one
        assert one.licence
        assert one.source
        assert one.folds
        assert one.where.count("\n") == 0
        assert set(known_files(one.name)) <= set(one.places)
        assert all(len(file.sha256) == 64 for file in known_files(one.name).values())
    # The folds of LETOR's layout rotate five parts: each validation part is the test part of the fold before.
    for name in ("ohsumed-letor3", "ohsumed-letor2", "mq2008", "mslr-web10k", "mslr-web30k"):
        sums = known_files(name)
        for i in range(1, 6):
            assert sums[f"Fold{i % 5 + 1}/vali"] == sums[f"Fold{i}/test"]


@pytest.mark.parametrize("name", RANKINGS)
def test_each_format_is_read(name, small, tmp_path):
    small(name)
    one, read = dataset(name), list(folds(name, tmp_path))
    assert [fold.name for fold in read] == [f"Fold{i}" for i in range(1, 6)][: len(one.folds)] or len(one.folds) == 1
    for fold in read:
        parts = (fold.train, fold.valid, fold.test)
        assert {part.n_features for part in parts} == {one.features}
        assert all(len(part) for part in parts)
        ids = [qid for part in parts for qid in part.qids.tolist()]
        assert len(ids) == len(set(ids)) == one.queries
    labels = set(read[0].train.labels.tolist())
    assert labels == ({0.25, 1.25, 2.25} if name.startswith("yandex") else {0.0, 1.0, 2.0})
    assert len(datasets.read_part(name, "vali", tmp_path)) == len(read[0].valid)


def test_parts_that_are_not_given_are_made_of_whole_queries_in_their_order(small, tmp_path):
    small("istella", queries=12)
    [fold] = folds("istella", tmp_path)
    assert (len(fold.train), len(fold.valid), len(fold.test)) == (10, 2, 12)
    small("yandex", queries=12)
    [fold] = folds("yandex", tmp_path)
    assert (len(fold.train), len(fold.valid), len(fold.test)) == (6, 3, 3)
    assert [*fold.train.qids, *fold.valid.qids, *fold.test.qids] == [str(q) for q in range(12)]


@pytest.mark.parametrize("name", ["mslr-sample", "yandex-sample"])
def test_samples_are_divided_by_query(name, small, tmp_path):
    small(name)
    made = list(folds(name, tmp_path))
    assert len(made) == 5
    for fold in made:
        parts = [set(part.qids.tolist()) for part in fold[1:]]
        assert parts[1].isdisjoint(parts[0])
        assert parts[2].isdisjoint(parts[0] | parts[1])
        assert len(set.union(*parts)) == sum(map(len, parts)) == dataset(name).queries
    tested = [qid for fold in made for qid in fold.test.qids.tolist()]
    assert len(tested) == len(set(tested)) == dataset(name).queries
    again = list(folds(name, tmp_path))
    assert [fold.test.qids.tolist() for fold in again] == [fold.test.qids.tolist() for fold in made]


def test_numbers_of_istella_that_32_bits_cannot_hold_are_capped(small, tmp_path):
    home = small("istella-s", queries=1)
    home.joinpath("sample/train.txt").write_text(
        f"1 qid:0 1:0.5 2:1.79769313486231E308 220:1\n0 qid:0 1:2 2:-1e137 3:1e20\n0 qid:0 2:{'9' * 60} 3:7\n"
    )
    [fold] = folds("istella-s", tmp_path)
    largest = np.finfo(np.float32).max
    assert fold.train.X[:, 1].tolist() == [largest, -largest, largest]
    assert fold.train.X[:, 2].tolist() == [0.0, np.float32(1e20), 7.0]
    assert fold.train.X[:, 0].tolist() == [0.5, 2.0, 0.0]


def test_what_is_missing_is_said_in_one_sentence(small, tmp_path):
    with pytest.raises(DataError, match=r"yahoo-ltrc: Yahoo.* is not there; get it from Yahoo Webscope, C14 \(https:"):
        find_dataset("yahoo-set1", tmp_path)
    home = small("yahoo-set1")
    assert find_dataset("yahoo-set1", tmp_path) == home
    assert absent("yahoo-set2", tmp_path) == ["set2.train", "set2.valid", "set2.test"]
    home.joinpath("set1.valid.txt").unlink()
    with pytest.raises(DataError, match=r"has no file set1.valid\.\*; get it"):
        next(folds("yahoo-set1", tmp_path))
    packed = tmp_path / "mslr-web10k" / "MSLR-WEB10K.zip"
    packed.parent.mkdir()
    packed.touch()
    with pytest.raises(DataError, match="unpack this archive"):
        find_dataset("mslr-web10k", tmp_path)


def test_folders_may_have_capitals_and_files_any_ending(small, tmp_path):
    home = small("mslr-web10k", queries=1)
    for path in home.glob("Fold*/train.txt"):
        path.with_suffix(".txt.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    home.rename(tmp_path / "MSLR-WEB10K")
    assert len(list(folds("mslr-web10k", tmp_path))) == 5
    (tmp_path / "MSLR-WEB10K" / "Fold1" / "train.old.txt").touch()
    with pytest.raises(DataError, match="both look like Fold1/train"):
        next(folds("mslr-web10k", tmp_path))


def test_wrong_counts_are_found(small, tmp_path, monkeypatch):
    small("td2004")
    one = table.DATASETS["td2004"]
    for counts, message in [({"queries": 75}, "30 queries, but"), ({"documents": 74_170}, "90 documents, but")]:
        monkeypatch.setitem(table.DATASETS, "td2004", replace(one, **counts))
        with pytest.raises(DataError, match=message):
            next(folds("td2004", tmp_path))
    monkeypatch.setitem(table.DATASETS, "td2004", replace(one, features=64))
    with pytest.raises(DataError, match=r"has 44 features; .* has 64"):
        next(folds("td2004", tmp_path))


def test_sizes_and_checksums_are_compared(small, tmp_path, monkeypatch):
    home = small("mq2007")
    path = home / "Fold1" / "train.txt"
    assert verify_file("mq2007", "Fold1/train", tmp_path) is None
    size, sha = datasets.checksum_file(path)
    monkeypatch.setattr(locations, "KNOWN", f"mq2007 Fold1/train {size} {sha}\nmq2007 Fold1/vali - {sha}\n")
    known_files.cache_clear()
    assert verify_file("mq2007", "Fold1/train", tmp_path) is True
    with pytest.raises(DataError, match=r"vali.txt is not the file that .*SHA-256 [0-9a-f]{64}"):
        verify_file("mq2007", "Fold1/vali", tmp_path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert verify_file("mq2007", "Fold1/train", tmp_path) is True
    path.write_bytes(path.read_bytes().replace(b"D1", b"D11", 1))
    with pytest.raises(DataError, match=f"bytes instead of {size:,}"):
        next(folds("mq2007", tmp_path))


def test_examples_of_other_formats_are_refused_clearly(tmp_path):
    with pytest.raises(DataError, match="no ranking"):
        next(folds("yeast", tmp_path))
    with pytest.raises(DataError, match="is a ranking"):
        datasets.examples("mq2008", tmp_path)
    wrong = tmp_path / "wrong"
    for text, message in [
        ("1,2\n", "no line @data"),
        ("@attribute a numeric\n@attribute b {0,1}\n@data\n1,2\n", "labels 0 or 1"),
        ("@attribute a numeric\n@attribute b {0,1}\n@data\n1,1,0\n", "row 1 has 3 values instead of 2"),
        ("@attribute a numeric\n@attribute b {0,1}\n@data\n", "no rows"),
        ("@attribute a numeric\n@attribute b {0,1}\n@data\nx,1\n", "could not convert"),
    ]:
        wrong.write_text(text)
        with pytest.raises(DataError, match=message):
            reading.read_multilabel(wrong, classes=1)
    wrong.write_text("a,response\n1,2\n")
    with pytest.raises(DataError, match="called response"):
        reading.read_ordinal(wrong)
    with pytest.raises(DataError, match="train, vali, test, not"):
        datasets.read_part("mq2008", "valid", tmp_path)


def test_the_command(small, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("RANKTRON_DATA", raising=False)
    small("td2003")

    def run(*arguments):
        with pytest.raises(SystemExit) as exit:
            main(["datasets", *arguments], command=cli)
        return exit.value.code, capsys.readouterr()

    code, shown = run("--json")
    content = json.loads(shown.out)
    assert code == 0
    assert content["data"] is None
    assert {row["name"] for row in content["datasets"]} == set(DATASETS)
    assert not any(row["found"] for row in content["datasets"])
    monkeypatch.setenv("RANKTRON_DATA", str(tmp_path))
    found = {row["name"]: row for row in json.loads(run("--json", "--check")[1].out)["datasets"]}
    assert [name for name, row in found.items() if row["found"]] == ["td2003"]
    assert found["td2003"]["check"] == "no checksums known"
    assert found["mslr-web30k"]["archive"]["bytes"] == 3_849_406_307
    code, shown = run("td2003", "--data", str(tmp_path))
    assert code == 0
    assert "50 queries" not in shown.out
    assert "30 queries" in shown.out
    code, shown = run("--data", str(tmp_path))
    for one in DATASETS.values():
        assert one.url in shown.out
        assert one.licence in shown.out
    assert run("td2005")[0] == 1


@pytest.mark.data
@pytest.mark.parametrize("name", ["ohsumed-letor3", "ohsumed-letor2", "mq2008", "mslr-sample", "yandex-sample"])
def test_real_folds_are_as_known(data_dir, name):
    read = list(folds(name, data_dir))
    assert [fold.name for fold in read] == [f"Fold{i}" for i in range(1, 6)]
    assert all(verify_file(name, place, data_dir) for place in dataset(name).places)
    tested = [qid for fold in read for qid in fold.test.qids.tolist()]
    assert len(tested) == len(set(tested)) == dataset(name).queries


@pytest.mark.data
@pytest.mark.parametrize("name", OTHERS)
def test_real_examples_are_as_known(data_dir, name):
    train, test = datasets.examples(name, data_dir)
    one = dataset(name)
    assert len(train.X) + len(test.X) == one.documents
    if one.kind == "multilabel":
        assert train.y.shape[1] == test.y.shape[1] == one.classes
        assert (train.y.sum(axis=0) > 0).all()
    else:
        assert np.unique(train.y).tolist() == list(range(1, int(one.labels.split()[-1]) + 1))


@pytest.mark.data
def test_pieces_of_real_sets_are_read_as_the_whole_would_be(data_dir):
    piece = reading._read_part(dataset("mslr-web10k"), data_dir / "mslr-sample" / "valid.txt.gz")
    assert (len(piece), len(piece.labels)) == (18, 1734)
    piece = reading._read_part(dataset("yandex"), data_dir / "yandex-imat2009-sample" / "learn.txt.gz")
    assert (len(piece), len(piece.labels), piece.n_features) == (104, 1000, 245)
    assert (piece.labels % 1 > 0).any()
