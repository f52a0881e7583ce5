"""No command, and no process that it starts, imports from the current folder."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ranktron
from ranktron.cli.main import _COMMANDS
from ranktron.data.io import write
from ranktron.data.synthetic import Separable
from ranktron.processes import process_environment, ranktron_command

MODULES = (
    "numba", "numpy", "scipy", "llvmlite", "ranktron", "click", "rich", "json", "inspect", "runpy", "multiprocessing",
    "socket", "threading", "uvicorn", "starlette", "msgspec", "distributed", "dask", "tornado", "pyarrow",
    "sitecustomize",
)  # fmt: skip


@pytest.fixture
def run(tmp_path):
    """Runs a command in a folder of modules that leave a file when they are imported."""
    folder, caught = tmp_path / "traps", tmp_path / "caught"
    folder.mkdir()
    caught.mkdir()
    for name in MODULES:
        (folder / f"{name}.py").write_text(f"open({str(caught / name)!r}, 'w').close()\nraise ImportError({name!r})\n")
    write(Separable(features=5).rounds(12), tmp_path / "lists.rounds")
    environment = {**os.environ, "PYTHONPATH": str(Path(ranktron.__file__).parents[1])}
    script = tmp_path / "bin" / "ranktron"  # as installed: its own folder is in sys.path, not the current one
    script.parent.mkdir()
    script.write_text("from ranktron.cli import main\nif __name__ == '__main__':\n    main()\n")
    command = [sys.executable, str(script)]

    def run(*arguments, stop_at=None):
        process = subprocess.Popen(
            [*command, *map(str, arguments)],
            cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        with process:
            if stop_at is not None:
                stop_at(process)
                process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=300)
        assert [path.name for path in caught.iterdir()] == [], out
        return process.returncode, out

    return run


@pytest.mark.parametrize("name", _COMMANDS)
def test_no_command_imports_from_the_current_folder(run, name):
    code, out = run(name, "--help")
    assert code == 0, out


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "lists.rounds", "--algo", "hinge", "--model", "my.model"],
        ["compile", "--algo", "hinge", "--service", "--json"],
        ["train", "lists.rounds", "--algo", "hinge", "--dask", "local", "--model", "my.model"],
    ],
)
def test_no_process_of_a_command_imports_from_the_current_folder(run, tmp_path, arguments):
    arguments = [str(tmp_path / each) if "." in each else each for each in arguments]
    code, out = run(*arguments)
    assert code == 0, out


def test_no_worker_of_a_server_imports_from_the_current_folder(run, tmp_path):
    def wait_for_workers(process):
        children, deadline = Path(f"/proc/{process.pid}/task/{process.pid}/children"), time.monotonic() + 120.0
        while time.monotonic() < deadline and process.poll() is None:
            for child in children.read_text().split():
                if "/__main__.py" in (command := Path(f"/proc/{child}/cmdline").read_text()) and "--shared" in command:
                    time.sleep(2.0)  # by then it has imported what it needs
                    return
            time.sleep(0.1)
        raise AssertionError("no worker was started")

    run("serve", "--dir", tmp_path / "state", "--port", "0", "--workers", "2", stop_at=wait_for_workers)


def test_processes_have_the_package_of_this_one_and_no_relative_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", ".", "src", str(tmp_path)]))
    (tmp_path / "ranktron.py").write_text("raise ImportError('another package')")
    assert process_environment()["PYTHONPATH"] == str(tmp_path)
    command = ranktron_command("info", "lists.rounds", "--json")
    write(Separable(features=5).rounds(12), tmp_path / "lists.rounds")
    done = subprocess.run(command, cwd=tmp_path, env=process_environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["queries"] == 12
