"""Writes the training conversations: out/train.jsonl and, from held-out phrasings, out/heldout.jsonl.

Every line is a list of messages, or a plain text for the few raw stories. The same seed gives the same bytes.
"""

import argparse
import collections
import json
import pathlib
import random
import re

from corpus import advice, animals, facts, memory, network_howto, network_more, network_terms, social, stories, unknown, words, world
from corpus.style import dress

OUT = pathlib.Path(__file__).parent / "out"
INTENTS = [
    *network_terms.TERMS, *network_howto.HOWTO, *network_more.MORE, *social.GREETINGS, *social.IDENTITY, *advice.FEELINGS, *advice.FUN,
    *animals.ANIMALS, *animals.EXTRA, *words.WORDS, *facts.TABLES, *world.WORLD,
]
NETWORK = {intent.name for intent in [*network_terms.TERMS, *network_howto.HOWTO, *network_more.MORE]}
WEIGHTS = [intent.weight * (1.5 if intent.name in NETWORK else 1.0) for intent in INTENTS]
THANKS = next(intent for intent in social.GREETINGS if intent.name == "thanks")
BYE = next(intent for intent in social.GREETINGS if intent.name == "bye")
MORE_ASKS = ["tell me more", "more please", "go on", "can you say more", "and what else", "say it in other words", "explain it again", "i do not understand", "what do you mean", "again please", "more", "say that again", "can you explain that"]
SYSTEMS = ["You are a helpful assistant.", "You are CrowdTalk, a small language model.", "Answer in short and simple sentences.", "You are a friendly assistant. Be kind.", "You are CrowdTalk, the built-in model of CrowdInfer."]


def simple_pair(rng, heldout):
    """One question and answer that need nothing before them."""
    kind = rng.random()
    if kind < 0.055:
        return stories.story_pair(rng, heldout)
    if kind < 0.085:
        return unknown.unknown_pair(rng, heldout)
    if kind < 0.095:
        return memory.untold_pair(rng, heldout)
    intent = rng.choices(INTENTS, WEIGHTS)[0]
    if heldout and not intent.heldout_ask:
        return simple_pair(rng, heldout)
    return intent.pair(rng, heldout)


def follow_turns(rng, heldout):
    """A question, and a second one that leans on the first: another row, more words, thanks."""
    intent = rng.choices(INTENTS, WEIGHTS)[0]
    row = rng.choice(intent.rows)
    first = intent.pair(rng, heldout and bool(intent.heldout_ask), row)
    if intent.follow:
        other = rng.choice(intent.rows)
        ask = rng.choice(intent.follow)
        return [first, (stories.expand(ask, rng, other), intent.reply(rng, other))]
    if intent.more and rng.random() < 0.7:
        answers = [a for a in intent.answer if stories.sentence_case(stories.expand(a, rng, row)) != first[1]] or intent.answer
        return [first, (rng.choice(MORE_ASKS), stories.sentence_case(stories.expand(rng.choice(answers), rng, row)))]
    return [first, rng.choice([THANKS, BYE]).pair(rng)]


def conversation(rng, heldout=False):
    """The turns of one conversation as pairs of question and answer."""
    kind = rng.random()
    if kind < 0.85:
        turns = [simple_pair(rng, heldout)]
    elif kind < 0.895:
        told, asked = memory.memory_turns(rng, heldout)
        between = [simple_pair(rng, heldout) for _ in range(rng.choice([0, 0, 1, 1, 2]))]
        turns = [told, *between, asked]
    elif kind < 0.965:
        turns = follow_turns(rng, heldout)
    else:
        turns = [simple_pair(rng, heldout) for _ in range(rng.choice([2, 2, 3, 3, 4, 6]))]
    return turns


def messages(rng, heldout=False):
    """One conversation in the form that chat templates take."""
    result = []
    if rng.random() < 0.04:
        result.append({"role": "system", "content": rng.choice(SYSTEMS)})
    for question, answer in conversation(rng, heldout):
        result.append({"role": "user", "content": dress(question, rng)})
        result.append({"role": "assistant", "content": answer})
    return result


def write(path, count, rng, heldout=False):
    """Writes `count` conversations and says what is in them."""
    vocabulary = collections.Counter()
    pairs = several = 0
    with path.open("w", encoding="utf-8") as file:
        for _ in range(count):
            item = stories.tell(rng, stories.cast(rng)) if rng.random() < 0.01 else messages(rng, heldout)
            file.write(json.dumps(item, ensure_ascii=False) + "\n")
            texts = [item] if isinstance(item, str) else [message["content"] for message in item]
            pairs += len(texts) // 2
            several += len(texts) > 3
            for text in texts:
                vocabulary.update(re.findall(r"[a-z]+(?:'[a-z]+)?", text.lower()))
    common = sum(1 for times in vocabulary.values() if times >= 20)
    print(f"{path.name}: {count} conversations, {pairs} pairs, {several} with several turns, {common} words that occur 20 times or more")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=20261)
    parser.add_argument("--conversations", type=int, default=150_000)
    parser.add_argument("--heldout", type=int, default=3_000)
    options = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    print(f"{len(INTENTS)} intents, seed {options.seed}")
    write(OUT / "train.jsonl", options.conversations, random.Random(options.seed))
    write(OUT / "heldout.jsonl", options.heldout, random.Random(options.seed + 1), heldout=True)


if __name__ == "__main__":
    main()
