"""Asks an exported model the 100 questions of questions.json, greedily, and writes what came out into scores.json.

An answer is right when, of every inner list of `expect`, at least one word occurs in it, and no word of `reject`. The words of an
answer are its longest runs of letters, digits and underscores, in lower case.
"""

import argparse
import hashlib
import json
import re

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from transformers import AutoTokenizer, LlamaForCausalLM

from export import MODELS
from tokenizer import CONTEXT, OUT
from train import CONFIGS, HERE, encode_corpus

NEW_TOKENS = 80
SCORES = HERE / "scores.json"
BIN = 64  # positions whose loss is averaged
ROWS = 128  # texts of 512 tokens from the held-out conversations


def is_right(answer, question):
    words = set(re.findall(r"\w+", answer.lower()))
    met = all(any(word.lower() in words for word in choices) for choices in question["expect"])
    return met and not any(word.lower() in words for word in question.get("reject", []))


@torch.no_grad()
def reply(model, tokenizer, messages):
    """The greedy answer to a conversation."""
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids = torch.tensor([tokenizer(text, add_special_tokens=False)["input_ids"]])
    output = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW_TOKENS, do_sample=False)
    return tokenizer.decode(output[0, ids.shape[1] :], skip_special_tokens=True)


@torch.no_grad()
def loss_by_position(model, tokenizer):
    """Mean loss of the answers' tokens in every 64 positions of held-out texts of 512 tokens (several conversations each)."""
    ids, weights, _ = encode_corpus(OUT / "heldout.jsonl", tokenizer)
    shape, count = (ROWS, CONTEXT), ROWS * CONTEXT
    inputs, targets, answers = (torch.from_numpy(part.reshape(shape)) for part in (ids[:count], ids[1 : count + 1], weights[1 : count + 1] == 1))
    rows = zip(inputs.split(8), targets.split(8))
    losses = torch.cat([F.cross_entropy(model(input_ids=x, use_cache=False).logits.flatten(0, 1), y.flatten(), reduction="none").view(x.shape) for x, y in rows])
    bins = [slice(at, at + BIN) for at in range(0, CONTEXT, BIN)]
    return [round(float(losses[:, part][answers[:, part]].mean()), 3) for part in bins]


def weights_hash(name):
    """SHA-256 of a model's weights, so that a score can be told from that of other weights."""
    return hashlib.sha256((MODELS / name / "model.safetensors").read_bytes()).hexdigest()


def read_scores():
    return json.loads(SCORES.read_text(encoding="utf-8")) if SCORES.exists() else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=CONFIGS)
    parser.add_argument("--all", action="store_true", help="print the right answers too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = LlamaForCausalLM.from_pretrained(MODELS / options.name, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(MODELS / options.name)
    wrong = []
    questions = json.loads((HERE / "questions.json").read_text(encoding="utf-8"))
    for question in questions:
        answer = reply(model, tokenizer, [*question.get("turns", []), {"role": "user", "content": question["question"]}])
        good = is_right(answer, question)
        if not good:
            wrong.append(question["id"])
        if options.all or not good:
            print("right" if good else "WRONG", question["id"], question["question"], "->", answer)
    right = len(questions) - len(wrong)
    losses = loss_by_position(model, Tokenizer.from_file(str(MODELS / options.name / "tokenizer.json")))
    measured = {"weightsSha256": weights_hash(options.name), "asked": len(questions), "right": right, "wrong": wrong, "lossPer64Positions": losses}
    SCORES.write_text(json.dumps(dict(sorted((read_scores() | {options.name: measured}).items())), indent=2) + "\n", encoding="utf-8")
    print(f"{options.name}: {right} of {len(questions)} right; loss per {BIN} positions {losses}")


if __name__ == "__main__":
    main()
