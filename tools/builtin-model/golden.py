"""Reference values for the tests, computed by transformers' LlamaForCausalLM in float32 from the exported float16 weights.

Writes test/golden/<name>.json for each model and test/golden/tokenizer.json.
"""

import argparse
import json

import torch
from tokenizers import Tokenizer
from transformers import AutoTokenizer, LlamaForCausalLM

from export import MODELS
from train import CONFIGS, HERE

GOLDEN = HERE.parent.parent / "test" / "golden"
NEW_TOKENS = 64
NEAR_TIE = 0.02
LONG = (
    "Once upon a time there was a little fox named Anna. She lived in the forest and liked to walk around. One morning Anna found a red balloon behind a big stone. "
    "\"Whose red balloon is this?\" she asked. Then a hedgehog came by and offered to help. Together they looked all day until the sun went down."
)


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


# 241 tokens: the answer goes on past position 256, where a chain's cache of keys and values has to grow, and past 300.
CHAT = [
    user("Hello!"), assistant("Hi there! I am happy that you are here. Ask me something."),
    user("What is a ring?"), assistant("A ring is a circle of browser tabs. Each tab holds some layers of the model, and the last tab sends the new token back to the first."),
    user("What is a stage?"), assistant("A stage is some layers of the model that one tab computes. After that it sends the result to the next stage."),
    user("What is a hop?"), assistant("A hop is one step from a tab to the next tab. Fewer hops makes the answer faster."),
    user("What does a cow say?"), assistant("A cow says moo. We say that cows moo."),
    user("Who can see my text?"), assistant("Anyone who runs a stage may be able to read your prompt. So do not write secrets, and use an invite link for a private pool."),
    user("How many legs does a spider have?"), assistant("A spider has eight legs."),
    user("Tell me a story."),
]

# Raw prompts are texts; chat prompts are lists of messages.
PROMPTS = [
    [user("Hello!")],
    [user("What is a ring?")],
    [user("Who can see my text?")],
    [user("Tell me a story about a fox named Lily in the forest.")],
    [user("My name is Anna."), assistant("Nice to meet you, Anna! How can I help you?"), user("What is my name?")],
    [{"role": "system", "content": "You are a helpful assistant."}, user("what does a cow say"), assistant("A cow says moo. We say that cows moo."), user("And where do cows live?")],
    "<|begin|>Once upon a time there was a brave girl",
    f"<|begin|>{LONG}",
    [user("What is 3 plus 4?")],
    [user("I am tired.")],
    CHAT,
]
DETAILED = 1  # the prompt with logits and hidden states

TEXTS = [
    "", "Hello", "Hello!", " Hello", "  two  spaces  ", "line one\nline two\n\nline four", "\ttab and\r\nreturn", "What's the day after Monday?", "what is 12 + 7 = 19?", "1234567890", "Café, naïve, Übergröße, señor", "Привет, мир", "你好，世界", "こんにちは",
    "🦊 says hi 👩‍👩‍👧‍👦!", "e\u0301 is not é", "CrowdInfer runs on WebGPU and WebRTC.", "<|begin|><|user|>Hi<|end|><|assistant|>", "a<|end|>b", "<|end|> <|end|>", "<|unknown|>", "<|begin", "don't can't I'm you're", "UPPER lower MiXeD", "...!?;:--", "a\u00a0b\u200bc",
    "Tell me a story about a fox named Lily in the forest.", "x" * 40, "   ", "\n",
]


def six_digits(tensor):
    return [float(f"{value:.6g}") for value in tensor.tolist()]


@torch.no_grad()
def greedy(model, prompt_ids):
    """Greedy ids, and the smallest lead of the best token over the second."""
    ids, gap, cache = [], float("inf"), None
    feed = prompt_ids
    for _ in range(NEW_TOKENS):
        output = model(torch.tensor([feed]), past_key_values=cache, use_cache=True)
        values, indices = output.logits[0, -1].topk(2)
        gap = min(gap, float(values[0] - values[1]))
        ids.append(int(indices[0]))
        feed, cache = ids[-1:], output.past_key_values
        if ids[-1] == model.config.eos_token_id:
            break
    return ids, gap


@torch.no_grad()
def detail(model, prompt_ids):
    """Logits of the last position, and the residual stream there after every layer, before the final norm."""
    residuals = []
    hooks = [layer.register_forward_hook(lambda _module, _inputs, output: residuals.append(output[0] if isinstance(output, tuple) else output)) for layer in model.model.layers]
    logits = model(torch.tensor([prompt_ids]), use_cache=False).logits[0, -1]
    for hook in hooks:
        hook.remove()
    return {"logits": six_digits(logits), "hidden": [six_digits(residual.reshape(-1, residual.shape[-1])[-1]) for residual in residuals]}


def case(model, tokenizer, prompt, detailed):
    raw = isinstance(prompt, str)
    text = prompt if raw else tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
    prompt_ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    ids, gap = greedy(model, prompt_ids)
    result = {"prompt": text, "raw": raw, **({} if raw else {"messages": prompt}), "promptIds": prompt_ids, "ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=True), "minGap": float(f"{gap:.6g}")}
    if gap < NEAR_TIE:
        result["nearTie"] = True
    return result | (detail(model, prompt_ids) if detailed else {})


def write(path, value):
    """One case a line, so that changes can be read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join(json.dumps(item, ensure_ascii=False) for item in value) + "\n]\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(CONFIGS))
    torch.set_num_threads(1)
    names = parser.parse_args().names
    for name in names:
        model = LlamaForCausalLM.from_pretrained(MODELS / name, dtype=torch.float32).eval()
        tokenizer = AutoTokenizer.from_pretrained(MODELS / name)
        cases = [case(model, tokenizer, prompt, index == DETAILED) for index, prompt in enumerate(PROMPTS)]
        write(GOLDEN / f"{name}.json", cases)
        for item in cases:
            print(name, item["minGap"], item["text"])
    plain = Tokenizer.from_file(str(MODELS / names[0] / "tokenizer.json"))
    write(GOLDEN / "tokenizer.json", [{"text": text, "ids": plain.encode(text, add_special_tokens=False).ids} for text in TEXTS])


if __name__ == "__main__":
    main()
