"""Weights of K-quant types without a quantiser: random valid blocks, whose values are the weights."""

import gguf
import numpy as np

TYPE = gguf.GGMLQuantizationType
# Where a block's factors lie, and how far its minimum must be scaled for values around zero.
LAYOUT = {"Q4_K": (0, 2, 7.5), "Q5_K": (0, 2, 15.5), "Q6_K": (208, None, 0)}


def random_blocks(kind, rows, deviation, rng):
    """uint8 [rows, bytes]: one block of 256 values a row, of about this standard deviation."""
    _, size = gguf.GGML_QUANT_SIZES[TYPE[kind]]
    at, minimum_at, ratio = LAYOUT[kind]
    blocks = rng.integers(0, 256, (rows, size), dtype=np.uint8)

    def scale(factor):
        blocks[:, at : at + 2] = np.array([factor], dtype="<f2").view(np.uint8)
        if minimum_at is not None:
            blocks[:, minimum_at : minimum_at + 2] = np.array([factor * ratio], dtype="<f2").view(np.uint8)

    scale(1)
    scale(deviation / gguf.dequantize(blocks, TYPE[kind]).std())
    return blocks


class KBlocks:
    """Remembers which block made a row of values: a converter may reorder rows, and none of K-quants is written anew."""

    def __init__(self):
        self.rows = {}

    def weights(self, kind, value):
        """f32 of value's shape [rows, 256], random but determined by `value`."""
        rng = np.random.default_rng(int(abs(value).sum() * 1000))
        blocks = random_blocks(kind, value.shape[0], value.std(), rng)
        values = gguf.dequantize(blocks, TYPE[kind])
        for row, block in zip(values, blocks):
            self.rows[kind, row.tobytes()] = block
        return values

    def encode(self, kind, values):
        return np.stack([self.rows[kind, row.tobytes()] for row in values])
