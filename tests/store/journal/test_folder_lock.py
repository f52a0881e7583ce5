"""A server whose files are taken away acknowledges nothing more."""

import shutil

import numpy as np
import pytest


@pytest.mark.parametrize("gone", ["folder", "log.sqlite", "log.sqlite-wal", "replaced"])
def test_nothing_is_acknowledged_that_nobody_can_read_again(serving, tmp_path, gone):
    state = tmp_path / "state"
    talk = serving(state).__enter__()
    talk.make()
    talk.play(3)
    shown = talk.rank(np.eye(3))
    talk.written()
    if gone == "folder":
        shutil.rmtree(state)
    elif gone == "replaced":
        shutil.copytree(state, tmp_path / "copy")
        shutil.rmtree(state)
        (tmp_path / "copy").rename(state)
    else:
        (state / gone).unlink()
    body = {"round": shown["round"], "labels": {shown["ranking"][0]["id"]: 1}}
    assert talk.ask("POST", "/v1/rankers/shop/feedback", body, status=503) == "not_written"
    assert talk.ask("GET", "/readyz", status=503) == "not_ready"
    assert talk.ask("GET", "/v1/rankers/shop")["version"] == 3
    talk.service._close_task.cancel()
    talk.crash()
