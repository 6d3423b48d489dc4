"""Asserts that none of the 100 questions occurs in the training corpus, whatever its case and marks."""

import json
import re

from tokenizer import OUT
from train import HERE


def bare(text):
    """Letters and digits only, in words."""
    return " ".join(re.findall(r"\w+", text.lower()))


def main():
    questions = {bare(question["question"]): question["id"] for question in json.loads((HERE / "questions.json").read_text(encoding="utf-8"))}
    found = set()
    with (OUT / "train.jsonl").open(encoding="utf-8") as file:
        for line in file:
            item = json.loads(line)
            if not isinstance(item, str):
                found |= {bare(message["content"]) for message in item if message["role"] == "user"} & set(questions)
    assert not found, f"questions that occur in the training corpus: {sorted((questions[text], text) for text in found)}"
    print(f"none of the {len(questions)} questions occurs in the training corpus")


if __name__ == "__main__":
    main()
