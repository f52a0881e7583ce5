import json
import subprocess
import sys


def test_an_algorithm_and_the_service_are_compiled_in_processes_of_their_own():
    command = [sys.executable, "-m", "ranktron", "compile", "--algo", "minimax", "--service", "--jobs", "2"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found["tasks"]) == ["reading", "minimax", "service"]
    assert found["seconds"] > max(found["tasks"].values())


def test_an_algorithm_that_does_not_exist_is_refused():
    command = [sys.executable, "-m", "ranktron", "compile", "--algo", "none"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "'none' is not one of 'slam'" in done.stderr
