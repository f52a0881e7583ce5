"""Arguments that a kernel borrows."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

_BUILD: Any = cgutils


def borrow(array: Any) -> Any:
    """The same array, whose references a kernel does not count; also for the tuple of sparse rows.

    Counting takes an atomic instruction for every slice and every call, a tenth of a short round. Only for arguments,
    which the caller keeps alive; what a kernel allocates itself would never be freed. It must not be returned.
    """
    return array


def _borrow(_typing: Any, array: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, values[0])
        view.meminfo = _BUILD.get_null_value(view.meminfo.type)
        view.parent = _BUILD.get_null_value(view.parent.type)
        return view._getvalue()

    return array(array), generate


_borrowed: Any = intrinsic(_borrow)


def _of_either_kind(array):  # type: ignore[no-untyped-def]  # numba compares the names with those of what it returns
    if isinstance(array, types.BaseTuple):
        return lambda array: (_borrowed(array[0]), _borrowed(array[1]), _borrowed(array[2]))
    return lambda array: _borrowed(array)


overload(borrow, strict=False, inline="always")(_of_either_kind)
