"""Training on files by processes: what they read, what passes through the scheduler, and what happens when they die."""

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ranktron import DataError, Model, load
from ranktron.dask.training import inspect_parts, train_parts
from ranktron.data.io import write
from ranktron.data.io.parts import divide_files
from ranktron.data.synthetic import WebSearch
from ranktron.learners.checks import same
from ranktron.learners.schedule import Schedule
from ranktron.training.fit import TrainingPlan, train
from ranktron.training.workers import LocalWorkers
from tests.plans import plan_of

pytest.importorskip("distributed")

from ranktron.dask import Cluster

LISTS = WebSearch(features=30, documents=40).rounds(300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    for k in range(6):
        write(LISTS[50 * k : 50 * k + 50], path / f"part-{k}.rounds")
    return path


def trained(client, folder, **options):
    data = inspect_parts(divide_files(f"{folder}/part-*.rounds"), Cluster(client), shards=4)
    schedule = Schedule(3, 1, options.pop("shuffle", True))
    plan = plan_of(options, "hinge", {"average": True}, schedule, scaling="standard")
    return train_parts(plan, data, **{"shards": 4} | options)


def test_no_document_passes_through_the_client(client, folder):
    size = sum(part.stat().st_size for part in folder.iterdir())
    sent = []
    original = client._send_to_scheduler

    def watched(message):
        sent.append(len(_pickled(message)))
        return original(message)

    client._send_to_scheduler = watched
    try:
        trained(client, folder)
    finally:
        client._send_to_scheduler = original
    vectors = 2 * 30 * 8  # weights and the sums behind their mean
    tasks = 6 * 3 + 6 + 3 * 10 * 4
    assert 0 < sum(sent) < size / 2
    assert sum(sent) < tasks * (12 * vectors + 6000)  # a task: a model, a state, a recipe


def _pickled(message):
    import cloudpickle

    return cloudpickle.dumps(message)


@pytest.mark.slow
def test_a_worker_that_is_killed_in_the_middle_of_a_pass_changes_nothing(client, folder):
    expected = trained(client, folder).model
    killed = []

    def kill_one(count):
        if not killed and count:
            pids = client.run(os.getpid)
            victim = sorted(pids.values())[0]
            killed.append(victim)
            threading.Timer(0.0, os.kill, (victim, signal.SIGKILL)).start()

    found = trained(client, folder, progress=kill_one).model
    assert killed
    assert found.to_bytes() == expected.to_bytes()
    client.wait_for_workers(2, timeout=120)


SCHEDULER = """
import sys
from distributed import LocalCluster
options = {"processes": False, "protocol": "tcp", "dashboard_address": ":0"}
print(LocalCluster(n_workers=1, threads_per_worker=1, **options).scheduler_address, flush=True)
sys.stdin.read()
"""


def test_a_scheduler_that_goes_away_is_one_error_and_the_last_pass_is_continued_to_the_bit(folder, tmp_path):
    import distributed

    def go(workers, epochs, **options):
        data = inspect_parts(divide_files(f"{folder}/part-*.rounds"), workers, shards=4)
        plan = plan_of(options, "hinge", {"average": True}, Schedule(epochs, 1))
        return train_parts(plan, data, shards=4, **options)

    def save_and_kill(model):
        model.save(tmp_path / "my.model")
        scheduler.kill()
        scheduler.wait()

    pipes = {"stdout": subprocess.PIPE, "stdin": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", SCHEDULER], text=True, **pipes) as scheduler:
        address = scheduler.stdout.readline().strip()
        try:
            with distributed.Client(address, timeout="2s") as lost, pytest.raises(DataError) as error:
                go(Cluster(lost), 3, save=save_and_kill)
        finally:
            scheduler.kill()
    assert "the connection to the Dask scheduler is lost" in str(error.value)
    first = load(tmp_path / "my.model")
    assert first.record["epoch"] == 1
    with ThreadPoolExecutor(2) as executor:
        here = LocalWorkers(executor)
        assert go(here, 2, start=first).model.to_bytes() == go(here, 3).model.to_bytes()


def test_sequential_parts_on_a_cluster_are_one_machine_to_the_bit(client, folder):
    found = trained(client, folder, mode="sequential", shuffle=False)
    whole = train(TrainingPlan("hinge", {"average": True}, Schedule(3, 1, shuffle=False), scaling="standard"), LISTS)
    assert same(found.model.state, whole.model.state)


def test_a_damaged_part_is_named(client, folder, tmp_path):
    for k in range(2):
        (tmp_path / f"part-{k}.rounds").write_bytes((folder / f"part-{k}.rounds").read_bytes())
    content = bytearray((tmp_path / "part-1.rounds").read_bytes())
    content[len(content) // 2] ^= 0xFF
    (tmp_path / "part-1.rounds").write_bytes(content)
    with pytest.raises(DataError, match=r"part-1\.rounds: this store is damaged"):
        trained(client, tmp_path)


@pytest.mark.slow
def test_the_command_trains_on_a_pattern(folder, client, tmp_path):
    address, out = client.scheduler.address, tmp_path / "my.model"
    command = [sys.executable, "-m", "ranktron", "train", f"{folder}/part-*.rounds", "--algo", "hinge", "--epochs", "2"]
    command += ["--scale", "standard", "--set", "average=true", "--no-shuffle", "--model", str(out), "--json"]
    done = subprocess.run([*command, "--dask", address, "--mode", "sequential"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rounds"] == 600
    first = load(out)
    assert first.record["epoch"] == 2
    done = subprocess.run([*command, "--stream"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert Model.to_bytes(load(out)) == Model.to_bytes(first)
