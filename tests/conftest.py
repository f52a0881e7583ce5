import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

# The first example of a property pays for compiling its kernels: time says nothing here.
settings.register_profile("ranktron", deadline=None, derandomize=True)
settings.load_profile("ranktron")


def pytest_addoption(parser):
    parser.addoption("--write-docs", action="store_true", help="write the tables that docs take from the code")


@pytest.fixture(scope="session")
def data_dir():
    """The folder of real data sets, or skip."""
    folder = os.environ.get("RANKTRON_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real data not found: point RANKTRON_DATA at the folder that holds it")
    return Path(folder)


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium that keeps to this machine, or skip. Open pages with `browser.new_page()`."""
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
