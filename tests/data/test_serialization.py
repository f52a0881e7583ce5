"""Archives say in which format they are and which version wrote them; another format is refused."""

import json
import struct
import zlib

import numpy as np
import pytest

import ranktron
from ranktron.data.serialization import deserialize, serialize
from ranktron.errors import DataError

CONTENT = {"w": np.array([1.0, 2.0]), "rounds": 3}


def with_header(change):
    raw = serialize(CONTENT)
    (length,) = struct.unpack("<Q", raw[9:17])
    text = json.dumps(change(json.loads(raw[17 : 17 + length]))).encode()
    body = raw[:9] + struct.pack("<Q", len(text)) + text + raw[17 + length : -4]
    return body + struct.pack("<I", zlib.crc32(body))


def test_an_archive_names_its_format_and_its_writer():
    headers = []
    assert deserialize(with_header(lambda header: headers.append(header) or header))["rounds"] == 3
    assert (headers[0]["format"], headers[0]["version"]) == (2, ranktron.__version__)


@pytest.mark.parametrize(
    ("head", "writer"),
    [
        ({"format": 3, "version": "9.9"}, "ranktron 9.9"),
        ({"version": 1}, "a ranktron before 0.3"),
        ({}, "a ranktron before 0.3"),
    ],
)
def test_another_format_is_refused_with_the_version_that_wrote_it(head, writer):
    data = with_header(lambda header: {"arrays": header["arrays"], "content": header["content"], **head})
    message = f"a.model was written by {writer}, and ranktron {ranktron.__version__} cannot read its format: use that"
    with pytest.raises(DataError, match=message):
        deserialize(data, "a.model")


@pytest.mark.parametrize("header", [[], "x", 7, None])
def test_a_header_that_is_no_dict_is_refused(header):
    with pytest.raises(DataError, match="is not a Ranktron model: its header is not a dict"):
        deserialize(with_header(lambda _: header), "a.model")
