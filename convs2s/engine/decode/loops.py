"""Compiled loops of a decoding step, each a single pass over data where PyTorch takes several.

Arrays and items are as in `convs2s.engine.loops`. Matrix products are passed unscaled, as bfloat16 in uint16,
or as float32, which may hold sums of 8-bit products. Entry y in row i, column j represents

    y * row_scales[i] * scales[j] + bias[j].

The source positions of sentence i are the rows starts[i] to starts[i] + lengths[i] of the encoder's output,
without padding. Its hypotheses are consecutive rows, `beams` per sentence.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import math

import numpy as np

from convs2s.engine.loops import (
    exact,
    exp,
    float_from_bits,
    from_float32,
    magnitude_bits,
    nearest_uint8,
    to_float32,
    vectorized,
)

LANES = 256  # groups of tokens whose maxima are computed in parallel; a power of 2
ZERO, ONE = np.float32(0.0), np.float32(1.0)
SQRT_HALF = np.float32(math.sqrt(0.5))
LOWEST = -np.float32(np.inf)
TINY = np.float32(1e-30)


@vectorized
def quantize(x, limit, q, row_scales, start, stop):
    """Write x as integers times a scale per row, limit + 1 added: the largest becomes 2 limit + 1.

    Items are rows.
    """
    for i in range(start, stop):
        source, target, bits = x[i], q[i], np.int32(0)
        # Compare as integers: no vector instruction takes the maximum of floats that may be NaN.
        for j in range(len(source)):
            bits = max(bits, magnitude_bits(source[j]))
        # A row with NaN gets a scale of NaN, so that everything computed from it is NaN as well.
        largest = float_from_bits(bits)
        factor = limit / max(largest, TINY)
        for j in range(len(source)):
            target[j] = nearest_uint8(source[j] * factor + (limit + ONE))
        row_scales[i] = largest / limit


@vectorized
def scale(y, row_scales, scales, bias, out, start, stop):
    """Write a product as float32; items are rows."""
    for i in range(start, stop):
        source, target, factor = y[i], out[i], row_scales[i]
        for j in range(len(target)):
            target[j] = to_float32(source[j]) * (factor * scales[j]) + bias[j]


@vectorized
def copy(source, target):
    """Copy a row: in numba, assigning a slice takes five times as long, and seconds to compile."""
    for j in range(len(target)):
        target[j] = source[j]


@vectorized
def round_to(source, target):
    """Copy a row of float32 to one of float32 or bfloat16."""
    for j in range(len(target)):
        target[j] = from_float32(source[j], target[j])


@vectorized
def cut_windows(x, starts, lengths, width, y, start, stop):
    """Write, for each source position, the `width` positions around it; items are sentences.

    Windows may be bfloat16, as the product that reads them.
    """
    columns, left = x.shape[1], width // 2
    for i in range(start, stop):
        first, length = starts[i], lengths[i]
        for n in range(length):
            for k in range(width):
                target = y[first + n, k * columns : (k + 1) * columns]
                other = n - left + k
                if 0 <= other < length:
                    round_to(x[first + other], target)
                else:
                    target[:] = 0


@vectorized
def shift_windows(old, parents, x, y, start, stop):
    """Write the windows of rows `parents`, shifted by one position to end with x; items are rows."""
    columns = x.shape[1]
    kept = y.shape[1] - columns
    for i in range(start, stop):
        copy(old[parents[i], columns:], y[i, :kept])
        round_to(x[i], y[i, kept:])


@vectorized
def apply_glu(y, row_scale, scales, bias, h):
    """Write the gated linear unit of a row of a product."""
    columns = len(h)
    left, right = y[:columns], y[columns:]
    left_scales, right_scales = scales[:columns], scales[columns:]
    left_bias, right_bias = bias[:columns], bias[columns:]
    for j in range(columns):
        gate = to_float32(right[j]) * (row_scale * right_scales[j]) + right_bias[j]
        value = to_float32(left[j]) * (row_scale * left_scales[j]) + left_bias[j]
        h[j] = value / (ONE + exp(-gate))


@vectorized
def add_glu(y, row_scales, scales, bias, x, out, start, stop):
    """Write (x + the gated linear unit of a product) * sqrt(0.5); items are rows."""
    for i in range(start, stop):
        source, target = x[i], out[i]
        apply_glu(y[i], row_scales[i], scales, bias, target)
        for j in range(len(target)):
            target[j] = (target[j] + source[j]) * SQRT_HALF


@vectorized
def dot(x, y):
    """Return the dot product of two rows; the second may be bfloat16."""
    total = ZERO
    for j in range(len(x)):
        total += x[j] * to_float32(y[j])
    return total


@vectorized
def match(g, keys, starts, lengths, beams, scores, start, stop):
    """Write each hypothesis's products with its sentence's keys; items are sentences."""
    for i in range(start, stop):
        for row in range(i * beams, (i + 1) * beams):
            for s in range(lengths[i]):
                scores[row, s] = dot(g[row], keys[starts[i] + s])


@vectorized
def softmax(scores):
    """Overwrite a row of scores with their softmax."""
    largest = LOWEST
    for s in range(len(scores)):
        largest = scores[s] if scores[s] > largest else largest
    total = ZERO
    for s in range(len(scores)):
        chance = exp(scores[s] - largest)
        scores[s] = chance
        total += chance
    factor = ONE / total
    for s in range(len(scores)):
        scores[s] *= factor


@vectorized
def attend(
    y, row_scales, scales, bias, x, shared, keys, offsets, values, starts, lengths, beams, scale, share,
    attention, out, start, stop,
):  # fmt: skip
    """Write a layer's output: gated linear unit, attention, residual; items are sentences.

    From the product y of the convolution, the block's input x, and the folded attention:
    ((c + h) * scale + x) * sqrt(0.5), where `values` already include both factors. Adds `share` of the
    weights to `attention`.
    """
    h = np.empty(x.shape[1], np.float32)
    weights = np.empty(shared.shape[1], np.float32)
    for i in range(start, stop):
        first, length = starts[i], lengths[i]
        scores = weights[:length]
        for row in range(i * beams, (i + 1) * beams):
            apply_glu(y[row], row_scales[row], scales, bias, h)
            for s in range(length):
                scores[s] = shared[row, s] + offsets[first + s] + dot(h, keys[first + s])
            softmax(scores)
            source, target = x[row], out[row]
            for j in range(len(h)):
                target[j] = (h[j] * scale + source[j]) * SQRT_HALF
            for s in range(length):
                weight, value = scores[s], values[first + s]
                attention[row, s] += weight * share
                for j in range(len(h)):
                    target[j] += weight * to_float32(value[j])


@vectorized
def find_likeliest(
    y, row_scales, scales, bias, only, excluded, values, tokens, normalizers, start, stop,
):  # fmt: skip
    """Write each row's largest logits, largest first, their tokens, and the normalizer; items are rows.

    `only` has each row's only allowed next token; below 0, all are but those `excluded`, which is not empty.
    Tokens j, j + LANES, ... form a group; the largest logits are in the groups with the largest maxima. If
    too few tokens are allowed, the rest have -inf.
    """
    columns = len(bias)
    count = values.shape[1]
    whole = columns - columns % LANES
    row = np.empty(columns, np.float32)
    lanes = np.empty(LANES, np.float32)
    maxima = np.empty(LANES // 4, np.float32)
    largest = np.empty(count + len(excluded), np.float32)  # some maxima may belong to excluded tokens
    for i in range(start, stop):
        source, factor = y[i], row_scales[i]
        lanes[:] = LOWEST
        for first in range(0, whole, LANES):
            part = source[first : first + LANES]
            part_scales = scales[first : first + LANES]
            part_bias = bias[first : first + LANES]
            target = row[first : first + LANES]
            for j in range(LANES):
                logit = to_float32(part[j]) * (factor * part_scales[j]) + part_bias[j]
                target[j] = logit
                lanes[j] = logit if logit > lanes[j] else lanes[j]
        for j in range(whole, columns):
            logit = to_float32(source[j]) * (factor * scales[j]) + bias[j]
            row[j] = logit
            lanes[j - whole] = max(logit, lanes[j - whole])
        reduce_by_four(lanes, maxima)
        find_largest(maxima, largest)
        top, threshold = largest[0], largest[-1]
        total = ZERO
        for j in range(columns):
            total += exp(row[j] - top)
        normalizers[i] = top + np.float32(np.log(total))
        best, best_tokens = values[i], tokens[i]
        best[:] = LOWEST
        best_tokens[:] = excluded[0]
        if only[i] >= 0:
            best[0], best_tokens[0] = row[only[i]], only[i]
            continue
        for token in excluded:
            row[token] = LOWEST
        for lane in range(LANES):
            if lanes[lane] >= threshold:
                for j in range(lane, columns, LANES):
                    if row[j] >= threshold:
                        insert(row[j], j, best, best_tokens)


@vectorized
def reduce_by_four(lanes, maxima):
    """Write the largest of each four numbers."""
    size = len(maxima)
    first, second, third, fourth = (
        lanes[:size], lanes[size : 2 * size], lanes[2 * size : 3 * size], lanes[3 * size :],
    )  # fmt: skip
    for j in range(size):
        left = first[j] if first[j] > second[j] else second[j]
        right = third[j] if third[j] > fourth[j] else fourth[j]
        maxima[j] = left if left > right else right


@vectorized
def find_largest(numbers, largest):
    """Write the largest numbers, largest first; -inf if there are fewer."""
    last = len(largest) - 1
    largest[:] = LOWEST
    for j in range(len(numbers)):
        value = numbers[j]
        if value > largest[last]:
            k = last
            while k > 0 and largest[k - 1] < value:
                largest[k] = largest[k - 1]
                k -= 1
            largest[k] = value


@vectorized
def insert(value, token, best, best_tokens):
    """Insert a logit and its token into the largest ones; for equal logits, the smaller token comes first."""
    k = len(best)
    while k > 0 and (best[k - 1] < value or (best[k - 1] == value and best_tokens[k - 1] > token)):
        k -= 1
    if k == len(best) or value == LOWEST:
        return
    for later in range(len(best) - 1, k, -1):
        best[later], best_tokens[later] = best[later - 1], best_tokens[later - 1]
    best[k], best_tokens[k] = value, token


@exact
def choose(values, tokens, normalizers, totals, sums, rows, chosen, start, stop):
    """Write the best continuations of each sentence's hypotheses, best first; items are sentences.

    From the largest logits of each row and its normalizer, as `find_likeliest` writes them, and each
    hypothesis's log-likelihood so far: the new log-likelihood, the row and the token. Of equal ones, that of
    the earlier row comes first, then that of the likelier token; NaN comes before all others.
    """
    beams, last = totals.shape[1], sums.shape[1] - 1
    for i in range(start, stop):
        best, best_rows, best_tokens = sums[i], rows[i], chosen[i]
        count = 0
        for beam in range(beams):
            row = i * beams + beam
            offset = totals[i, beam] - normalizers[row]
            for j in range(values.shape[1]):
                value = values[row, j] + offset
                k = count
                while k > 0 and (value > best[k - 1] or (np.isnan(value) and not np.isnan(best[k - 1]))):
                    k -= 1
                if k > last:
                    break  # what follows in this row is no larger
                count = min(count + 1, last + 1)
                for later in range(count - 1, k, -1):
                    best[later] = best[later - 1]
                    best_rows[later] = best_rows[later - 1]
                    best_tokens[later] = best_tokens[later - 1]
                best[k], best_rows[k], best_tokens[k] = value, row, tokens[row, j]
