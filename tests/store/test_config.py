"""Settings from a file."""

import msgspec
import pytest

from ranktron import DataError
from ranktron.service.config import Config, read_settings


def test_the_environment_counts_before_the_file_and_the_file_before_the_default(tmp_path):
    path = tmp_path / "ranktron.toml"
    path.write_text("max_open = 5\nrate = 2.5\n")
    environment = {"RANKTRON_MAX_OPEN": "7", "RANKTRON_MAX_BATCH": "9", "RANKTRON_LOG_REQUESTS": "true", "HOME": "/"}
    assert read_settings(path, environment) == Config(max_open=7, rate=2.5, max_batch=9, log_requests=True)
    assert read_settings(path, {}) == Config(max_open=5, rate=2.5)
    assert read_settings(None, {}) == Config()


def test_every_setting_can_be_in_the_environment():
    for each in msgspec.structs.fields(Config):
        default = getattr(Config(), each.name)
        name = {"tokens": "TOKENS_FILE"}.get(each.name, each.name.upper())
        given = ",".join(default) if isinstance(default, list) else str(default)
        assert getattr(read_settings(None, {f"RANKTRON_{name}": given}), each.name) == default
    assert read_settings(None, {"RANKTRON_PROXIES": "10.0.0.1, 10.0.0.2"}).proxies == ["10.0.0.1", "10.0.0.2"]
    assert read_settings(None, {"RANKTRON_TOKENS": "a rank sha256:00"}).tokens == ""


def test_paths_begin_where_they_are_written(tmp_path):
    path = tmp_path / "ranktron.toml"
    path.write_text('tokens = "tokens"\ncarry_keys = "/etc/keys"\n')
    assert read_settings(path, {}).tokens == str(tmp_path / "tokens")
    assert read_settings(path, {}).carry_keys == "/etc/keys"
    assert read_settings(path, {"RANKTRON_TOKENS_FILE": "here"}).tokens == "here"


@pytest.mark.parametrize(
    ("name", "value"), [("MAX_OPEN", "many"), ("MAX_OPEN", "0"), ("LOG_FORMAT", "xml"), ("RATE", "-1")]
)
def test_a_variable_that_makes_no_sense_is_named(name, value):
    with pytest.raises(DataError, match=f"RANKTRON_{name}: "):
        read_settings(None, {f"RANKTRON_{name}": value})
