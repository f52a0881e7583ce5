import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir():
    """The folder of real data sets, or skip."""
    folder = os.environ.get("RANKTRON_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real data not found: point RANKTRON_DATA at the folder that holds it")
    return Path(folder)
