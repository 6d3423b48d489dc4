"""The model card that goes with the weights."""

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

Short, simple English: it explains the words of the network (ring, stage, layer, lap, hop and so on), makes small talk, tells
small stories about the hero, name, thing and place that you ask for, remembers your name within one chat, and knows a few facts about
animals, colours, days, food, and sums up to twenty.

## What it can not do

Almost everything else. It has about two thousand words, no knowledge of the world beyond its corpus, and no other language than English. It gets
sums and facts wrong now and then, and questions in unusual words may get the answer to another question. It is trained to say that it does not know,
but does not always do so. Do not rely on what it says. It has not been checked in 4 bits.{note}

## Chat form

`<|begin|>` once, then `<|user|>text<|end|>` and `<|assistant|>text<|end|>` in turn, with an optional `<|system|>text<|end|>` first (it has little effect). The
chat template in `tokenizer_config.json` does this. `<|end|>` ends an answer. Greedy decoding works best.

## Data and training

The corpus is made by a seeded generator from sentences that were written for this project; there is no text from third parties in it, and no data about people. The generator, the
tokenizer training, the training loop and the full log are in `tools/builtin-model/` of the CrowdInfer repository. PyTorch on two CPU cores; cross entropy in
which the answers count 1 and the reader's words 0.1.

The end of the log:

```
{log}
```

"Held-out" is the loss per token of answers to phrasings that are kept out of the corpus as it is now; the first runs used earlier versions with other phrasings set
aside, so read it as a little too good. Quality is judged by 100 questions that never occur in the corpus (`tools/builtin-model/questions.json`, greedy):
{score} of them are answered rightly.
"""


# Right answers out of the 100 questions, as counted by score.py.
SCORES = {"crowdtalk-2.6m": 83, "crowdtalk-0.3m": 56}

NOTES = {"crowdtalk-0.3m": " Chats longer than about 320 tokens end in word salad: it was\ntrained at length 256 and only shortly at 512."}


def model_card(name, model, parameters, log):
    """README.md of a model folder."""
    heldout = [line for line in log if "held-out" in line]
    return CARD.format(
        name=name, parameters=parameters, score=SCORES[name], note=NOTES.get(name, ""), layers=model["num_hidden_layers"], hidden=model["hidden_size"], heads=model["num_attention_heads"],
        kv=model["num_key_value_heads"], mlp=model["intermediate_size"], log="\n".join(heldout[-3:]),
    )
