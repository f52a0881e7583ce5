"""Kernels as other kernels call them: compiled as far as LLVM's code, which is linked into the caller.

numba makes of every kernel machine code with an entrance for Python. Of a kernel that another one calls it uses
neither: the caller is linked with the kernel's LLVM code, optimised and translated as a whole. So a kernel has a twin
for callers, whose LLVM code is neither optimised nor translated alone. First runs take less time.

This uses internals of numba, of the versions in `VERSIONS`. With others there are no twins, and all else is the same.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, compile_result

VERSIONS = frozenset((0, minor) for minor in range(61, 69))


def callee(kernel: Any) -> Any:
    """What other kernels call in place of a kernel: its twin.

    Parameters
    ----------
    kernel : Dispatcher
        What numba has made of a function. Its twin has a cache if it has one.
    """
    if numba.version_info[:2] not in VERSIONS:
        return kernel
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
    """What is kept on disk: LLVM code, in files of their own beside those of the machine code."""

    def get_filename_base(self, name: str, flags: str) -> str:
        return f"linked.{super().get_filename_base(name, flags)}"

    def reduce(self, result: Any) -> tuple[Any, ...]:
        described = result.fndesc
        described.typemap = described.calltypes = None  # as numba does: nobody needs them, and they may not be pickled
        code = result.library._final_module.as_bitcode()
        return result.library.name, code, described, result.environment, result.signature, result.reload_init

    def rebuild(self, context: Any, kept: tuple[Any, ...]) -> Any:
        name, code, described, environment, signature, reload_init = kept
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
