"""Writes a checkpoint as a model folder in the Hugging Face layout: public/models/<name>/. Its card is written by card.py, after score.py."""

import argparse
import json
import shutil

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from tokenizer import CONTEXT, OUT, PIECES
from train import CONFIGS, HERE, model_config

MODELS = HERE.parent.parent / "public" / "models"


def llama_config(name, tokenizer):
    """config.json with every field that readers of Llama configurations look for."""
    config = model_config(name, tokenizer)
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "float16", "vocab_size": PIECES, **CONFIGS[name]["model"], "hidden_act": "silu",
        "max_position_embeddings": CONTEXT, "rms_norm_eps": config.rms_norm_eps, "rope_theta": 10000.0, "rope_scaling": None, "tie_word_embeddings": True, "attention_bias": False,
        "attention_dropout": 0.0, "mlp_bias": False, "initializer_range": config.initializer_range, "bos_token_id": config.bos_token_id, "eos_token_id": config.eos_token_id,
        "pad_token_id": config.pad_token_id, "use_cache": True,
    }


def half_weights(state):
    """The weights in float16, without the head that is the embedding once more."""
    return {name: tensor.to(torch.float16).contiguous() for name, tensor in sorted(state.items()) if name != "lm_head.weight"}


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def export(name):
    folder = MODELS / name
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer.from_file(str(OUT / "tokenizer.json"))
    state = torch.load(OUT / f"{name}.pt", weights_only=True)
    config = llama_config(name, tokenizer)
    weights = half_weights(state["model"])
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")})
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(OUT / file, folder / file)
    parameters = sum(tensor.numel() for tensor in weights.values())
    print(name, parameters, "parameters,", (folder / "model.safetensors").stat().st_size, "bytes, step", state["step"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(CONFIGS))
    for model_name in parser.parse_args().names:
        export(model_name)
