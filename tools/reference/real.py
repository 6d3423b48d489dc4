"""Writes MODEL.reference.json: what transformers, or llama.cpp, makes of a downloaded model; `npm run check:real` compares.

    python real.py [--llama-cpp] MODEL ...

MODEL is a .gguf file or a directory in the Hugging Face layout. In float32, from the weights as stored: ids of the
prompts and of the text (test/real), 32 greedy ids behind each prompt, the end of text being no end, and over the text,
token by token, the likeliest next id, and the perplexity.
"""

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np

TEXTS = Path(__file__).resolve().parents[2] / "test/real"
GREEDY = 32
QUESTION = "What is the capital of France?"
CHUNK = 64


class Transformers:
    def __init__(self, path):
        import torch
        import transformers
        from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

        torch.set_grad_enabled(False)
        self.torch, self.cache_of = torch, DynamicCache
        self.by = f"transformers {transformers.__version__}"
        folder, extra = (path, {}) if path.is_dir() else (path.parent, {"gguf_file": path.name})
        self.tokenizer = AutoTokenizer.from_pretrained(folder, **extra)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **extra)
        self.model = model.eval()
        self.start()

    def start(self):
        self.cache = self.cache_of(config=self.model.config)

    def encode(self, text):
        return self.tokenizer(text).input_ids

    def chat(self):
        if self.tokenizer.chat_template is None:
            return None
        messages = [{"role": "user", "content": QUESTION}]
        return self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"]

    def step(self, ids):
        """Logits [ids, vocabulary] behind everything since start()."""
        output = self.model(self.torch.tensor([ids]), past_key_values=self.cache, use_cache=True)
        return output.logits[0].numpy()


class LlamaCpp:
    def __init__(self, path):
        import llama_cpp

        self.by = f"llama-cpp-python {llama_cpp.__version__}"
        self.model = llama_cpp.Llama(str(path), n_ctx=1024, n_threads=1, logits_all=True, verbose=False)

    def start(self):
        self.model.reset()

    def encode(self, text):
        bos = self.model.metadata.get("tokenizer.ggml.add_bos_token", "false") == "true"
        return self.model.tokenize(text.encode(), add_bos=bos, special=False)

    def chat(self):
        return None

    def step(self, ids):
        self.model.eval(ids)
        return np.array(self.model.scores[self.model.n_tokens - len(ids) : self.model.n_tokens])


def greedy(model, prompt):
    model.start()
    row = model.step(prompt)[-1]
    ids = []
    while True:
        ids.append(int(row.argmax()))
        if len(ids) == GREEDY:
            return ids
        row = model.step(ids[-1:])[-1]


def follow(model, ids):
    """The likeliest id after each token, and the perplexity of what follows."""
    model.start()
    likeliest, losses = [], []
    for at in range(0, len(ids) - 1, CHUNK):
        run = ids[at : min(at + CHUNK, len(ids) - 1)]
        for row, target in zip(model.step(run), ids[at + 1 :]):
            row = row.astype(np.float64)
            top = row.max()
            likeliest.append(int(row.argmax()))
            losses.append(top + math.log(np.exp(row - top).sum()) - row[target])
    return likeliest, math.exp(sum(losses) / len(losses))


def reference(path, use_llama_cpp):
    started = time.time()
    model = LlamaCpp(path) if use_llama_cpp else Transformers(path)
    prompts = json.loads((TEXTS / "prompts.json").read_text())
    text = (TEXTS / "text.txt").read_text()
    prompt_ids = [model.encode(prompt) for prompt in prompts]
    text_ids = model.encode(text)
    likeliest, perplexity = follow(model, text_ids)
    result = {
        "by": model.by,
        "prompts": [
            {"text": prompt, "ids": ids, "greedyIds": greedy(model, ids)}
            for prompt, ids in zip(prompts, prompt_ids)
        ],
        "question": QUESTION,
        "questionIds": model.chat(),
        "text": text,
        "textIds": text_ids,
        "likeliestIds": likeliest,
        "perplexity": perplexity,
    }
    target = path.with_name(path.name + ".reference.json")
    target.write_text(json.dumps(result, ensure_ascii=False) + "\n")
    print(f"{target}: perplexity {perplexity:.4f} by {model.by}, {time.time() - started:.0f} s", flush=True)


parser = argparse.ArgumentParser()
parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
parser.add_argument("--llama-cpp", action="store_true", help="by llama.cpp, of which weights and activations are rounded")
arguments = parser.parse_args()
for model_path in arguments.models:
    reference(model_path.resolve(), arguments.llama_cpp)
