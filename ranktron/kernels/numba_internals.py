"""Faster kernels by undocumented parts of numba, which no other file uses. Without this one all results are the same.

Importing it fails if the version of numba is unknown, or if it lacks a name that is used here.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, compile_result
from numba.core.dispatcher import Dispatcher
from numba.extending import lower_builtin, type_callable
from numba.np import linalg

Code = Callable[..., Any]
VERSIONS = frozenset((0, minor) for minor in range(61, 69))
ATTRIBUTES: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (JITCodeLibrary, ("_finalize_dynamic_globals", "_finalize_final_module", "_optimize_final_module")),
    (Compiler, ("compile_extra",)),
    (CompileResultCacheImpl, ("get_filename_base", "reduce", "rebuild")),
    (FunctionCache, ("_impl_class",)),
    (Dispatcher, ("get_call_template", "get_overload")),
    (BaseContext, ("get_executable", "make_array")),
    (cgutils, ("for_range_slice", "get_null_value")),
    (linalg, ("ensure_blas",)),
    (types, ("unliteral",)),
)
"""What is called or replaced of them."""
OPTIONS = {"no_cfunc_wrapper": True}  # no kernel is passed to C: a tenth less to compile
_FRAME = 1 << 15  # slots of 8 bytes; memory that is not used costs nothing
_LINE = 64  # bytes of a cache line
_BUILD: Any = cgutils

if numba.version_info[:2] not in VERSIONS:
    raise ImportError("unknown version")
for _owner, _names in ATTRIBUTES:
    for _name in _names:
        if not hasattr(_owner, _name):
            raise ImportError(f"there is no {_owner.__name__}.{_name}")


def skip_scipy_linalg() -> None:
    """Imports numba's array functions without scipy.linalg, which takes a sixth of the start of a command.

    numba imports it only to check that it is installed. Kernels that use it import it.
    """
    if "numba.np.arraymath" in sys.modules:
        return
    check, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        arraymath: Any = import_module("numba.np.arraymath")
        arraymath.ensure_blas = check
    finally:
        linalg.ensure_blas = check


# Kernels that other kernels call. numba optimises and translates each alone, with an entry point for Python, and again
# as a part of its callers. A twin for the callers, compiled only as far as LLVM's code, saves a third of a first run.


def link_callers(kernel: Any) -> None:
    """Gives other kernels the twin to call, with numbers of any value.

    A variable that starts as 0 has the type "the number 0" until numba has seen the loop that changes it: a callee
    would be compiled for that, and then again for any number.
    """
    kind = type(kernel)

    def get_call_template(args: Any, kws: Any) -> Any:
        return kind.get_call_template(twin_of(kernel), tuple(map(types.unliteral, args)), kws)

    # Python allocates frames in blocks of 16 KiB. Compiling recurses deeply, and a loop whose calls begin at the end of
    # a block maps and unmaps one in each call: a quarter of a first run. A large frame starts a block with space.
    get_call_template.__code__ = get_call_template.__code__.replace(co_stacksize=_FRAME)
    kernel.get_call_template = get_call_template
    kernel.get_overload = lambda signature: kind.get_overload(twin_of(kernel), signature)


def twin_of(kernel: Any) -> Any:
    """What other kernels call in place of a kernel; it is cached on disk if the kernel is."""
    twin = vars(kernel).get("twin")
    if twin is None:
        options = {**kernel.targetoptions, "no_cpython_wrapper": True}
        twin = kernel.twin = numba.jit(pipeline_class=_LinkedCompiler, **options)(kernel.py_func)
        if kernel.stats.cache_path is not None:
            twin._cache = _LinkedCache(kernel.py_func)
    return twin


class _LinkedLibrary(JITCodeLibrary):
    """The code of a twin: it can be linked, and cannot be run."""

    def _optimize_final_module(self) -> None:
        pass  # the caller's is optimised

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> _LinkedLibrary:
        return self

    def set_env(self, name: str, env: Any) -> None:
        pass  # Python objects that the code may need: kernels need none


class _LinkedCompiler(Compiler):
    def compile_extra(self, function: Any) -> Any:
        self.state.library = _LinkedLibrary(self.state.targetctx.codegen(), function.__qualname__)
        return super().compile_extra(function)


class _LinkedResults(CompileResultCacheImpl):
    """Caches LLVM code, in files of its own beside those of the machine code."""

    def get_filename_base(self, name: str, flags: str) -> str:
        return f"linked.{super().get_filename_base(name, flags)}"

    def reduce(self, result: Any) -> tuple[Any, ...]:
        described = result.fndesc
        described.typemap = described.calltypes = None  # as numba does: they are not needed, and may not be pickled
        code = result.library._final_module.as_bitcode()
        return result.library.name, code, described, result.environment, result.signature, result.reload_init

    def rebuild(self, context: Any, stored: tuple[Any, ...]) -> Any:
        name, code, described, environment, signature, reload_init = stored
        for prepare in reload_init:
            prepare()
        library = _LinkedLibrary(context.codegen(), name)
        library._final_module = llvm.parse_bitcode(code)
        library._finalize_final_module()
        return compile_result(
            target_context=context, typing_context=context.typing_context, library=library, fndesc=described,
            entry_point=context.get_executable(library, described, environment), environment=environment,
            signature=signature, objectmode=False, lifted=(), reload_init=reload_init, referenced_envs=(),
        )  # fmt: skip


class _LinkedCache(FunctionCache):
    _impl_class = _LinkedResults


# Functions that are LLVM instructions in kernels. An `intrinsic` would compile one more function for each of them.


def instructions_for(function: Code, signature_of: Code) -> Callable[[Code], Code]:
    """Registers the generator of the instructions of a function, whose parameters `signature_of` has as well."""

    def register(generate: Code) -> Code:
        type_callable(function)(lambda _context: signature_of)
        lower_builtin(function, types.VarArg(types.Any))(generate)
        return generate

    return register


def use_instructions(borrow: Code, prefetch: Code) -> None:
    """Gives kernels instructions for these functions of `memory`."""
    instructions_for(borrow, lambda array: array(array))(_borrow)
    instructions_for(prefetch, lambda array, start, stop: types.void(array, types.int64, types.int64))(_prefetch)


def _borrow(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    kind, array = signature.args[0], values[0]
    if isinstance(kind, types.Array):
        return _uncounted(context, builder, kind, array)
    for i, part in enumerate(kind):
        uncounted = _uncounted(context, builder, part, builder.extract_value(array, i))
        array = builder.insert_value(array, uncounted, i)
    return array


def _uncounted(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    view = context.make_array(kind)(context, builder, array)
    view.meminfo = _BUILD.get_null_value(view.meminfo.type)
    view.parent = _BUILD.get_null_value(view.parent.type)
    return view._getvalue()


def _prefetch(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    kind, (array, start, stop) = signature.args[0], values
    data, in_line = context.make_array(kind)(context, builder, array).data, _LINE // (kind.dtype.bitwidth // 8)
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    fetch = builder.module.declare_intrinsic(
        "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    )
    how = number(0), number(3), number(1)  # to read, to keep in all caches, data and not code
    with _BUILD.for_range_slice(builder, start, stop, start.type(in_line)) as (index, _):
        builder.call(fetch, [builder.bitcast(builder.gep(data, [index]), byte), *how])
    return context.get_dummy_value()
