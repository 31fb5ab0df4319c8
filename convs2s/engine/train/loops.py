"""Compiled loops of a training step, each a single pass over data where PyTorch takes several.

Random numbers depend only on positions, so results do not depend on threads.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import numpy as np

from convs2s.engine.loops import exp, from_float32, random_bits, to_float32, vectorized

BLOCK = 64  # rows whose column sums are added up together
LANES = 64  # maxima that are computed in parallel
ZERO, ONE = np.float32(0.0), np.float32(1.0)


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
            target[j] = from_float32(to_float32(source[j]) * scale if kept else ZERO, target[j])


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
                target[j] = from_float32(to_float32(source[j]) * scale if kept else ZERO, target[j])
        for n in range(length):
            row = i * length + n
            for k in range(width):
                if k == left:
                    continue
                target = y[row, k * columns : (k + 1) * columns]
                other = n - left + k
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
                        total[j] += to_float32(source[j])
            row = i * length + n
            target = gx[row]
            for j in range(columns):
                kept = random_bits(row * columns + j, first, second) >= threshold
                target[j] = from_float32(total[j] * scale if kept else ZERO, target[j])


@vectorized
def glu(y, bias, h, start, stop):
    """Write the gated linear unit of y + bias, whose right half gates the left half; items are rows."""
    columns = h.shape[1]
    for i in range(start, stop):
        left, right, target = y[i, :columns], y[i, columns:], h[i]
        for j in range(columns):
            gate = ONE / (ONE + exp(-(to_float32(right[j]) + bias[columns + j])))
            target[j] = from_float32((to_float32(left[j]) + bias[j]) * gate, target[j])


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
                gate = ONE / (ONE + exp(-(to_float32(right[j]) + bias[columns + j])))
                g = to_float32(above[j]) * gate
                h = g * (to_float32(left[j]) + bias[j]) * (ONE - gate)
                left_sums[j] += g
                right_sums[j] += h
                left_target[j] = from_float32(g, left_target[j])
                right_target[j] = from_float32(h, right_target[j])


@vectorized
def softmax_backward(gweights, weights, gscores, start, stop):
    """Write the gradient of the scores from that of their softmax; items are rows."""
    columns = weights.shape[1]
    for i in range(start, stop):
        above, row, target = gweights[i], weights[i], gscores[i]
        mean = ZERO
        for j in range(columns):
            mean += above[j] * row[j]
        for j in range(columns):
            target[j] = (above[j] - mean) * row[j]


@vectorized
def largest(row, bias, lanes):
    """Return the largest element of row + bias; `lanes` is overwritten with the maxima of every LANES-th."""
    whole = len(bias) - len(bias) % LANES
    lanes[:] = -np.float32(np.inf)
    for first in range(0, whole, LANES):
        for j in range(LANES):
            score = to_float32(row[first + j]) + bias[first + j]
            lanes[j] = score if score > lanes[j] else lanes[j]
    for j in range(whole, len(bias)):
        score = to_float32(row[j]) + bias[j]
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
    # LLVM checks that what it writes does not begin within LANES numbers after what it reads; if it does, it
    # adds one by one, with another rounding. The distance makes results independent of addresses.
    chances = np.empty(LANES + columns, np.float32)[LANES:]
    lanes = np.empty(LANES, np.float32)
    for block in range(start, stop):
        for i in range(block * BLOCK, min(len(wanted), (block + 1) * BLOCK)):
            row, column_sums = scores[i], sums[block]
            top = largest(row, bias, lanes)
            mean, total = ZERO, ZERO
            for j in range(columns):
                score = to_float32(row[j]) + bias[j]
                mean += score
                chance = exp(score - top)
                chances[j] = chance
                total += chance
            score = top + np.float32(np.log(total))
            losses[i, 0] = score - (to_float32(row[wanted[i]]) + bias[wanted[i]])
            losses[i, 1] = score - mean / np.float32(columns)
            if differentiate:
                factor = ONE / total
                chances[wanted[i]] -= np.float32(1.0 - smoothing) * total
                for j in range(columns):
                    gradient = chances[j] * factor - share
                    column_sums[j] += gradient
                    row[j] = from_float32(gradient, row[j])
