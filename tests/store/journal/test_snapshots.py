"""Versions that are let go."""

import os

import numpy as np

from ranktron.store.journal import snapshots

VERSIONS = "/v1/rankers/shop/versions"


def kept_each(talk, count):
    for _ in range(count):
        talk.play(1)
        talk.ask("POST", VERSIONS)
    return talk.ask("GET", VERSIONS)["kept"]


def test_a_version_is_let_go(serving, tmp_path):
    talk = serving(tmp_path).__enter__()
    talk.make()
    assert kept_each(talk, 4) == [1, 2, 3, 4]
    model = talk.ask("GET", "/v1/rankers/shop/model")
    assert talk.ask("DELETE", f"{VERSIONS}/2") == {"version": 4, "kept": [1, 3, 4]}
    assert talk.ask("DELETE", f"{VERSIONS}/2", status=404) == "unknown_version"
    assert talk.ask("POST", "/v1/rankers/shop/rollback", {"version": 2}, status=404) == "unknown_version"
    for version in (3, 4):
        assert talk.ask("DELETE", f"{VERSIONS}/{version}", status=409) == "needed_version"
    for version in ("0", "7", "-1", "1.0", "one", "²", "1" * 17):
        assert talk.ask("DELETE", f"{VERSIONS}/{version}", status=404) == "unknown_version"
    assert talk.ask("DELETE", "/v1/rankers/none/versions/1", status=404) == "unknown_ranker"
    talk.crash()
    with serving(tmp_path) as talk:
        assert talk.ask("GET", VERSIONS)["kept"] == [1, 3, 4]
        assert talk.ask("GET", "/v1/rankers/shop/model") == model


def test_what_a_start_goes_on_from_stays_whatever_goes(serving, tmp_path):
    """However many are let go, the newest may be damaged and the ranker still comes back."""
    config = {"remembered": 1, "explained_rounds": 1}
    talk = serving(tmp_path, **config).__enter__()
    talk.make()
    for version in kept_each(talk, 6):
        talk.request("DELETE", f"{VERSIONS}/{version}")
    assert talk.ask("GET", VERSIONS)["kept"] == [5, 6]
    talk.play(3)
    model = talk.ask("GET", "/v1/rankers/shop/model")
    talk.crash()
    newest = max((tmp_path / "snapshots" / "1").iterdir())
    newest.write_bytes(b"")
    with serving(tmp_path, **config) as talk:
        assert talk.ask("GET", "/v1/rankers/shop/model") == model


def test_a_disk_that_does_not_let_go_is_told_of(serving, tmp_path, monkeypatch):
    with serving(tmp_path) as talk:
        talk.make()
        kept_each(talk, 3)

        def refuse(_folder):
            raise OSError("read only")

        with monkeypatch.context() as patch:
            patch.setattr(snapshots, "_flush", refuse)
            assert talk.ask("DELETE", f"{VERSIONS}/1", status=503) == "not_written"
        assert talk.answer(talk.rank(np.eye(3)))["learned"]


def test_room_is_made_for_another(serving, tmp_path, monkeypatch):
    monkeypatch.setattr("ranktron.store.engine.MAX_PINNED", 3)
    with serving(tmp_path) as talk:
        talk.make()
        kept_each(talk, 3)
        talk.play(1)
        assert talk.ask("POST", VERSIONS, status=409) == "too_many_versions"
        talk.ask("DELETE", f"{VERSIONS}/1")
        assert talk.ask("POST", VERSIONS)["kept"] == [2, 3, 4]


def test_what_is_no_file_is_no_snapshot(serving, tmp_path):
    talk = serving(tmp_path, snapshot_every=2).__enter__()
    talk.make()
    talk.play(5)
    model = talk.ask("GET", "/v1/rankers/shop/model")
    talk.crash()
    folder = tmp_path / "snapshots" / "1"
    os.mkfifo(folder / f"{9:016d}.snapshot")  # to read it would take for ever
    (folder / f"{8:016d}.kept").mkdir()
    (folder / "²³.snapshot").write_bytes(b"")
    with serving(tmp_path) as talk:
        assert talk.ask("GET", "/v1/rankers/shop/model") == model
        assert talk.ask("GET", VERSIONS)["kept"] == [2, 4]


def test_what_a_killed_server_had_begun_to_write_goes(serving, tmp_path):
    with serving(tmp_path, snapshot_every=2) as talk:
        talk.make()
        talk.play(3)
    folder = tmp_path / "snapshots" / "1"
    draft = folder / ".0000000000000009.snapshot.4711.tmp"
    draft.write_bytes(b"half of it")
    (folder / ".a.tmp").mkdir()  # nobody's draft
    with serving(tmp_path) as talk:
        assert talk.ask("GET", "/v1/rankers/shop")["version"] == 3
        assert not draft.exists()
