"""Settings from a file."""

import pytest

from ranktron import DataError
from ranktron.service.config import Config, read_config


def test_the_name_that_a_setting_had_still_counts(tmp_path):
    path = tmp_path / "ranktron.toml"
    path.write_text("heard = 3\n")
    assert read_config(path) == Config(received=3)
    path.write_text("received = 4\n")
    assert read_config(path).received == 4
    path.write_text("heard = 3\nreceived = 4\n")
    with pytest.raises(DataError, match="heard"):
        read_config(path)
