"""Writes test/fixtures/reference/<family>: checkpoint, tokenizer, reference.json and logits.f32.

    python make_checkpoints.py [family ...]
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

import checkpoint
from families import FAMILIES
from tokenizer import write_tokenizer

OUT = Path(__file__).resolve().parents[2] / "test/fixtures/reference"
SEEDS = 40
GOOD_GAP = 0.05
BLOCK = 32


def rounding(entry):
    """As stored; and, unless the entry says otherwise, matrices on a 4-bit grid, so that quantising loses nothing."""
    dtype = getattr(torch, entry["dtype"])
    on_grid = entry["dtype"] == "float16"

    def rounded(model, name, value):
        if on_grid and value.dim() > 1:
            by_columns = type(model).__name__.startswith("GPT2") and ".h." in name
            value = (to_grid(value.T).T if by_columns else to_grid(value)).contiguous()
        return value.to(dtype).float()

    return rounded


def to_grid(value):
    """Blocks of 32 along the inputs: -8..7 times a power of two, with a -8 in each."""
    blocks = []
    for block in value.split(BLOCK, dim=-1):
        largest = block.abs().max(dim=-1, keepdim=True)
        scale = 2 ** torch.ceil(torch.log2(largest.values / 8))
        quanta = (block / scale).round().clamp(-7, 7).scatter(-1, largest.indices, -8.0)
        blocks.append(quanta * scale)
    return torch.cat(blocks, dim=-1)


def best_seed(name, entry, rounded):
    """The first of some seeds with a good gap between the first and the second choice, or the one with the widest."""
    best = None
    for seed in range(SEEDS):
        model = checkpoint.build(entry)
        checkpoint.randomize(model, seed, rounded, **entry.get("gains", {}))
        result = checkpoint.result_of(model, seed)
        if result is not None and (best is None or result["gap"] > best[1]["gap"]):
            best = (model, result)
        if best is not None and best[1]["gap"] > GOOD_GAP:
            break
    assert best is not None and best[1]["gap"] >= 0.01, (name, best and best[1]["gap"])
    return best


def save(entry, model, folder):
    dtype = getattr(torch, entry["dtype"])
    size = sum(p.numel() for p in model.parameters()) * dtype.itemsize
    limit = size // entry.get("shards", 1) + (8192 if "shards" in entry else 1 << 20)
    model.to(dtype).save_pretrained(folder, max_shard_size=limit)
    model.float()
    layout = entry.get("layout")
    if layout is not None:
        relayout(folder / "model.safetensors", layout, model.config)


def relayout(path, layout, config):
    """Names and leftovers as the published files have them."""
    tensors = load_file(path)
    if layout in ("gpt2-hub", "bare"):
        tensors = {key.removeprefix("transformer."): value for key, value in tensors.items()}
    if layout.startswith("gpt2-hub"):
        prefix = "" if layout == "gpt2-hub" else "transformer."
        n = config.n_positions
        mask = torch.ones(n, n, dtype=torch.uint8 if prefix else torch.float16).tril().view(1, 1, n, n)
        for layer in range(config.n_layer):
            tensors[f"{prefix}h.{layer}.attn.bias"] = mask.clone()
    save_file(tensors, path, metadata={"format": "pt"})


def write_reference(folder, name, entry, result):
    attention = checkpoint.attention_of(AutoConfig.from_pretrained(folder))
    model_of_files = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation=attention)
    if hasattr(model_of_files, "set_experts_implementation"):
        model_of_files.set_experts_implementation("eager")
    logits = checkpoint.logits_of(model_of_files.eval(), checkpoint.all_ids(result))
    assert torch.equal(logits, result["logits"]), name
    write_results(folder, name, result, {"note": entry["note"]} if "note" in entry else {})


def write_results(folder, name, result, more):
    logits = result["logits"]
    reference = {
        "family": name, "transformersVersion": transformers.__version__, "seed": result["seed"],
        "promptIds": result["prompt"], "greedyIds": result["greedy"], "minGap": round(result["gap"], 5),
        "vocabSize": logits.shape[1], "maxAbsLogit": round(logits.abs().max().item(), 4), **more,
    }
    (folder / "reference.json").write_text(json.dumps(reference) + "\n")
    (folder / "logits.f32").write_bytes(logits.numpy().astype("<f4").tobytes())


def make(name, entry):
    model, result = best_seed(name, entry, rounding(entry))
    checkpoint.check_weights(name, model, result)
    checkpoint.check_config(name, entry, model, result)
    checkpoint.check_generation(name, model, result)
    error = checkpoint.check_precision(name, model, result)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        save(entry, model, folder)
        write_tokenizer(folder / "tokenizer.json", model.config.vocab_size)
        write_reference(folder, name, entry, result)
        target = OUT / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target)
    size = sum(path.stat().st_size for path in target.iterdir())
    print(f"{name:20} seed {result['seed']:2} gap {result['gap']:.4f} max |logit| "
          f"{result['logits'].abs().max().item():.2f} error {error:.1e} distinct {len(set(result['greedy']))} "
          f"{size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    failed = []
    for family in sys.argv[1:] or FAMILIES:
        try:
            make(family, FAMILIES[family])
        except AssertionError as error:
            failed.append(family)
            print(f"{family}: {error}", flush=True)
    sys.exit(f"failed: {failed}" if failed else 0)
