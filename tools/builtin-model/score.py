"""Asks an exported model the 100 questions of questions.json, greedily, and counts the right answers.

An answer is right when, of every inner list of `expect`, at least one word occurs in it as a whole word.
"""

import argparse
import json
import re

import torch
from transformers import AutoTokenizer, LlamaForCausalLM

from export import MODELS
from train import CONFIGS, HERE

NEW_TOKENS = 80


def is_right(answer, expect):
    words = set(re.findall(r"\w+", answer.lower()))
    return all(any(word.lower() in words for word in choices) for choices in expect)


@torch.no_grad()
def reply(model, tokenizer, messages):
    """The greedy answer to a conversation."""
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids = torch.tensor([tokenizer(text, add_special_tokens=False)["input_ids"]])
    output = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW_TOKENS, do_sample=False)
    return tokenizer.decode(output[0, ids.shape[1] :], skip_special_tokens=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=CONFIGS)
    parser.add_argument("--all", action="store_true", help="print the right answers too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = LlamaForCausalLM.from_pretrained(MODELS / options.name, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(MODELS / options.name)
    right = 0
    questions = json.loads((HERE / "questions.json").read_text(encoding="utf-8"))
    for question in questions:
        answer = reply(model, tokenizer, [*question.get("turns", []), {"role": "user", "content": question["question"]}])
        good = is_right(answer, question["expect"])
        right += good
        if options.all or not good:
            print("right" if good else "WRONG", question["id"], question["question"], "->", answer)
    print(f"{options.name}: {right} of {len(questions)} right")


if __name__ == "__main__":
    main()
