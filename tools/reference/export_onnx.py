"""Tiny random models, exported to ONNX by the exporters that published files come from.

    python export_onnx.py ../../test/fixtures/reference/onnx [NAME ...]

Each folder gets config.json, tokenizer.json, onnx/model*.onnx and reference.json: what ONNX Runtime's
Python package computes on the unsplit file. The two exporters need different versions of transformers, so
each takes an environment of its own: requirements-onnx-genai.txt, requirements-onnx-optimum.txt.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch
import transformers
from tokenizers import Tokenizer, decoders, models

VOCAB = 96
CONTEXT = 64
PROMPT = [5, 17, 3, 88, 41, 9, 60, 2, 33, 71, 12]
COUNT = 12

SMALL = dict(
    vocab_size=VOCAB,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    max_position_embeddings=CONTEXT,
    bos_token_id=1,
    eos_token_id=0,
    pad_token_id=0,
)

FAMILIES = {
    "llama": lambda **kw: transformers.LlamaConfig(**{**SMALL, **kw}),
    "qwen3": lambda **kw: transformers.Qwen3Config(**{**SMALL, "tie_word_embeddings": True, **kw}),
    "qwen2": lambda **kw: transformers.Qwen2Config(**{**SMALL, "tie_word_embeddings": True, **kw}),
    "mistral": lambda **kw: transformers.MistralConfig(**{**SMALL, "sliding_window": 8, **kw}),
    "gemma3": lambda **kw: transformers.Gemma3TextConfig(
        **{
            **SMALL,
            "num_hidden_layers": 2,
            "sliding_window": 8,
            "layer_types": ["sliding_attention", "full_attention"],
            "query_pre_attn_scalar": 16,
            **kw,
        }
    ),
    "phi3": lambda **kw: transformers.Phi3Config(**{**SMALL, "num_hidden_layers": 2, "original_max_position_embeddings": CONTEXT, "hidden_size": 64, **kw}),
    "gpt2": lambda **kw: transformers.GPT2Config(
        vocab_size=VOCAB, n_positions=CONTEXT, n_embd=32, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=0, **kw
    ),
    "gptneox": lambda **kw: transformers.GPTNeoXConfig(
        vocab_size=VOCAB, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=CONTEXT, rotary_pct=0.5, bos_token_id=1, eos_token_id=0, use_parallel_residual=True, **kw
    ),
    "gptoss": lambda **kw: transformers.GptOssConfig(
        **{
            **SMALL,
            "num_hidden_layers": 2,
            "hidden_size": 64,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "sliding_window": 8,
            "layer_types": ["sliding_attention", "full_attention"],
            "initial_context_length": CONTEXT,
            "rope_scaling": None,
            **kw,
        }
    ),
}


@dataclass
class Export:
    family: str
    exporter: str
    dtype: str
    file: str
    changes: dict = field(default_factory=dict)
    options: list = field(default_factory=list)
    provider: str = "cpu"
    """Chosen for a lead of every token that rounding can't turn."""
    seed: int = 7
    """Set where no CPU runs the file: the reference is then what transformers computes in float32."""
    reference: str = "onnxruntime"


EXPORTS = {
    "genai-llama-fp32": Export("llama", "genai", "fp32", "model.onnx"),
    "genai-llama-fp16": Export("llama", "genai", "fp16", "model_fp16.onnx", dict(num_hidden_layers=2), provider="webgpu"),
    "genai-llama-q4": Export("llama", "genai", "int4", "model_q4.onnx", dict(tie_word_embeddings=True), ["shared_embeddings=true"]),
    "genai-qwen3-fp32": Export("qwen3", "genai", "fp32", "model.onnx", dict(num_hidden_layers=2), options=["shared_embeddings=true"]),
    "genai-qwen3-fp16": Export("qwen3", "genai", "fp16", "model_fp16.onnx", dict(num_hidden_layers=2), provider="webgpu", reference="transformers"),
    "genai-phi3-q4": Export("phi3", "genai", "int4", "model_q4.onnx"),
    "genai-gptoss-q4": Export("gptoss", "genai", "int4", "model_q4.onnx", options=["windowed_kv_cache=false"]),
    "optimum-llama-fp32": Export("llama", "optimum", "fp32", "model.onnx", dict(num_hidden_layers=2)),
    "optimum-llama-fp16": Export("llama", "optimum", "fp16", "model_fp16.onnx", dict(num_hidden_layers=2)),
    "optimum-llama-q4": Export("llama", "optimum", "q4", "model_q4.onnx", dict(num_hidden_layers=2)),
    "optimum-mistral-bnb4": Export("mistral", "optimum", "bnb4", "model_bnb4.onnx", dict(num_hidden_layers=2)),
    "optimum-gemma3-fp32": Export("gemma3", "optimum", "fp32", "model.onnx"),
    "optimum-gpt2-fp32": Export("gpt2", "optimum", "fp32", "model.onnx"),
    "optimum-qwen2-int8": Export("qwen2", "optimum", "int8", "model_quantized.onnx", dict(num_hidden_layers=2), seed=4),
    "optimum-qwen3-uint8": Export("qwen3", "optimum", "uint8", "model_uint8.onnx", dict(num_hidden_layers=2)),
    "optimum-gptneox-q4f16": Export("gptneox", "optimum", "q4f16", "model_q4f16.onnx"),
}


def main() -> None:
    root = Path(sys.argv[1])
    names = sys.argv[2:] or list(EXPORTS)
    for name in names:
        export = EXPORTS[name]
        with tempfile.TemporaryDirectory() as work:
            make(root / name, export, Path(work))


def make(target: Path, export: Export, work: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    (target / "onnx").mkdir(parents=True)
    checkpoint = work / "checkpoint"
    save_checkpoint(export, checkpoint)
    file = target / "onnx" / export.file
    if export.exporter == "genai":
        export_genai(export, checkpoint, work, file)
    else:
        export_optimum(export, checkpoint, work, file)
    shutil.copy(checkpoint / "config.json", target)
    save_tokenizer(target)
    write_reference(target, file, export, checkpoint)


def save_checkpoint(export: Export, folder: Path) -> None:
    config = FAMILIES[export.family](**export.changes)
    torch.manual_seed(export.seed)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            # Fresh weights of 0.02 would give logits that are all alike; norms of one would be merged.
            if value.ndim >= 2:
                value.normal_(0, 1.2 / value.shape[-1] ** 0.5)
            else:
                value.add_(torch.randn_like(value) * 0.2)
    model.config.torch_dtype = torch.float32
    model.generation_config = transformers.GenerationConfig(bos_token_id=1, eos_token_id=0)
    model.save_pretrained(folder)
    save_tokenizer(folder)
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))


def save_tokenizer(folder: Path) -> None:
    characters = [chr(code) for code in range(33, 33 + VOCAB - 2)]
    vocab = {"<end>": 0, "<start>": 1, **{char: i + 2 for i, char in enumerate(characters)}}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[], unk_token="<end>"))
    tokenizer.decoder = decoders.Fuse()
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)


def export_genai(export: Export, checkpoint: Path, work: Path, file: Path) -> None:
    out = work / "out"
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder"]
    command += ["-m", str(checkpoint), "-i", str(checkpoint), "-o", str(out), "-p", export.dtype, "-e", export.provider, "-c", str(work / "cache")]
    if export.options:
        command += ["--extra_options", *export.options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.copy(out / "model.onnx", file)
    data = out / "model.onnx.data"
    if data.exists():
        shutil.copy(data, file.parent / "model.onnx.data")


def export_optimum(export: Export, checkpoint: Path, work: Path, file: Path) -> None:
    from optimum.exporters.onnx import main_export

    out = work / "out"
    main_export(str(checkpoint), output=out, task="text-generation-with-past", do_validation=False, no_post_process=False)
    model = onnx.load(out / "model.onnx")
    if export.dtype in ("int8", "uint8"):
        from onnxruntime.quantization import QuantType, quantize_dynamic

        kind = QuantType.QInt8 if export.dtype == "int8" else QuantType.QUInt8
        # Processors without VNNI saturate sums of signed 8-bit weights: 7 bits give the same everywhere.
        signed = export.dtype == "int8"
        quantize_dynamic(out / "model.onnx", file, weight_type=kind, per_channel=signed, reduce_range=signed)
        return
    if export.dtype in ("q4", "q4f16"):
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

        quantizer = MatMulNBitsQuantizer(model, block_size=32, is_symmetric=export.dtype == "q4f16", accuracy_level=4 if export.dtype == "q4" else 0)
        quantizer.process()
        model = quantizer.model.model
    if export.dtype == "bnb4":
        from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer

        quantizer = MatMulBnb4Quantizer(model, quant_type=MatMulBnb4Quantizer.NF4, block_size=64)
        quantizer.process()
        model = quantizer.model.model
    if export.dtype in ("fp16", "q4f16"):
        from onnxruntime.transformers.float16 import convert_float_to_float16

        model = convert_float_to_float16(model, keep_io_types=["logits"])
    if export.exporter == "optimum" and export.dtype == "fp32" and export.family == "gpt2":
        onnx.save_model(model, file, save_as_external_data=True, location=f"{file.name}_data", size_threshold=100)
    else:
        onnx.save_model(model, file)


def write_reference(target: Path, file: Path, export: Export, checkpoint: Path) -> None:
    step = transformers_steps(checkpoint) if export.reference == "transformers" else onnxruntime_steps(target, file)
    ids, rows = [], []
    while len(ids) < COUNT:
        logits = step(ids[-1:] or PROMPT).astype(np.float64)
        rows.append([float(f"{value:.6g}") for value in logits])
        ids.append(int(logits.argmax()))
    gap = min(np.sort(row)[-1] - np.sort(row)[-2] for row in rows)
    reference = dict(
        file=f"onnx/{file.name}", dtype=export.dtype, by=export.reference, promptIds=PROMPT, ids=ids, minGap=float(f"{gap:.3g}"), logits=rows[:3]
    )
    (target / "reference.json").write_text(json.dumps(reference))
    ops = {}
    for node in onnx.load(file, load_external_data=False).graph.node:
        ops[node.op_type] = ops.get(node.op_type, 0) + 1
    size_kb = sum(path.stat().st_size for path in target.rglob("*") if path.is_file()) // 1024
    print(target.name, f"{size_kb} kB gap {gap:.3g}", dict(sorted(ops.items())))


def transformers_steps(checkpoint: Path):
    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, attn_implementation="eager").eval()
    history = []

    def step(ids: list[int]) -> np.ndarray:
        history.extend(ids)
        with torch.no_grad():
            return model(torch.tensor([history])).logits[0, -1].numpy()

    return step


def onnxruntime_steps(target: Path, file: Path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    config = json.loads((target / "config.json").read_text())
    query_heads = config.get("num_attention_heads", config.get("n_head"))
    heads = config.get("num_key_value_heads", query_heads)
    size = config.get("head_dim") or config.get("hidden_size", config.get("n_embd")) // query_heads
    inputs = {value.name: value for value in session.get_inputs()}
    outputs = [value.name for value in session.get_outputs()]
    cache_type = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
    past = {
        name: np.zeros([1, heads, 0, size], cache_type[value.type]) for name, value in inputs.items() if name.startswith("past_key_values")
    }
    length = 0

    def step(ids: list[int]) -> np.ndarray:
        nonlocal length
        length += len(ids)
        feeds = {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones([1, length], np.int64), **past}
        if "position_ids" in inputs:
            feeds["position_ids"] = np.arange(length - len(ids), length, dtype=np.int64)[None]
        result = dict(zip(outputs, session.run(None, {name: feeds[name] for name in inputs})))
        past.update({name.replace("present", "past_key_values"): value for name, value in result.items() if name.startswith("present")})
        return result["logits"][0, -1]

    return step


if __name__ == "__main__":
    main()
