"""Compiled loops over the memory of CPU tensors: a single pass over data where PyTorch takes several.

Arrays are 2-D, contiguous, and either float32 or uint16 that holds bfloat16; intermediate values are float32.
Every loop processes the items `start` to `stop` (its last arguments), so that threads can share the work; its
docstring says what an item is. Random numbers depend only on positions, so results do not depend on threads.

The first functions, on single numbers, are written in LLVM IR because numba has neither bfloat16 nor 32-bit
integer products. LLVM turns loops over them into vector instructions, which it cannot do with calls to the C
library's exp.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import functools
import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, types

from convs2s.text.alignment.compiled import compiled

vectorized = functools.partial(compiled, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")

BLOCK = 64  # rows whose column sums are added up together
LANES = 64  # maxima that are computed in parallel
ZERO, ONE = np.float32(0.0), np.float32(1.0)

intrinsic: Any = extending.intrinsic  # its annotations hide what compiled code may call
I32, F32 = ir.IntType(32), ir.FloatType()
# exp(x) = 2^n 2^f with |f| <= 1/2; Taylor's coefficients of 2^f, highest power first, give it to 1e-7.
POWERS = [math.log(2.0) ** k / math.factorial(k) for k in range(7, -1, -1)]
SMALLEST_EXPONENT = -87.0  # exp of less is not a normal float32


@intrinsic
def wide(context: Any, value: Any) -> Any:
    """Return a number as float32: uint16 holds the bits of a bfloat16."""

    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if signature.args[0] == types.float32:
            return arguments[0]
        bits = builder.shl(builder.zext(arguments[0], I32), I32(16))
        return builder.bitcast(bits, F32)

    return types.float32(value), generate


@intrinsic
def narrow(context: Any, value: Any, like: Any) -> Any:
    """Return a float32 in the type of `like`: unchanged, or rounded to the nearest bfloat16, ties to even."""

    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if signature.args[1] == types.float32:
            return arguments[0]
        bits = builder.bitcast(arguments[0], I32)
        odd = builder.and_(builder.lshr(bits, I32(16)), I32(1))
        rounded = builder.add(builder.add(bits, I32(0x7FFF)), odd)
        return builder.trunc(builder.lshr(rounded, I32(16)), ir.IntType(16))

    return like(types.float32, like), generate


@intrinsic
def exp(context: Any, value: Any) -> Any:
    """Return e^x of a float32 below 88, with a relative error of at most 2e-7; NaN gives NaN."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        low = F32(SMALLEST_EXPONENT)
        x = builder.select(builder.fcmp_ordered("<", arguments[0], low), low, arguments[0])
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


@vectorized
def dropout(x, y, scale, threshold, first, second, start, stop):
    """Write x to y with some elements zeroed and the others scaled; items are rows.

    An element is dropped if its random bits are below `threshold`.
    """
    columns = x.shape[1]
    for i in range(start, stop):
        source, target = x[i], y[i]
        for j in range(columns):
            kept = random_bits(i * columns + j, first, second) >= threshold
            target[j] = narrow(wide(source[j]) * scale if kept else ZERO, target[j])


@vectorized
def windows(x, y, length, width, left, scale, threshold, first, second, start, stop):
    """Write, for each position of a sentence, the `width` positions around it, after dropout of x.

    Items are sentences of `length` positions. A window begins `left` positions before its own position, and
    is zero beyond the sentence.
    """
    columns = x.shape[1]
    for i in range(start, stop):
        for row in range(i * length, (i + 1) * length):
            source, target = x[row], y[row, left * columns : (left + 1) * columns]
            for j in range(columns):
                kept = random_bits(row * columns + j, first, second) >= threshold
                target[j] = narrow(wide(source[j]) * scale if kept else ZERO, target[j])
        for n in range(length):
            row = i * length + n
            for k in range(width):
                if k == left:
                    continue
                target, other = y[row, k * columns : (k + 1) * columns], n - left + k
                if 0 <= other < length:  # in a loop: numba takes three times as long to assign a slice
                    source = y[i * length + other, left * columns : (left + 1) * columns]
                    for j in range(columns):
                        target[j] = source[j]
                else:
                    target[:] = 0


@vectorized
def windows_backward(gy, gx, length, width, left, scale, threshold, first, second, start, stop):
    """Write the gradient of `windows`: the sum over a position's windows; items are sentences."""
    columns = gx.shape[1]
    total = np.empty(columns, np.float32)
    for i in range(start, stop):
        for n in range(length):
            for j in range(columns):
                total[j] = ZERO
            for k in range(width):
                other = n + left - k
                if 0 <= other < length:
                    source = gy[i * length + other, k * columns : (k + 1) * columns]
                    for j in range(columns):
                        total[j] += wide(source[j])
            row = i * length + n
            target = gx[row]
            for j in range(columns):
                kept = random_bits(row * columns + j, first, second) >= threshold
                target[j] = narrow(total[j] * scale if kept else ZERO, target[j])


@vectorized
def glu(y, bias, h, start, stop):
    """Write the gated linear unit of y + bias, whose right half gates the left half; items are rows."""
    columns = h.shape[1]
    for i in range(start, stop):
        left, right, target = y[i, :columns], y[i, columns:], h[i]
        for j in range(columns):
            gate = ONE / (ONE + exp(-(wide(right[j]) + bias[columns + j])))
            target[j] = narrow((wide(left[j]) + bias[j]) * gate, target[j])


@vectorized
def glu_backward(gh, y, bias, gy, sums, start, stop):
    """Overwrite gy with y's gradient in `glu`, and each row of `sums` with the column sums of a block.

    Items are blocks of BLOCK rows.
    """
    rows, columns = gh.shape
    for block in range(start, stop):
        left_sums, right_sums = sums[block, :columns], sums[block, columns:]
        sums[block, :] = ZERO
        for i in range(block * BLOCK, min(rows, (block + 1) * BLOCK)):
            left, right, above = y[i, :columns], y[i, columns:], gh[i]
            left_target, right_target = gy[i, :columns], gy[i, columns:]
            for j in range(columns):
                gate = ONE / (ONE + exp(-(wide(right[j]) + bias[columns + j])))
                g = wide(above[j]) * gate
                h = g * (wide(left[j]) + bias[j]) * (ONE - gate)
                left_sums[j] += g
                right_sums[j] += h
                left_target[j] = narrow(g, left_target[j])
                right_target[j] = narrow(h, right_target[j])


@vectorized
def largest(row, bias, lanes):
    """Return the largest element of row + bias; `lanes` is overwritten with the maxima of every LANES-th."""
    whole = len(bias) - len(bias) % LANES
    lanes[:] = -np.float32(np.inf)
    for first in range(0, whole, LANES):
        for j in range(LANES):
            score = wide(row[first + j]) + bias[first + j]
            lanes[j] = score if score > lanes[j] else lanes[j]
    for j in range(whole, len(bias)):
        score = wide(row[j]) + bias[j]
        lanes[0] = score if score > lanes[0] else lanes[0]
    return lanes.max()


@vectorized
def softmax_loss(scores, bias, wanted, smoothing, differentiate, losses, sums, start, stop):
    """Write each row's likelihood loss, and its loss against uniform probabilities; items are blocks.

    To differentiate, overwrite `scores` with the gradient of the smoothed loss, and the rows of `sums` with
    each block's column sums. Columns beyond those of `bias` are ignored and left unchanged.
    """
    columns = len(bias)
    share = np.float32(smoothing / columns)
    chances, lanes = np.empty(columns, np.float32), np.empty(LANES, np.float32)
    for block in range(start, stop):
        for i in range(block * BLOCK, min(len(wanted), (block + 1) * BLOCK)):
            row, column_sums = scores[i], sums[block]
            top, mean, total = largest(row, bias, lanes), ZERO, ZERO
            for j in range(columns):
                score = wide(row[j]) + bias[j]
                mean += score
                chance = exp(score - top)
                chances[j] = chance
                total += chance
            score = top + np.float32(np.log(total))
            losses[i, 0] = score - (wide(row[wanted[i]]) + bias[wanted[i]])
            losses[i, 1] = score - mean / np.float32(columns)
            if differentiate:
                factor = ONE / total
                chances[wanted[i]] -= np.float32(1.0 - smoothing) * total
                for j in range(columns):
                    gradient = chances[j] * factor - share
                    column_sums[j] += gradient
                    row[j] = narrow(gradient, row[j])


@vectorized
def normalize(v, g, w, norms, start, stop):
    """Write w = g v / ||v|| and ||v||, per row; items are rows."""
    columns = v.shape[1]
    for i in range(start, stop):
        source, target = v[i], w[i]
        square = ZERO
        for j in range(columns):
            square += source[j] * source[j]
        norms[i] = np.sqrt(square)
        scale = g[i] / norms[i]
        for j in range(columns):
            target[j] = narrow(source[j] * scale, target[j])


@vectorized
def normalize_backward(gw, v, g, norms, gv, gg, start, stop):
    """Write the gradients of v and g in `normalize`; items are rows."""
    columns = v.shape[1]
    for i in range(start, stop):
        source, above, target = v[i], gw[i], gv[i]
        product = ZERO
        for j in range(columns):
            product += source[j] * wide(above[j])
        gg[i] = product / norms[i]
        scale = g[i] / norms[i]
        along = scale * product / (norms[i] * norms[i])
        for j in range(columns):
            target[j] = scale * wide(above[j]) - along * source[j]
