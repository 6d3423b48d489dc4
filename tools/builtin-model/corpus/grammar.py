"""A tiny template language and the `Intent` that everything in the corpus is made of.

A template is plain text with two constructs:

- `{name}` is replaced by the value of that slot; `{a:name}` puts "a" or "an" before it;
- `[one|two|]` picks one of the alternatives (which may be empty, and may nest).
"""

import re
import zlib
from dataclasses import dataclass, field

SLOT = re.compile(r"\{(a:)?(\w+)\}")
CHOICE = re.compile(r"\[([^\[\]]*)\]")


def stable_hash(text):
    """A hash that is the same in every run and on every machine."""
    return zlib.crc32(text.encode())


def with_article(noun):
    """`fox` -> `a fox`, `owl` -> `an owl`."""
    return ("an " if noun[0].lower() in "aeiou" else "a ") + noun


def expand(template, rng, slots=None):
    """Fills the slots of a template and picks one of each list of alternatives."""
    slots = slots or {}

    def fill(match):
        value = str(slots[match.group(2)])
        return with_article(value) if match.group(1) else value

    text = SLOT.sub(fill, template)
    while CHOICE.search(text):
        text = CHOICE.sub(lambda match: rng.choice(match.group(1).split("|")), text)
    return re.sub(r"\s+([.,!?;:])", r"\1", re.sub(r"[ \t]+", " ", text)).strip()


def sentence_case(text):
    """A capital letter at the start of every sentence."""
    return re.sub(r"(^|[.!?] )([a-z])", lambda m: m.group(1) + m.group(2).upper(), text)


# The ways to ask about a thing by its name; `{t}` is a noun phrase such as "a ring".
TOPIC_FRAMES = [
    "what is {t}",
    "what [exactly|really] is {t}",
    "what is {t} [here|in crowdinfer|in this network]",
    "so what is {t} then",
    "what does {t} mean",
    "what do you mean by {t}",
    "what is meant by {t}",
    "[can|could] you explain {t} [|to me|for me]",
    "[please|] explain {t} [|to me]",
    "explain what {t} is",
    "explain {t} in simple words",
    "tell me about {t}",
    "tell me [something|more] about {t}",
    "tell me what {t} is",
    "[can|could] you tell me what {t} is",
    "do you know what {t} is",
    "describe {t}",
    "define {t}",
    "i do not [understand|know|get] {t}",
    "i do not [know|understand] what {t} is",
    "what about {t}",
    "how would you [explain|describe] {t}",
    "i [want|would like] to know what {t} is",
    "i keep [reading|hearing] about {t}, what is [it|that]",
    "what is {t} for",
    "what is {t} good for",
    "what [is the meaning|is the idea] of {t}",
    "why [do we need|is there] {t}",
    "what does {t} do",
    "how does {t} work",
    "give me a short [answer|explanation]: what is {t}",
    "help me understand {t}",
    "{t}: what is that",
    "what kind of thing is {t}",
    "what should i know about {t}",
    "what is there to say about {t}",
    "i have a question about {t}",
    "i saw the word {t} [here|on the page], what is it",
    "{t}, what does that mean",
    "give me an idea of {t}",
    "who can explain {t} to me",
    "make me understand {t}",
    "what role does {t} play",
    "is {t} important",
    "where do i find {t}",
    "what is so special about {t}",
    "talk to me about {t}",
    "we talk about {t}, but what is it",
    "a question about {t}: what is it",
    "what do people mean when they say {t}",
    "what is the use of {t}",
    "why would [i|we|you|anyone] want {t}",
    "when do [we|you|i] [need|use] {t}",
    "how would a child understand {t}",
    "{t}?",
]


@dataclass
class Intent:
    """One thing people say, the ways they say it, and the ways the model answers.

    `rows` are dictionaries of slot values that belong together; one is picked per pair.
    `topics` are noun phrases that are put into the topic frames above.
    `follow` are short questions that make sense only after an answer of this intent.
    """

    name: str
    ask: list
    answer: list
    rows: list = field(default_factory=lambda: [{}])
    topics: list = field(default_factory=list)
    follow: list = field(default_factory=list)
    weight: float = 1.0
    more: bool = False

    def __post_init__(self):
        framed = [frame.replace("{t}", "[" + "|".join(self.topics) + "]") for frame in TOPIC_FRAMES] if self.topics else []
        self.train_ask, self.heldout_ask = split_phrasings(self.name, list(dict.fromkeys(self.ask + framed)))

    def pair(self, rng, heldout=False, row=None):
        """One question and one answer about the same row."""
        row = row or rng.choice(self.rows)
        ask = rng.choice(self.heldout_ask if heldout else self.train_ask)
        return expand(ask, rng, row), self.reply(rng, row)

    def reply(self, rng, row):
        """One answer about a row."""
        return sentence_case(expand(rng.choice(self.answer), rng, row))


def split_phrasings(name, phrasings):
    """Puts about a tenth of the phrasings of an intent aside: they are never trained on."""
    ranked = sorted(phrasings, key=lambda phrasing: stable_hash(name + phrasing))
    count = max(1, round(len(ranked) * 0.1)) if len(ranked) >= 6 else 0
    heldout = set(ranked[:count])
    return [p for p in phrasings if p not in heldout], [p for p in phrasings if p in heldout]


def term(name, topics, answer, ask=(), weight=1.0):
    """An intent that explains a word."""
    return Intent(name, list(ask), list(answer), topics=list(topics), weight=weight, more=True)
