"""What compiled loops are made of, and how they run on CPU tensors.

Arrays are 2-D, contiguous, and either float32 or uint16 that holds bfloat16; intermediate values are float32.
Every loop processes the items `start` to `stop` (its last arguments), so that threads can share the work; its
docstring says what an item is.

The functions on single numbers are written in LLVM IR because numba has neither bfloat16 nor 32-bit integer
products; numba calls their `generate` to write the IR of each call. LLVM turns loops over them into vector
instructions, which it cannot do with calls to the exp of the C library.

Compiled loops are kept on disk: see `convs2s.base.compilation`. A loop is compiled again after an edit of its
own file, or of this one, which others inline.
"""
# mypy: disable-error-code="untyped-decorator"

import math
from collections.abc import Callable
from typing import Any

import torch
from llvmlite import ir
from numba import extending, types
from numpy.typing import NDArray
from torch import Tensor

from convs2s.base.compilation import compiled
from convs2s.engine.team import share, start_of_team

vectorized = compiled(__file__, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
"""Decorator of a loop: it is compiled at its first call on a machine, and may reorder sums."""
exact = compiled(__file__, error_model="numpy")
"""The same for a loop that must compute each number as written."""
intrinsic: Any = extending.intrinsic  # its annotations hide what compiled code may call

WORTH_A_THREAD = 1 << 15  # elements; to start the other threads takes about as long as a loop over this many
I8, I16, I32, F32 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.FloatType()
# exp(x) = 2^n 2^f with |f| <= 1/2; Taylor's coefficients of 2^f, highest power first, give it to 1e-7.
POWERS = [math.log(2.0) ** k / math.factorial(k) for k in range(7, -1, -1)]
LOWEST, HIGHEST = -87.0, 88.0  # exp of less or more is not a normal float32


def as_array(tensor: Tensor) -> NDArray[Any]:
    """Return the memory of a contiguous tensor; bfloat16 as uint16."""
    tensor = tensor.detach() if tensor.requires_grad else tensor
    assert tensor.is_contiguous(), tensor.stride()
    return (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy()


def as_tensor(array: NDArray[Any]) -> Tensor:
    """Return an array's memory as a tensor; uint16 as bfloat16."""
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if tensor.dtype == torch.uint16 else tensor


def run_loop(loop: Callable[..., None], items: int, elements: int, *arguments: Any) -> None:
    """Call loop(*arguments, start=..., stop=...) for all items, split among threads.

    Args:
        elements: total number of elements that the loop passes over.
    """
    arrays = [as_array(value) if isinstance(value, Tensor) else value for value in arguments]
    run_on_arrays(loop, items, elements, *arrays)


def run_on_arrays(loop: Callable[..., None], items: int, elements: int, *arrays: Any) -> None:
    """As `run_loop`, without a look for tensors, which takes as long as a small loop."""
    threads = torch.get_num_threads()
    shares = min(threads, items, max(1, elements // WORTH_A_THREAD))
    if shares == 1 or not start_of_team():
        loop(*arrays, start=0, stop=items)
    else:
        share(loop, items, shares, threads, *arrays)


@intrinsic
def to_float32(context: Any, value: Any) -> Any:
    """Return a number as float32; uint16 holds the bits of a bfloat16."""

    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, value = signature.args[0], arguments[0]
        if kind == types.float32:
            return value
        if kind == types.int32:
            return builder.sitofp(value, F32)
        return builder.bitcast(builder.shl(builder.zext(value, I32), I32(16)), F32)

    return types.float32(value), generate


@intrinsic
def from_float32(context: Any, value: Any, like: Any) -> Any:
    """Return a float32 in the type of `like`: unchanged, or rounded to the nearest bfloat16, ties to even."""

    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if signature.args[1] == types.float32:
            return arguments[0]
        bits = builder.bitcast(arguments[0], I32)
        odd = builder.and_(builder.lshr(bits, I32(16)), I32(1))
        rounded = builder.add(builder.add(bits, I32(0x7FFF)), odd)
        return builder.trunc(builder.lshr(rounded, I32(16)), I16)

    return like(types.float32, like), generate


@intrinsic
def exp(context: Any, value: Any) -> Any:
    """Return e^x of a float32, limited to that of -87 and 88; its relative error is at most 2e-7."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        x, low, high = arguments[0], F32(LOWEST), F32(HIGHEST)
        x = builder.select(builder.fcmp_ordered("<", x, low), low, x)
        x = builder.select(builder.fcmp_ordered(">", x, high), high, x)
        y = builder.fmul(x, F32(math.log2(math.e)))
        floor = builder.module.declare_intrinsic("llvm.floor", [F32])
        n = builder.call(floor, [builder.fadd(y, F32(0.5))])
        f = builder.fsub(y, n)
        power = F32(POWERS[0])
        for coefficient in POWERS[1:]:
            power = builder.fadd(builder.fmul(power, f), F32(coefficient))
        scale = builder.shl(builder.add(builder.fptosi(n, I32), I32(127)), I32(23))
        return builder.fmul(power, builder.bitcast(scale, F32))

    return types.float32(types.float32), generate


@intrinsic
def random_bits(context: Any, index: Any, first: Any, second: Any) -> Any:
    """Return 32 random bits for an index and a key of two 32-bit numbers: a counter-based generator.

    The mixer is lowbias32 (Wellons, "Prospecting for hash functions", 2018); the second half of the key
    enters between its rounds, so that the sequences of two keys are not shifts of each other. Keys must be
    random: keys that differ in only a few bits give similar sequences.
    """

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        index, first, second = (
            builder.trunc(value, I32) if value.type.width > I32.width else value for value in arguments
        )
        x = builder.add(index, first)
        x = builder.mul(builder.xor(x, builder.lshr(x, I32(16))), I32(0x7FEB352D))
        x = builder.xor(x, second)
        x = builder.mul(builder.xor(x, builder.lshr(x, I32(15))), I32(0x846CA68B))
        return builder.xor(x, builder.lshr(x, I32(16)))

    return types.uint32(index, first, second), generate


@intrinsic
def nearest_uint8(context: Any, value: Any) -> Any:
    """Round a float32 between 0 and 255 to the nearest integer, halves up."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.trunc(builder.fptosi(builder.fadd(arguments[0], F32(0.5)), I32), I8)

    return types.uint8(types.float32), generate


@intrinsic
def magnitude_bits(context: Any, value: Any) -> Any:
    """Return the bits of a float32's absolute value: as integers, they sort in the same order, NaN last."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.and_(builder.bitcast(arguments[0], I32), I32(0x7FFFFFFF))

    return types.int32(types.float32), generate


@intrinsic
def float_from_bits(context: Any, value: Any) -> Any:
    """Return the float32 with these bits."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], F32)

    return types.float32(types.int32), generate
