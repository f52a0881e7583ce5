"""Keys: what is sealed is opened by any of them, and by nobody without them; files are changed and read again."""

import stat
from datetime import date

import pytest
from click.testing import CliRunner

from ranktron.cli.main import cli
from ranktron.errors import DataError
from ranktron.service import sealing_keys
from ranktron.service.sealing_keys import SealingKeys, StoredSealingKeys, change_keys, new_key, read_keys, write_keys
from ranktron.store.errors import RequestError

DAY = date(2026, 1, 1)
KEY = new_key("active", DAY)


def refused(keys, text, most=10_000):
    with pytest.raises(RequestError) as error:
        keys.open(text, most)
    return error.value.status, error.value.code


def test_tampered_characters_at_every_position_are_refused():
    keys = SealingKeys([KEY])
    for length in (0, 1, 2, 40):  # all three ends that base64 has
        content = bytes(range(length))
        sealed = keys.seal(content)
        assert keys.open(sealed, 10_000) == content
        for place, character in enumerate(sealed):
            for other in ("A", "B", "_", "=", "\n", "é", "\ud800"):
                if other != character:
                    assert refused(keys, sealed[:place] + other + sealed[place + 1 :])[0] == 422
            assert refused(keys, sealed[:place])[0] == 422
            assert refused(keys, sealed[:place] + sealed[place + 1 :])[0] == 422
            assert refused(keys, f"{sealed[:place]} {sealed[place:]}")[0] == 422
        assert refused(keys, sealed + "A")[0] == 422


def test_tampered_bits_at_every_position_are_refused():
    import base64

    keys = SealingKeys([KEY])
    sealed = base64.urlsafe_b64decode(keys.seal(b"the round"))
    for place in range(8 * len(sealed)):
        changed = bytearray(sealed)
        changed[place // 8] ^= 1 << place % 8
        code = refused(keys, base64.urlsafe_b64encode(bytes(changed)).decode())
        assert code == (422, "unknown_key" if place < 40 else "bad_carry")


def test_the_content_is_hidden_and_never_sealed_the_same_way():
    keys = SealingKeys([KEY])
    assert len({keys.seal(b"secret" * 20) for _ in range(100)}) == 100


def test_what_is_too_long_is_not_looked_at():
    keys = SealingKeys([KEY])
    sealed = keys.seal(b"x")
    assert keys.open(sealed, len(sealed)) == b"x"
    assert refused(keys, sealed, len(sealed) - 1) == (413, "carry_too_large")


def test_old_and_next_keys_only_open():
    old, following = new_key("old", DAY), new_key("next", DAY)
    keys = SealingKeys([old, KEY, following])
    for key in (old, following):
        sealed = SealingKeys([key._replace(state="active")]).seal(b"round")
        assert keys.open(sealed, 1000) == b"round"
        assert refused(SealingKeys([KEY]), sealed) == (422, "unknown_key")
    assert SealingKeys([KEY]).open(keys.seal(b"round"), 1000) == b"round"


def test_a_key_with_the_id_of_another_opens_nothing():
    sealed = SealingKeys([KEY]).seal(b"round")
    assert refused(SealingKeys([KEY._replace(secret=bytes(32))]), sealed) == (422, "bad_carry")


def test_a_key_is_used_up(monkeypatch):
    monkeypatch.setattr(sealing_keys, "MAX_SEALED", 3)
    keys = SealingKeys([KEY])
    for _ in range(3):
        keys.seal(b"")
    with pytest.raises(RequestError, match="ranktron keys"):
        keys.seal(b"")


def test_a_file_is_read_again_and_one_that_makes_no_sense_is_not(tmp_path, caplog):
    path = tmp_path / "keys"
    write_keys(path, [KEY])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    keys = StoredSealingKeys(path)
    before = keys.seal(b"before")
    write_keys(path, change_keys(read_keys(path), DAY, 8, prepare=False))
    keys.reload()
    after = keys.seal(b"after")
    assert (keys.open(before, 1000), keys.open(after, 1000), keys.sealed) == (b"before", b"after", 1)
    assert refused(SealingKeys([KEY]), after) == (422, "unknown_key")
    path.write_text("active nonsense\n")
    keys.reload()
    assert keys.open(after, 1000) == b"after"
    assert "line 1 is not a key" in caplog.text
    assert "nonsense" not in caplog.text


@pytest.mark.parametrize("content", ["", "# none\n", f"{KEY.line}\n{KEY._replace(id='00000000').line}\n", "\xff"])
def test_a_file_without_one_active_key_is_refused(tmp_path, content):
    path = tmp_path / "keys"
    path.write_text(content, "latin-1")
    with pytest.raises(DataError, match="keys"):
        StoredSealingKeys(path)


def test_two_keys_with_one_id_are_refused():
    with pytest.raises(DataError, match="unique ids"):
        SealingKeys([KEY, KEY._replace(state="old", secret=bytes(32))])


def test_a_change_in_two_steps():
    first = change_keys([], DAY, 8, prepare=True)  # there is none that could seal
    assert [key.state for key in first] == ["active"]
    prepared = change_keys(first, DAY, 8, prepare=True)
    assert change_keys(prepared, DAY, 8, prepare=True) == prepared
    active, following = prepared
    assert (active, following.state) == (first[0], "next")
    changed = change_keys(prepared, date(2026, 1, 5), 8, prepare=False)
    assert [(key.state, key.id, key.day.day) for key in changed] == [("active", following.id, 5), ("old", active.id, 5)]
    assert active.id in {key.id for key in change_keys(changed, date(2026, 1, 13), 8, prepare=True)}
    assert active.id not in {key.id for key in change_keys(changed, date(2026, 1, 14), 8, prepare=True)}


def test_the_command(tmp_path):
    path = str(tmp_path / "carry.keys")
    for expected in (["active"], ["active", "old"]):
        done = CliRunner().invoke(cli, ["keys", path, "--json"])
        assert done.exit_code == 0, done.output
        assert [key.state for key in read_keys(tmp_path / "carry.keys")] == expected
    assert CliRunner().invoke(cli, ["keys", path, "--prepare"]).output.count("next") == 1
    secrets = [line.split()[-1] for line in (tmp_path / "carry.keys").read_text().splitlines()]
    assert not any(secret in done.output for secret in secrets)
