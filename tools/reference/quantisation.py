"""What rounding weights and activations costs a downloaded model: perplexity of test/real/text.txt, in float32 sums.

    python quantisation.py [--tokens N] [--only NAME ...] MODEL ...

The roundings are those of our kernels: blocks of 32 columns (MatMulNBits; with accuracy level 4 activations are rounded
to 8 bits by the same blocks), and DynamicQuantizeMatMul (one scale per output, activations of a whole run as one u8 tensor).
A run is what goes in at once: 32 tokens of a prompt, or one.
"""

import argparse
import json
import math
from pathlib import Path

import torch
from torch.nn.functional import pad
from transformers import AutoModelForCausalLM, AutoTokenizer

TEXT = Path(__file__).resolve().parents[2] / "test/real/text.txt"
BLOCK = 32
# As in sdk/core/tensor/quantize-q4.ts.
SPANS = [15, 14, 13, 12, 15.6]
FITS = 3


def by_blocks(round_blocks):
    def apply(matrix):
        columns = matrix.shape[1]
        blocks = pad(matrix, (0, -columns % BLOCK)).reshape(matrix.shape[0], -1, BLOCK)
        return round_blocks(blocks).reshape(matrix.shape[0], -1)[:, :columns].contiguous()

    return lambda matrix: torch.cat([apply(part) for part in matrix.split(16384)])


def nonzero(scale):
    return torch.where(scale == 0, 1.0, scale)


def to_steps(values, scale, low, high):
    return (values / nonzero(scale)).round().clamp(low, high)


def round_q8(blocks):
    scale = blocks.abs().amax(-1, keepdim=True) / 127
    return to_steps(blocks, scale, -127, 127) * scale


def extremes(blocks):
    return blocks.gather(-1, blocks.abs().argmax(-1, keepdim=True))


def round_q4_plain(blocks):
    scale = extremes(blocks) / -8
    return to_steps(blocks, scale, -8, 7) * scale


def round_q4_zero(blocks):
    """With whole zero points: of some, and of some scales, those with the least squared error."""
    low, high = blocks.amin(-1, keepdim=True).clamp(max=0), blocks.amax(-1, keepdim=True).clamp(min=0)
    ideal = (-low / nonzero((high - low) / 15)).round()
    best = Best(blocks)
    for shift in [0, -1, 1, -2, 2]:
        zero = (ideal + shift).clamp(0, 15)
        below = low / torch.where(zero == 0, -1e9, -zero)
        above = high / torch.where(zero == 15, 1e9, 15 - zero)
        for factor in [1, 0.95, 0.9, 0.85]:
            scale = torch.maximum(below, above) * factor
            for _ in range(2):
                steps = to_steps(blocks, scale, -zero, 15 - zero)
                best.offer(steps * scale)
                scale = (blocks * steps).sum(-1, keepdim=True) / nonzero((steps * steps).sum(-1, keepdim=True))
    return best.rounded


def round_q4(blocks):
    """As sdk/core/tensor/quantize-q4.ts: zero points between the steps."""
    low, high = blocks.amin(-1, keepdim=True), blocks.amax(-1, keepdim=True)
    best = Best(blocks)
    for span in SPANS:
        scale = (high - low) / span
        offset = (low + high) / 2 - 7.5 * scale
        for _ in range(FITS):
            steps = to_steps(blocks - offset, scale, 0, 15)
            best.offer(steps * scale + offset)
            scale, offset = line_through(steps, blocks)
    return best.rounded


class Best:
    """Of what is offered for each block that with the least squared error."""

    def __init__(self, blocks):
        self.blocks, self.rounded, self.least = blocks, blocks, torch.full_like(blocks[..., :1], math.inf)

    def offer(self, rounded):
        error = ((self.blocks - rounded) ** 2).sum(-1, keepdim=True)
        better = error < self.least
        self.rounded = torch.where(better, rounded, self.rounded)
        self.least = torch.where(better, error, self.least)


def line_through(steps, values):
    step, value = steps.mean(-1, keepdim=True), values.mean(-1, keepdim=True)
    apart = steps - step
    slope = ((values - value) * apart).sum(-1, keepdim=True) / nonzero((apart * apart).sum(-1, keepdim=True))
    return slope, value - slope * step


def int8_outputs(matrix):
    scale = matrix.abs().amax(-1, keepdim=True) / 127
    return to_steps(matrix, scale, -127, 127) * scale


def int8_runs(rows):
    """Rounds the rows of each run as one tensor of u8, zero included."""

    def apply(states):
        parts = []
        for run in states.reshape(-1, states.shape[-1]).split(rows):
            low, high = min(run.min().item(), 0.0), max(run.max().item(), 0.0)
            scale = (high - low) / 255 or 1.0
            zero = round(-low / scale)
            parts.append(((run / scale).round() + zero).clamp(0, 255).sub(zero) * scale)
        return torch.cat(parts).reshape(states.shape)

    return apply


def int8_blocks(states):
    return by_blocks(round_q8)(states.reshape(-1, states.shape[-1])).reshape(states.shape)


Q8, Q4 = by_blocks(round_q8), by_blocks(round_q4)
Q4_PLAIN, Q4_ZERO = by_blocks(round_q4_plain), by_blocks(round_q4_zero)
# Name: weights of layers, table and head, activations.
VARIANTS = {
    "f32": (None, None, None),
    "q8": (Q8, Q8, None),
    "q8, accuracy level 4": (Q8, Q8, int8_blocks),
    "q4, one scale, q4 table": (Q4_PLAIN, Q4_PLAIN, None),
    "q4, one scale": (Q4_PLAIN, Q8, None),
    "q4, whole zero points": (Q4_ZERO, Q8, None),
    "q4": (Q4, Q8, None),
    "q4, accuracy level 4": (Q4, Q8, int8_blocks),
    "int8 weights": (int8_outputs, int8_outputs, None),
    "int8, single rows": (int8_outputs, int8_outputs, int8_runs(1)),
    "int8, runs of 32": (int8_outputs, int8_outputs, int8_runs(32)),
    "q8, int8 activations by run of 32": (Q8, Q8, int8_runs(32)),
}


def measure(path, arguments):
    folder, extra = (path, {}) if path.is_dir() else (path.parent, {"gguf_file": path.name})
    reference = path.with_name(path.name + ".reference.json")
    if reference.exists():
        ids = json.loads(reference.read_text())["textIds"]
    else:
        ids = AutoTokenizer.from_pretrained(folder, **extra)(TEXT.read_text()).input_ids
    text = torch.tensor([ids[: arguments.tokens]])
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **extra).eval()
    linears = {name: part for name, part in model.named_modules() if isinstance(part, torch.nn.Linear)}
    table = model.get_input_embeddings()
    originals = {name: part.weight.data for name, part in [*linears.items(), ("table", table)]}
    activations = None
    for part in linears.values():
        part.register_forward_pre_hook(lambda _part, inputs: activations and (activations(inputs[0]),))
    base = None
    for name, (layers, ends, activations) in VARIANTS.items():
        if arguments.only and name not in [*arguments.only, "f32"]:
            continue
        rounded = {}
        for part_name, part in [*linears.items(), ("table", table)]:
            change = ends if part_name in ("table", "lm_head") else layers
            # DynamicQuantizeMatMul multiplies; rows of the table are read as they are.
            if change is None or (part_name == "table" and change is int8_outputs):
                values = originals[part_name]
            else:
                key = originals[part_name].data_ptr()
                values = rounded.get(key)
                if values is None:
                    values = rounded[key] = change(originals[part_name])
            part.weight = torch.nn.Parameter(values, requires_grad=False)
        logits = model(text, use_cache=False).logits[0, :-1]
        losses = torch.nn.functional.cross_entropy(logits, text[0, 1:], reduction="none")
        perplexity, top = math.exp(losses.double().mean()), logits.argmax(-1)
        if base is None:
            base = (perplexity, top)
        same = (top == base[1]).float().mean().item()
        print(
            f"{path.name} | {name} | {perplexity:.3f} | {(perplexity / base[0] - 1) * 100:+.2f} % | top-1 {same * 100:.1f} %",
            flush=True,
        )


torch.set_grad_enabled(False)
parser = argparse.ArgumentParser()
parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
parser.add_argument("--tokens", type=int, help="of the text, the first ones")
parser.add_argument("--only", nargs="*", help="names of variants")
options = parser.parse_args()
for model_path in options.models:
    measure(model_path.resolve(), options)
