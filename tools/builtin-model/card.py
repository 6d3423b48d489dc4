"""Writes the card of each exported model, public/models/<name>/README.md, from the training log and from what score.py measured."""

import argparse
import re

from safetensors import safe_open

from export import MODELS
from score import BIN, read_scores, weights_hash
from train import CONFIGS, HERE

CARD = """---
license: apache-2.0
language: en
library_name: transformers
pipeline_tag: text-generation
---

# {name}

A very small language model that comes with CrowdInfer, so that a ring of browser tabs has something to run at once,
with no download from anywhere else. It is made to show and to test the network, not to be clever.

| | |
|---|---|
| architecture | Llama (`LlamaForCausalLM`), tied embedding |
| parameters | {parameters:,} |
| layers / hidden / heads / KV heads / MLP | {layers} / {hidden} / {heads} / {kv} / {mlp} |
| vocabulary | 1,024 byte-level BPE pieces |
| context | 512 tokens |
| weights | float16, `model.safetensors` |
| licence | Apache-2.0 |

## What it can do

{ability}

## What it can not do

Almost everything else. It has about two thousand words, no knowledge of the world beyond its corpus, and no other language than English. {weakness}
Questions in unusual words may get the answer to another question. It is trained to say that it does not know, but does not always do so. Do not rely
on what it says. It has not been checked in 4 bits.

## Long chats

Loss per token of the answers, over held-out texts of 512 tokens that hold several conversations each:

| positions | {positions} |
|---|{rule}|
| loss | {losses} |

## Chat form

`<|begin|>` once, then `<|user|>text<|end|>` and `<|assistant|>text<|end|>` in turn, with an optional `<|system|>text<|end|>` first (it has little effect). The
chat template in `tokenizer_config.json` does this. `<|end|>` ends an answer. Greedy decoding works best.

## Data and training

The corpus is made by a seeded generator from sentences that were written for this project; there is no text from third parties in it, and no data about people. The generator, the
tokenizer training, the training loop and the log are in `tools/builtin-model/` of the CrowdInfer repository. PyTorch on two CPU cores; cross entropy in
which the answers count 1 and the reader's words 0.1.

The weights come from three runs in a row, of which the first used earlier versions of the corpus. The held-out losses of the last one:

```
{log}
```

"Held-out" is the loss per token of answers to phrasings that are kept out of the corpus as it is now, in texts of 256 tokens; runs on earlier versions of the corpus had other
phrasings set aside, so read it as a little too good. Quality is judged by {asked} questions that never occur in the corpus (`tools/builtin-model/questions.json`, greedy):
{right} of them are answered rightly, as counted by `score.py`.
"""

ABILITIES = {
    "crowdtalk-2.6m": """Short, simple English: it explains the words of the network (ring, stage, layer, lap, hop and so on), makes small talk, tells
small stories that mostly keep to the hero, name, thing and place that you ask for, mostly remembers your name within one chat, and knows a few facts
about animals, colours, days and food.""",
    "crowdtalk-0.3m": """Short, simple English: it explains many of the words of the network (ring, stage, layer, lap, hop and so on), makes small talk, tells
small stories, and knows a few facts about animals, colours, days and food. It is there for tests.""",
}
WEAKNESSES = {
    "crowdtalk-2.6m": "It is\nusually wrong about sums, and sometimes about facts.",
    "crowdtalk-0.3m": "It is\nusually wrong about sums and often about facts. Its stories do not reliably use the hero, name, thing or place that you ask for, and change them on\nthe way; it seldom remembers your name.",
}


def parameter_count(name):
    with safe_open(str(MODELS / name / "model.safetensors"), "pt") as file:
        return sum(file.get_tensor(key).numel() for key in file.keys())


def last_losses(name):
    """The lines with a held-out loss of the last run in the log."""
    log = (HERE / f"training-log-{name}.txt").read_text(encoding="utf-8")
    last = re.split(r"\n\n", log.strip())[-1].splitlines()
    return [line for line in last if "held-out" in line and not line.startswith("#")]


def model_card(name):
    """The text of a card; the scores must be those of the weights that lie there."""
    measured = read_scores()[name]
    assert measured["weightsSha256"] == weights_hash(name), f"the scores of {name} are those of other weights: run score.py {name}"
    model, losses = CONFIGS[name]["model"], measured["lossPer64Positions"]
    return CARD.format(
        name=name, parameters=parameter_count(name), asked=measured["asked"], right=measured["right"], ability=ABILITIES[name], weakness=WEAKNESSES[name],
        layers=model["num_hidden_layers"], hidden=model["hidden_size"], heads=model["num_attention_heads"], kv=model["num_key_value_heads"], mlp=model["intermediate_size"],
        positions=" | ".join(f"{index * BIN}–{index * BIN + BIN - 1}" for index in range(len(losses))), rule="|".join("---" for _ in losses),
        losses=" | ".join(f"{loss:.3f}" for loss in losses), log="\n".join(last_losses(name)),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(CONFIGS))
    for model_name in parser.parse_args().names:
        (MODELS / model_name / "README.md").write_text(model_card(model_name), encoding="utf-8")
        print(model_name, "card written")
