"""Trains one of the models on out/train.jsonl.

The rate rises, stays, and falls to zero; at the very end the texts are longer. A stopped run can go on from its
checkpoint with another number of steps. Same seed, numbers of steps and thread count give the same weights.
"""

import argparse
import json
import os
import pathlib
import shlex
import sys
import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from muon import Muon
from tokenizer import ASSISTANT, BEGIN, CONTEXT, END, OUT, PIECES, SYSTEM, USER

HERE = pathlib.Path(__file__).parent
CONFIGS = {
    "crowdtalk-2.6m": {"model": {"hidden_size": 192, "num_hidden_layers": 6, "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 32, "intermediate_size": 512}, "batch": 16, "warmup": 100},
    "crowdtalk-0.3m": {"model": {"hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 176}, "batch": 16, "warmup": 50},
}
READER_WEIGHT = 0.1  # how much the reader's words count in the loss; the answers count 1
LENGTH = 256
MATRIX_RATE, OTHER_RATE = 0.02, 0.003  # highest rates of Muon (matrices of the layers) and AdamW (embedding and norms)


def model_config(name, tokenizer):
    """The Llama configuration of a model by its name."""
    return LlamaConfig(
        vocab_size=PIECES, max_position_embeddings=CONTEXT, tie_word_embeddings=True, rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        initializer_range=0.02, bos_token_id=tokenizer.token_to_id(BEGIN), eos_token_id=tokenizer.token_to_id(END), pad_token_id=tokenizer.token_to_id(END), **CONFIGS[name]["model"],
    )


def encode_corpus(path, tokenizer):
    """The whole file as one row of ids, how much each counts, and where the conversations start."""
    roles = {"user": tokenizer.token_to_id(USER), "assistant": tokenizer.token_to_id(ASSISTANT), "system": tokenizer.token_to_id(SYSTEM)}
    begin, end = tokenizer.token_to_id(BEGIN), tokenizer.token_to_id(END)
    items = [json.loads(line) for line in path.open(encoding="utf-8")]
    texts = [text for item in items for text in ([item] if isinstance(item, str) else [message["content"] for message in item])]
    encoded = iter(tokenizer.encode_batch_fast(texts))
    ids, weights, starts = [], [], []
    for item in items:
        starts.append(len(ids))
        ids.append(begin)
        weights.append(READER_WEIGHT)
        for role in ["raw"] if isinstance(item, str) else [message["role"] for message in item]:
            body = next(encoded).ids + [end]
            if role != "raw":
                ids.append(roles[role])
                weights.append(READER_WEIGHT)
            ids += body
            weights += [1.0 if role in ("assistant", "raw") else READER_WEIGHT] * len(body)
    return np.array(ids, np.int64), np.array(weights, np.float32), np.array(starts + [len(ids)])


def shuffled(data, rng):
    """The conversations in another order."""
    ids, weights, starts = data
    order = rng.permutation(len(starts) - 1)
    index = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in order])
    return ids[index], weights[index]


@dataclass
class Shape:
    """Rows and length of the batches."""

    batch: int
    length: int


def batches(data, shape, seed):
    """Endless batches; `shape` may change between two of them. Every pass has its own order and offset."""
    rng = np.random.default_rng(seed)
    while True:
        ids, weights = shuffled(data, rng)
        at = int(rng.integers(shape.length))
        while at + shape.batch * shape.length + 1 <= len(ids):
            size = shape.batch * shape.length
            window = slice(at + 1, at + size + 1)
            yield [torch.from_numpy(part.reshape(shape.batch, shape.length)) for part in (ids[at : at + size], ids[window], weights[window])]
            at += size


def loss_of(model, inputs, targets, weights):
    """Mean cross entropy, weighted."""
    logits = model(input_ids=inputs, use_cache=False).logits.float()
    losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return (losses * weights.flatten()).sum() / weights.sum()


@torch.no_grad()
def heldout_loss(model, data, rows=64):
    """Loss per token of the answers to held-out phrasings."""
    ids, weights, _ = data
    count = rows * LENGTH
    parts = [torch.from_numpy(part.reshape(rows, LENGTH)) for part in (ids[:count], ids[1 : count + 1], (weights[1 : count + 1] == 1).astype(np.float32))]
    return float(loss_of(model, *parts))


def rate_factor(step, warmup, steps, fall):
    """Rise, stay, fall."""
    return min(1.0, (step + 1) / warmup, (steps - step) / fall)


def make_optimizers(model):
    """Muon for the matrices of the layers, AdamW for the embedding and the norms."""
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    return [
        (MATRIX_RATE, Muon(matrices, weight_decay=0.05)),
        (OTHER_RATE, torch.optim.AdamW(others, lr=0.0, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.0)),
    ]


def save(path, model, optimizers, step, seconds):
    """A checkpoint that is either the old one or the whole new one."""
    torch.save({"model": model.state_dict(), "optimizers": [optimizer.state_dict() for _, optimizer in optimizers], "step": step, "seconds": seconds}, f"{path}.part")
    os.replace(f"{path}.part", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=CONFIGS)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--fall", type=int, required=True, help="steps of the last phase, in which the rate falls")
    parser.add_argument("--long", type=int, required=True, help="steps at the very end with texts of 512 tokens")
    parser.add_argument("--peak", type=float, default=1.0, help="highest rate, as a part of the usual one")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    parser.add_argument("--warm", metavar="FILE", help="begin with the weights of this checkpoint in place of random ones")
    parser.add_argument("--compile", action="store_true", help="let torch compile the model: faster, same maths")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    tokenizer = Tokenizer.from_file(str(OUT / "tokenizer.json"))
    train_data, heldout_data = (encode_corpus(OUT / f"{part}.jsonl", tokenizer) for part in ("train", "heldout"))
    settings = CONFIGS[options.name]
    model = LlamaForCausalLM(model_config(options.name, tokenizer))
    optimizers = make_optimizers(model)
    checkpoint, log = OUT / f"{options.name}.pt", HERE / f"training-log-{options.name}.txt"
    first, seconds_before = 0, 0.0
    if options.warm:
        model.load_state_dict(torch.load(options.warm, weights_only=True)["model"])
    if options.resume:
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        for (_, optimizer), saved_state in zip(optimizers, state["optimizers"]):
            optimizer.load_state_dict(saved_state)
        first, seconds_before = state["step"], state["seconds"]

    def say(line):
        print(line, flush=True)
        with log.open("a") as file:
            file.write(line + "\n")

    say(f"\n# train.py {shlex.join(sys.argv[1:])}")
    begins = f"goes on from step {first}" if options.resume else f"begins with {'the weights of ' + options.warm if options.warm else 'random weights'}"
    say(f"# {begins}; highest rate x {options.peak}; seed {options.seed}; threads {options.threads}")
    say(f"{options.name}: {sum(p.numel() for p in model.parameters())} parameters, corpus of {len(train_data[0])} tokens, seed {options.seed}")
    say(f"from step {first} to {options.steps}, the last {options.fall} with falling rate, the last {options.long} with length {CONTEXT}")
    run = torch.compile(model) if options.compile else model
    shape = Shape(settings["batch"], LENGTH)
    source = batches(train_data, shape, options.seed + first)
    begin = saved = time.time()
    mean = None
    for step in range(first, options.steps):
        if step >= options.steps - options.long and shape.length == LENGTH:
            shape.batch, shape.length = settings["batch"] // 2, CONTEXT
        factor = options.peak * rate_factor(step, settings["warmup"], options.steps, options.fall)
        loss = loss_of(run, *next(source))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for peak, optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = peak * factor
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        mean = float(loss.detach()) if mean is None else 0.95 * mean + 0.05 * float(loss.detach())
        done, seconds = step + 1, seconds_before + time.time() - begin
        if done % 100 == 0 or done == options.steps:
            heldout = f", held-out {heldout_loss(model, heldout_data):.4f}" if done % 500 == 0 or done == options.steps else ""
            say(f"step {done}, {done * settings['batch'] * LENGTH / 1e6:.2f} M tokens, {seconds / 60:.1f} min, rate x {factor:.3f}, loss {mean:.4f}{heldout}")
        if time.time() - saved > 120 or done == options.steps:
            save(checkpoint, model, optimizers, done, seconds)
            saved = time.time()


if __name__ == "__main__":
    main()
