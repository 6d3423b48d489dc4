"""Random valid blocks of each GGUF type, and the values that gguf-py reads from them."""

import base64
import json
from pathlib import Path

import gguf
import numpy as np

OUT = Path(__file__).resolve().parents[2] / "test/fixtures/reference/gguf-blocks"
TYPES = "F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL".split()
# Byte offsets of the f16 factors in a block: random bits there would make infinities.
FACTORS = {
    "Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "IQ4_NL": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}
BLOCKS = 4
FLOATS = 32


def half_bytes(values):
    return np.asarray(values, dtype="<f2").view(np.uint8)


def random_bytes(name, rng):
    if name == "F16":
        values = rng.normal(size=FLOATS)
        values[:6] = [0.0, -0.0, 6e-8, -3e-5, 65504, -1]  # subnormals and the largest too
        return half_bytes(values).reshape(1, -1)
    if name == "BF16":
        values = rng.normal(size=FLOATS).astype("<f4")
        values[:6] = [0.0, -0.0, 1e-39, -1e-39, 3e38, -1]
        return values.view("<u2")[1::2].copy().view(np.uint8).reshape(1, -1)
    _, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    blocks = rng.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    for offset in FACTORS[name]:
        blocks[:, offset : offset + 2] = half_bytes(rng.normal(size=BLOCKS) * 0.1).reshape(BLOCKS, 2)
    return blocks


def main():
    result = {}
    for index, name in enumerate(TYPES):
        rng = np.random.default_rng(index)
        kind = gguf.GGMLQuantizationType[name]
        data = random_bytes(name, rng)
        values = gguf.dequantize(data, kind).astype("<f4")
        assert np.isfinite(values).all(), name
        values_per_block, bytes_per_block = gguf.GGML_QUANT_SIZES[kind]
        result[name] = {
            "type": int(kind),
            "valuesPerBlock": values_per_block,
            "bytesPerBlock": bytes_per_block,
            "bytes": base64.b64encode(data.tobytes()).decode(),
            "values": base64.b64encode(values.tobytes()).decode(),
        }
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "blocks.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
