"""Compiled loops shared among the threads of PyTorch's OpenMP library.

These threads stay awake for a moment after each operation, as the next one follows soon. Threads of our own
would compete with them for the cores: with two cores, a loop then took longer on two threads than on one.
"""
# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator"

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import torch
from llvmlite import ir
from numba import extending
from numba.core import cgutils
from numba.core.types import int32, int64, none

from convs2s.base.compilation import compiled

intrinsic: Any = extending.intrinsic  # its annotations hide what compiled code may call
I32 = ir.IntType(32)
I64 = ir.IntType(64)
POINTER = ir.IntType(8).as_pointer()
TASK = ir.FunctionType(ir.VoidType(), [POINTER])
START = ir.FunctionType(ir.VoidType(), [TASK.as_pointer(), POINTER, I32, I32])
# Fields of the struct that the threads read: arguments, code, items, shares, next share, whether one failed.
FIELDS = [I32(field) for field in range(6)]
CODE: dict[Any, int] = {}
"""Addresses of machine code, by loop and kinds of arguments."""


@functools.cache
def start_of_team() -> int:
    """Return the address of GOMP_parallel, by which compilers start a team of threads; 0 if there is none.

    It is looked for in what PyTorch loads, as another library would have other threads. Without it, as on
    Windows, one thread runs the loops.
    """
    library = ctypes.CDLL(torch._C.__file__)
    start = getattr(library, "GOMP_parallel", None)
    return ctypes.cast(start, ctypes.c_void_p).value or 0 if start else 0


def share(loop: Any, items: int, shares: int, threads: int, *arguments: Any) -> None:
    """Call a compiled loop for all items, a share at a time, in any thread of the team.

    Args:
        shares: at most the threads. With fewer, the others of the team have nothing to do.
        threads: of PyTorch; a team of another size would end some of its threads, or start more.
        arguments: of the loop, arrays and numbers, without start and stop.

    Raises:
        MemoryError: if a loop ran out of memory, the only error that one can raise.
    """
    kinds = [(x.dtype, x.ndim, x.flags.num) if isinstance(x, np.ndarray) else type(x) for x in arguments]
    key = (loop, *kinds)
    code = CODE.get(key) or CODE.setdefault(key, find_code(loop, arguments))
    if share_code(start_of_team(), code, items, shares, threads, arguments):
        raise MemoryError(f"too little memory for {loop.__name__}")


def find_code(loop: Any, arguments: Sequence[Any]) -> int:
    """Return the address of the machine code of a loop for such arguments.

    By its address, a team runs the same code as a single thread. LLVM would optimize a copy once more, and
    sums could be rounded otherwise.
    """
    types = (*map(numba.typeof, arguments), int64, int64)
    loop.compile(types)
    result = loop.overloads[types]
    address: int = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
    return address


@compiled()
def share_code(start, code, items, shares, threads, arguments):
    """As `share`, with addresses; return 1 if a call failed, else 0."""
    return start_team(start, code, items, shares, threads, arguments)


@intrinsic(prefer_literal=False)
def start_team(context: Any, start: Any, code: Any, items: Any, shares: Any, threads: Any, arguments: Any):
    """What `share_code` does, in LLVM IR."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        """Fill the struct, and call GOMP_parallel with a task that reads it."""
        start, code, items, shares, threads, given = values
        work = cgutils.alloca_once(builder, ir.LiteralStructType([given.type, I64, I64, I64, I64, I32]))
        contents = given, code, items, shares, I64(0), I32(0)
        for field, value in zip(FIELDS, contents, strict=True):
            builder.store(value, builder.gep(work, [I32(0), field]))
        task = write_task(context, builder.module, arguments.types, work.type)
        builder.call(
            builder.inttoptr(start, START.as_pointer()),
            [task, builder.bitcast(work, POINTER), builder.trunc(threads, I32), I32(0)],
        )
        return builder.load(builder.gep(work, [I32(0), FIELDS[-1]]))

    return int32(start, code, items, shares, threads, arguments), generate


def write_task(context: Any, module: Any, types: Sequence[Any], kind: Any) -> Any:
    """Write the function that each thread of a team calls; return it.

    Args:
        types: of the arguments of the loop, without start and stop.
        kind: of the pointer that it gets, to what it must know of the work.
    """
    task = ir.Function(module, TASK, name=module.get_unique_name("task"))
    task.linkage = "internal"
    entry = task.append_basic_block("entry")
    look = task.append_basic_block("look")  # whether there is a share left
    call = task.append_basic_block("call")
    end = task.append_basic_block("end")
    builder = ir.IRBuilder(entry)
    work = builder.bitcast(task.args[0], kind)
    *contents, following, failed = (builder.gep(work, [I32(0), field]) for field in FIELDS)
    arguments, code, items, shares = map(builder.load, contents)
    builder.branch(look)

    builder.position_at_end(look)
    index = builder.atomic_rmw("add", following, I64(1), "monotonic")
    builder.cbranch(builder.icmp_signed("<", index, shares), call, end)

    builder.position_at_end(call)
    begin = builder.sdiv(builder.mul(items, index), shares)
    stop = builder.sdiv(builder.mul(items, builder.add(index, I64(1))), shares)
    types = (*types, int64, int64)
    loop = builder.inttoptr(code, context.call_conv.get_function_type(none, types).as_pointer())
    values = [*cgutils.unpack_tuple(builder, arguments), begin, stop]
    status, _ = context.call_conv.call_function(builder, loop, none, types, values)
    with builder.if_then(status.is_error):
        builder.store(I32(1), failed)
    builder.branch(look)

    builder.position_at_end(end)
    builder.ret_void()
    return task
