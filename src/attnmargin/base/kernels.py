"""The compiler's options, and operations on small arrays, compiled with numba.

numba's cache watches one file at a time: after a change here, ``make test`` drops what it holds of
the files that use this one.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering
import os

class _Part(JITCodeLibrary):
    def _optimize_final_module(self): 
        pass
    def _finalize_final_module(self):
        self._finalized = True
    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        return 0
    @property
    def codegen(self): return self
    def set_env(self, name, env): pass

@register_pass(mutates_CFG=True, analysis_only=False)
class _Lower(NativeLowering):
    _name = "lower_part"
    def run_pass(self, state):
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().run_pass(state)

class _Compiler(CompilerBase):
    def define_pipelines(self):
        pm = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pm.passes = [(_Lower if p is NativeLowering else p, d) for p, d in pm.passes]
        pm._finalized=False
        pm.finalize()
        return [pm]

_options: Any = {"nogil": True, "error_model": "numpy"}
_options["fastmath"] = {"reassoc", "contract", "nsz"}
_inner: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
if os.environ.get("PART","1")=="1": _inner["pipeline_class"]=_Compiler
jit = njit(**_options, **_inner)
# For what runs once per iteration: handing the arrays over would cost as much as the work.
jit_inline = njit(forceinline=True, **_options, **_inner)
kernel = njit(cache=True, no_cfunc_wrapper=True, **_options)


@jit
def dot(x: Floats, y: Floats, size: int) -> float:
    total = 0.0
    for i in range(size):
        total += x[i] * y[i]
    return total


@jit
def add(x: Floats, factor: float, y: Floats, size: int) -> None:
    for i in range(size):
        x[i] += factor * y[i]


@jit
def copy(out: Floats, x: Floats) -> None:
    for i in range(x.size):
        out[i] = x[i]


@jit
def copy_rows(out: Floats, x: Floats) -> None:
    for i in range(x.shape[0]):
        copy(out[i], x[i])


@jit
def mix(out: Floats, weight: Floats, rows: Floats) -> None:
    """out += Σ_c weight_c rows_c, four rows at a time to spare memory traffic."""
    fours = weight.size - weight.size % 4
    for c in range(0, fours, 4):
        w0, w1, w2, w3 = weight[c], weight[c + 1], weight[c + 2], weight[c + 3]
        for i in range(out.size):
            out[i] += (
                w0 * rows[c, i] + w1 * rows[c + 1, i] + w2 * rows[c + 2, i] + w3 * rows[c + 3, i]
            )
    for c in range(fours, weight.size):
        factor = weight[c]
        for i in range(out.size):
            out[i] += factor * rows[c, i]


@jit
def inner(A: Floats, B: Floats, out: Floats) -> None:
    """out = Aᵀ B = Σ_i A_i B_iᵀ for small matrices."""
    out[:] = 0.0
    for i in range(A.shape[0]):
        for a in range(A.shape[1]):
            add(out[a], A[i, a], B[i], B.shape[1])
