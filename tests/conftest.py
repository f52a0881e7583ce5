import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# The first example of a property pays for compiling its kernels: time says nothing here.
settings.register_profile("ranktron", deadline=None, derandomize=True)
settings.load_profile("ranktron")

CLAIMS, COLLECTED = pytest.StashKey[list](), pytest.StashKey[set]()


def pytest_addoption(parser):
    parser.addoption("--write-docs", action="store_true", help="write the tables that docs take from the code")
    parser.addoption("--write-claims", metavar="FILE", help="write which test checks which claim of a paper, as JSON")


@pytest.hookimpl(tryfirst=True)  # before any test is deselected: a check that is not run today is still there
def pytest_collection_modifyitems(config, items):
    """Notes which test checks which claim, and which files were collected."""
    config.stash[CLAIMS] = [
        [*mark.args, item.nodeid.partition("[")[0]] for item in items for mark in item.iter_markers("claim")
    ]
    config.stash[COLLECTED] = {item.path for item in items}
    if path := config.getoption("--write-claims"):
        Path(path).write_text(json.dumps(config.stash[CLAIMS]))


@pytest.fixture(scope="session")
def data_dir():
    """The folder of real data sets, or skip."""
    folder = os.environ.get("RANKTRON_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real data not found: point RANKTRON_DATA at the folder that holds it")
    return Path(folder)


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium that keeps to this machine, or skip. Open pages with `browser.new_page()`.

    It ends with the module: while it is there, an event loop runs in this thread, and no other can.
    """
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no browser: install chromium")
    from playwright.sync_api import sync_playwright

    quiet = ["gpu", "quic", "background-networking", "component-update", "sync", "default-apps"]
    arguments = ["--no-sandbox", "--no-first-run", *(f"--disable-{what}" for what in quiet)]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def claim_marks(request, tmp_path_factory):
    """[[paper, item, test], ...] of the whole suite, whatever part of it is run today."""
    tests, config = Path(__file__).parent, request.config
    if config.stash[COLLECTED] >= set(tests.glob("**/test_*.py")):
        return config.stash[CLAIMS]
    path = tmp_path_factory.mktemp("claims") / "claims.json"
    options = ["--collect-only", "-qq", "-p", "no:cacheprovider", "-p", "no:xdist", f"--write-claims={path}"]
    subprocess.run([sys.executable, "-m", "pytest", *options, tests], cwd=tests.parent, check=True, capture_output=True)
    return json.loads(path.read_text())


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Runs a command in an empty folder: (exit code, standard output, standard error)."""
    from ranktron.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def run(*arguments):
        with pytest.raises(SystemExit) as exit:
            main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return exit.value.code, out, err

    return run
