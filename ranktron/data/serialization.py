"""Nested dicts of numbers, texts and arrays as bytes: a JSON header, the arrays, and a checksum.

The header holds the number of this format, the version of the package that wrote it, and the content. No pickle, no
time stamps: the same content and version always give the same bytes. Reading executes no code and refuses anything
unknown.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.data.files import other_format, package_version
from ranktron.errors import DataError

FORMAT = 2
_MAGIC = b"ranktron\n"
_DTYPES = ("<f8", "<f4", "<i8", "<i4", "|u1", "|b1")
_REFERENCE = "$array"
_MAX_DEPTH = 100  # of nested dicts and lists, so that whatever can be read can be written again


def serialize(content: Mapping[str, Any]) -> bytes:
    """Turns a nested dict into bytes.

    >>> deserialize(serialize({"w": np.array([1.0, 2.0]), "rounds": 3}))
    {'rounds': 3, 'w': array([1., 2.])}
    """
    arrays: list[npt.NDArray[Any]] = []
    tree = _without_arrays(content, arrays)
    specs = [{"dtype": a.dtype.str, "shape": list(a.shape)} for a in arrays]
    header = {"format": FORMAT, "version": package_version(), "arrays": specs, "content": tree}
    raw = json.dumps(header, sort_keys=True, allow_nan=False).encode("ascii")
    body = _MAGIC + struct.pack("<Q", len(raw)) + raw + b"".join(a.tobytes() for a in arrays)
    return body + struct.pack("<I", zlib.crc32(body))


def same(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    """Whether two nested dicts, such as the states of learners, are equal to the bit."""
    return serialize(one) == serialize(two)


def deserialize(data: bytes, name: str = "the file") -> dict[str, Any]:
    """Turns bytes back into the nested dict; anything that `serialize` cannot have written is an error."""
    check_magic(data, name)
    start = len(_MAGIC) + 8
    if len(data) < start + 4 or struct.unpack("<I", data[-4:])[0] != zlib.crc32(data[:-4]):
        raise DataError(f"{name} is damaged: its checksum does not fit; get a fresh copy")
    (length,) = struct.unpack("<Q", data[len(_MAGIC) : start])
    try:
        header = json.loads(data[start : start + length])
        if not isinstance(header, dict):
            raise TypeError("its header is not a dict")
        if header.get("format") != FORMAT:
            writer = header["version"] if "format" in header else None
            raise other_format(name, writer, "use that version, or train the model again")
        arrays = _read_arrays(header["arrays"], data[start + length : -4])
        content = _with_arrays(header["content"], arrays)
        if not isinstance(content, dict):
            raise DataError(f"{name} is not a Ranktron model: its content is not a dict")
        return content
    except (KeyError, TypeError, IndexError, ValueError, OverflowError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name} is not a Ranktron model: {error}") from None


def check_magic(data: bytes, name: str) -> None:
    """Refuses bytes that do not begin with the magic number of `serialize`."""
    if not data.startswith(_MAGIC):
        raise DataError(f"{name} is not a Ranktron model: `ranktron train --model` and `save` write one")


def header_size(data: bytes) -> tuple[int, int]:
    """The bytes of the header, and an upper bound on its number of values, without parsing it, which may take long.

    >>> header_size(serialize({"w": np.array([1.0, 2.0]), "rounds": 3}))[1]
    6
    """
    start = len(_MAGIC) + 8
    length = int.from_bytes(data[len(_MAGIC) : start], "little")
    return length, data.count(b",", start, start + length) + 1


def _without_arrays(value: Any, arrays: list[npt.NDArray[Any]]) -> Any:
    if isinstance(value, np.ndarray):
        plain = np.ascontiguousarray(value)
        little = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        if little.dtype.str not in _DTYPES:
            raise DataError(f"cannot store an array of {little.dtype}")
        arrays.append(little)
        return {_REFERENCE: len(arrays) - 1}
    if isinstance(value, Mapping):
        return {str(key): _without_arrays(value[key], arrays) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_without_arrays(item, arrays) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _read_arrays(specs: list[dict[str, Any]], data: bytes) -> list[npt.NDArray[Any]]:
    arrays = []
    position = 0
    for spec in specs:
        if spec["dtype"] not in _DTYPES:
            raise DataError(f"the file holds an array of unknown type {spec['dtype']!r}")
        dtype = np.dtype(spec["dtype"])
        if min(spec["shape"], default=0) < 0:
            raise DataError("the file holds an array whose size is negative")
        count = int(np.prod(spec["shape"], dtype=np.int64))
        arrays.append(np.frombuffer(data, dtype, count, position).reshape(spec["shape"]).copy())
        position += count * dtype.itemsize
    if position != len(data):
        raise DataError("the file holds more than its header says")
    return arrays


def _with_arrays(value: Any, arrays: list[npt.NDArray[Any]], depth: int = 0) -> Any:
    if depth > _MAX_DEPTH:
        raise DataError(f"the file holds more than {_MAX_DEPTH} nested dicts and lists")
    if isinstance(value, dict):
        if set(value) == {_REFERENCE}:
            return arrays[value[_REFERENCE]]
        return {key: _with_arrays(item, arrays, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_arrays(item, arrays, depth + 1) for item in value]
    return value
