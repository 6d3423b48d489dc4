"""Writes config.published.json beside config.json: the same settings as the files on the hub spell them.

    python make_configs.py

transformers 5 moved the rope settings into one field; nearly all published models still have the older ones. Each
result is loaded with the weights and must give the logits of logits.f32 exactly.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

import checkpoint
from make_checkpoints import OUT

ROPE_FIELDS = ("rope_theta", "partial_rotary_factor")
# Models from before `rope_type` say `type`.
OLDER_ROPE = ("phi3", "falcon")


def older_rope(config, rope):
    rope = dict(rope)
    for field in ROPE_FIELDS:
        value = rope.pop(field, None)
        if value is not None and not (field == "partial_rotary_factor" and value == 1.0):
            config[field] = value
    if rope.get("rope_type", "default") == "default":
        config["rope_scaling"] = None
        return
    if config["model_type"] in OLDER_ROPE:
        rope["type"] = rope.pop("rope_type")
        if "original_max_position_embeddings" in config:
            rope.pop("original_max_position_embeddings", None)
    config["rope_scaling"] = rope


def older(config):
    config = dict(config)
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.44.0"
    rope = config.pop("rope_parameters", None)
    if rope is not None and "full_attention" in rope:
        older_rope(config, rope["full_attention"])
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        config["sliding_window_pattern"] = config.pop("_sliding_window_pattern") and 2
    elif rope is not None:
        older_rope(config, rope)
    if config["model_type"] != "smollm3":
        config.pop("layer_types", None)
    if config["model_type"] == "qwen3_moe":
        config["num_experts"] = config.pop("num_local_experts")
    return {key: value for key, value in sorted(config.items())}


def main():
    for path in sorted(OUT.glob("*/config.json")):
        folder = path.parent
        config = older(json.loads(path.read_text()))
        with tempfile.TemporaryDirectory() as scratch:
            for file in folder.glob("model*"):
                shutil.copy(file, scratch)
            (Path(scratch) / "config.json").write_text(json.dumps(config))
            attention = checkpoint.attention_of(AutoConfig.from_pretrained(scratch))
            model = AutoModelForCausalLM.from_pretrained(scratch, dtype=torch.float32, attn_implementation=attention)
        if hasattr(model, "set_experts_implementation"):
            model.set_experts_implementation("eager")
        reference = json.loads((folder / "reference.json").read_text())
        ids = torch.tensor([reference["promptIds"] + reference["greedyIds"][:-1]])
        logits = checkpoint.logits_of(model.eval(), ids).numpy()
        stored = np.fromfile(folder / "logits.f32", "<f4").reshape(logits.shape)
        error = abs(logits - stored).max()
        print(f"{folder.name:20} {error}", flush=True)
        if error != 0:
            sys.exit(f"{folder.name}: not the same model")
        (folder / "config.published.json").write_text(json.dumps(config) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    main()
