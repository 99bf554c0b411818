"""How numba compiles the kernels.

Python calls kernels. Kernels consist of parts, functions that only compiled code calls. By default
numba optimises each part, generates machine code for it, and repeats both in every function that
calls it, level by level. Here parts are only translated; each kernel is optimised once, as a whole.
"""

import gc
import sys
from ctypes import PYFUNCTYPE, c_void_p, cast
from typing import Any, final

from numba.core import config as numba_config
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.untyped_passes import IRProcessing

_config: Any = numba_config  # filled at run time, so type checkers see no attributes
# Optimisation level of plain kernels.
_FEW_PASSES = 1
# Only compiled code can call a part; Python gets a SystemError.
_refuse = PYFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)(lambda *arguments: 0)


@final
class _Part(JITCodeLibrary):
    """Unoptimised code, to be linked into a kernel."""

    def _optimize_final_module(self) -> None:
        """Do nothing: the kernel is optimised as a whole."""

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return cast(_refuse, c_void_p).value or 0

    @property
    def codegen(self) -> "_Part":
        """The object that numba calls ``set_env`` on: this one, since a part has no address."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing: parts need no environment."""


@final
@register_pass(mutates_CFG=False, analysis_only=True)
class _AsPart(AnalysisPass):
    """Prepare the library that numba fills."""

    _name = "as_part"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


@final
class PartCompiler(CompilerBase):
    """The compiler of parts."""

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_AsPart, IRProcessing)
        passes.finalize()
        return [passes]


@final
class Announcer(event.Listener):
    """Listener that announces on standard error that a kernel is about to be compiled.

    Compilation creates many small objects that live until its end. The garbage collector would
    scan them again and again, so it is off meanwhile. Plain kernels get fewer optimisation passes,
    which give equally fast code in less time. numba's lock keeps other compilations out.
    """

    def __init__(self) -> None:
        self._kernels: dict[Any, tuple[str, int]] = {}
        self._plain: set[Any] = set()
        self._collects, self._level = False, _config.OPT
        event.register("numba:compile", self)

    def watch(self, kernel: Any, title: str, seconds: int, plain: bool) -> None:
        """Announce this kernel the first time it has to be compiled."""
        self._kernels[kernel] = title, seconds
        if plain:
            self._plain.add(kernel)

    def titles(self) -> dict[str, Any]:
        """Return the kernels that are watched, by their titles."""
        return {title: kernel for kernel, (title, _) in self._kernels.items()}

    def on_start(self, event: Any) -> None:
        kernel = event.data["dispatcher"]
        if kernel not in self._kernels:
            return
        title, seconds = self._kernels[kernel]
        self._collects, self._level = gc.isenabled(), _config.OPT
        gc.disable()
        if kernel in self._plain:
            _config.OPT = type(_config.OPT)(_FEW_PASSES)
        if seconds and sys.stderr is not None:
            takes = f"this takes about {seconds} seconds"
            often = "once for this machine" if kernel.stats.cache_path else "for this run alone"
            line = f"attnmargin: compiling the {title}, {often}; {takes}\n"
            sys.stderr.write(line)
            sys.stderr.flush()
        self._kernels[kernel] = title, 0

    def on_end(self, event: Any) -> None:
        if event.data["dispatcher"] not in self._kernels:
            return
        _config.OPT = self._level
        if self._collects:
            gc.enable()
