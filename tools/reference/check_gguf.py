"""Reads the GGUF fixtures with llama.cpp (llama-cpp-python 0.3.x): its greedy ids, and how far its logits are.

    python check_gguf.py [name ...]

llama.cpp multiplies quantised weights by activations rounded to 8 bits: its logits are near, not the same. It chooses
between longrope's factors by the context it's given, not by the text's length, and has no sliding window for phi3.
"""

import json
import sys
from pathlib import Path

import numpy as np
from llama_cpp import Llama

GGUF = Path(__file__).resolve().parents[2] / "test/fixtures/reference/gguf"


def check(folder):
    reference = json.loads((folder / "reference.json").read_text())
    model = Llama(str(folder / "model.gguf"), n_ctx=64, n_threads=1, logits_all=True, verbose=False)
    ids = reference["promptIds"] + reference["greedyIds"][:-1]
    model.eval(ids)
    logits = np.array(model.scores[: len(ids)])
    expected = np.fromfile(folder / "logits.f32", "<f4").reshape(len(ids), -1)
    chosen = logits[len(reference["promptIds"]) - 1 :].argmax(-1).tolist()
    same = sum(a == b for a, b in zip(chosen, reference["greedyIds"]))
    print(f"{folder.name:16} same ids {same}/24, logits differ by {abs(logits - expected).max():.4f}", flush=True)
    check_texts(model, reference.get("tokenizerCases", []))


def check_texts(model, cases):
    for case in cases:
        special = "<|user|>" in case["text"]
        found = model.tokenize(case["text"].encode(), add_bos=False, special=special)
        if found != case["ids"]:
            print("  tokenizer:", repr(case["text"]), found, case["ids"])


def check_vocabulary(path):
    model = Llama(str(path), vocab_only=True, verbose=False)
    print(path.name, flush=True)
    check_texts(model, json.loads(path.with_suffix(".json").read_text())["cases"])


for path in sorted(GGUF.iterdir()):
    if not sys.argv[1:] or path.name in sys.argv[1:]:
        check(path)
if not sys.argv[1:]:
    for path in sorted(GGUF.with_name("gguf-tokenizers").glob("*.gguf")):
        check_vocabulary(path)
