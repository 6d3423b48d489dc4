"""Writes test/fixtures/reference/gguf/<name>: model.gguf, reference.json and logits.f32.

    python make_gguf.py path/to/llama.cpp [name ...]

llama.cpp's own converter makes an F32 file of a random checkpoint whose weights are already rounded to a type's
values; the file is then rewritten in that type, which must keep every value. So transformers computes the reference
from just the weights that the file holds.
"""

# ruff: noqa: E402
import json
import logging
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

LLAMA_CPP = Path(sys.argv[1])
sys.path[:0] = [str(LLAMA_CPP), str(LLAMA_CPP / "gguf-py")]

import conversion.base
import convert_hf_to_gguf
import gguf
import numpy as np
import torch
import transformers

import checkpoint
from families import FAMILIES, phi3
from gguf_tokenizers import write_bpe, write_spm
from k_blocks import KBlocks
from make_checkpoints import OUT, best_seed, write_results

TYPE = gguf.GGMLQuantizationType


def entry(family, kind, tokenizer="small", config=None, files=None, **more):
    return {"family": family, "kind": kind, "tokenizer": tokenizer, "config": config or {}, "files": files or {}, **more}


FILES = {
    "llama-f32": entry("llama-head8", "F32", config={"num_hidden_layers": 1}),
    "llama-f16": entry("llama-head8", "F16", "spm", {"num_hidden_layers": 1, "tie_word_embeddings": True}),
    "llama-bf16": entry("llama-head8", "BF16"),
    "llama-q8_0": entry("llama-head8", "Q8_0"),
    "llama-q4_0": entry("llama-head8", "Q4_0"),
    "llama-q4_1": entry("llama-head8", "Q4_1"),
    "llama-q5_0": entry("llama-head8", "Q5_0"),
    "llama-q5_1": entry("llama-head8", "Q5_1"),
    "llama-k": entry("llama-gqa", "K", config={"hidden_size": 256, "num_hidden_layers": 1, "num_attention_heads": 4,
        "head_dim": 16, "intermediate_size": 64, "tie_word_embeddings": True}),
    "llama3-q8_0": entry("llama3", "Q8_0"),
    "qwen2-q8_0": entry("qwen2", "Q8_0", "qwen2"),
    "qwen3-q8_0": entry("qwen3", "Q8_0"),
    "gemma2-q8_0": entry("gemma2", "Q8_0", "spm-gemma", {"query_pre_attn_scalar": 16, "eos_token_id": 2}),
    "gemma3-q8_0": entry("gemma3", "Q8_0", config={"query_pre_attn_scalar": 16, "num_hidden_layers": 6,
        "layer_types": ["sliding_attention"] * 5 + ["full_attention"]}),
    "gpt2-q8_0": entry("gpt2", "Q8_0", files={"n_ctx": 64}),
    "phi3-q8_0": entry("phi3-longrope", "Q8_0", config=phi3(
        original=256, maximum=1024, num_key_value_heads=2, num_hidden_layers=1, sliding_window=64)),
    "mixtral-q8_0": entry("mixtral", "Q8_0"),
    "qwen3moe-q8_0": entry("qwen3-moe", "Q8_0"),
    "olmoe-q8_0": entry("olmoe", "Q8_0"),
    "bloom-q8_0": entry("bloom", "Q8_0", files={"seq_length": 128}),
    "falcon-7b-q8_0": entry("falcon-7b", "Q8_0", files={"num_kv_heads": 1}),
    "smollm3-q8_0": entry("smollm3", "Q8_0"),
}
# A mixture as in files called Q4_K_M; rows of 64 can't hold a block of 256.
MIXTURE = {
    "Q4_K": ("q_proj", "gate_proj", "attn_q", "ffn_gate"), "Q5_K": ("k_proj", "up_proj", "attn_k", "ffn_up"),
    "Q6_K": ("v_proj", "embed_tokens", "attn_v", "token_embd"), "Q8_0": ("o_proj", "down_proj", "attn_output", "ffn_down"),
}
VOCABULARIES = ["gpt-2", "qwen2", "llama-bpe", "smollm", "spm", "spm-gemma"]
VOCAB = {"small": 96, "smollm": 288, "gpt-2": 288, "qwen2": 288, "llama-bpe": 288, "spm": 320, "spm-gemma": 320}


def kept_whole(name, shape):
    """Small tensors stay F32, as the quantisers of llama.cpp leave them."""
    return len(shape) < 2 or shape[-1] % 32 or "ffn_gate_inp" in name or "position_embd" in name


def type_of(kind, name):
    if kind != "K":
        return kind
    return next(kind for kind, parts in MIXTURE.items() if name.removesuffix(".weight").split(".")[-1] in parts)


def rounding(kind, k_blocks):
    """From a weight to the nearest that `kind` can hold, row by row of the matrix as GGUF stores it."""

    def rounded(model, name, value):
        router = name.endswith(".gate.weight") and value.shape[0] == 4
        if value.dim() < 2 or router or name.endswith("wpe.weight"):
            return value.half().float()
        turned = type(model).__name__.startswith("GPT2") and ".h." in name
        rows = (value.T if turned else value).contiguous().numpy()
        stored = type_of(kind, name)
        if stored.endswith("_K"):
            back = k_blocks.weights(stored, rows)
        else:
            back = gguf.dequantize(gguf.quantize(rows, TYPE[stored]), TYPE[stored])
        back = torch.from_numpy(back.reshape(rows.shape).copy())
        return back.T if turned else back

    return rounded


def convert(folder, pre, *flags):
    """Without the hash of a known tokenizer the converter refuses: the name of the split is given to it instead."""
    out = folder / "f32.gguf"
    conversion.base.TextModel.get_vocab_base_pre = lambda *_: pre
    sys.argv = ["convert", str(folder), "--outtype", "f32", "--outfile", str(out), "--model-name", "Tiny", *flags]
    convert_hf_to_gguf.main()
    return out


def rewrite(source, target, kind, k_blocks):
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, architecture)
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key in ("general.architecture", "general.file_type"):
            continue
        value_type = field.types[0]
        sub_type = field.types[-1] if value_type == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), value_type, sub_type)
    file_type = {"F32": "ALL_F32", "K": "MOSTLY_Q4_K_M"}.get(kind, f"MOSTLY_{kind}")
    writer.add_file_type(gguf.LlamaFileType[file_type])
    for tensor in reader.tensors:
        data = tensor.data
        if not kept_whole(tensor.name, data.shape):
            name = type_of(kind, tensor.name)
            stored = k_blocks.encode(name, data) if name.endswith("_K") else gguf.quantize(data, TYPE[name])
            back = gguf.dequantize(stored, TYPE[name]).reshape(data.shape)
            assert np.array_equal(back, data), (tensor.name, abs(back - data).max())
            writer.add_tensor(tensor.name, stored, raw_dtype=TYPE[name])
        else:
            writer.add_tensor(tensor.name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_tokenizer(folder, name):
    if name.startswith("spm"):
        return write_spm(folder, VOCAB[name], dummy_prefix=name == "spm")
    return write_bpe(folder, VOCAB[name], "gpt-2" if name == "small" else name)


def make(name, item):
    family = FAMILIES[item["family"]]
    k_blocks = KBlocks()
    wanted = {**family, "config": {**family["config"], **item["config"], "vocab_size": VOCAB[item["tokenizer"]]}}
    model, result = best_seed(name, wanted, rounding(item["kind"], k_blocks))
    checkpoint.check_weights(name, model, result)
    checkpoint.check_generation(name, model, result)
    checkpoint.check_precision(name, model, result)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        model.save_pretrained(folder)
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **item["files"]}))
        cases = write_tokenizer(folder, item["tokenizer"])
        pre = "gpt-2" if item["tokenizer"] == "small" else item["tokenizer"]
        source = convert(folder, pre)
        target = OUT / "gguf" / name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        rewrite(source, target / "model.gguf", item["kind"], k_blocks)
    more = {"note": family["note"]} if "note" in family else {}
    if cases is not None:
        more["tokenizerCases"] = cases
    write_results(target, name, result, more)
    size = sum(path.stat().st_size for path in target.iterdir())
    print(f"{name:16} seed {result['seed']:2} gap {result['gap']:.4f} {size / 1000:.0f} kB", flush=True)


def make_vocabulary(name):
    """A file without tensors, as llama.cpp keeps them for tests of its tokenizers, and texts with their ids."""
    size = VOCAB[name]
    family = "gemma2" if name == "spm-gemma" else "llama-head8"
    config = {**json.loads((OUT / family / "config.json").read_text()), "vocab_size": size}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "config.json").write_text(json.dumps(config))
        cases = write_tokenizer(folder, name)
        source = convert(folder, name, "--vocab-only")
        target = OUT / "gguf-tokenizers"
        target.mkdir(exist_ok=True)
        shutil.copy(source, target / f"{name}.gguf")
    (target / f"{name}.json").write_text(json.dumps({"pre": name, "vocabSize": size, "cases": cases}) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    logging.disable(logging.INFO)
    failed = []
    names = sys.argv[2:]
    for file in names or FILES:
        try:
            make(file, FILES[file])
        except Exception:
            failed.append(file)
            traceback.print_exc(limit=-3)
    if not names:
        for vocabulary in VOCABULARIES:
            make_vocabulary(vocabulary)
    sys.exit(f"failed: {failed}" if failed else 0)
