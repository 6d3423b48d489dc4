"""Things that the reader says about themselves and asks for later in the same chat."""

from .stories import NAMES
from .grammar import expand, sentence_case, split_phrasings

SOUNDS = "ba be bo da de do fa fi ga go ha jo ka ki ko la le lo ma mi mo na ni no pa ra re ri ro sa si ta te ti to va vi ya za zo".split()
ENDS = ["n", "r", "l", "s", "m", "ra", "na", "la", "ko", "no", "", "", "k", "x"]
COLOURS = "red blue green yellow black white pink purple orange brown".split()
PETS = "dog cat bird fish horse rabbit mouse turtle hen goat".split()
FOODS = "pizza soup bread cheese cake rice pasta chocolate honey salad".split()
TOWNS = "London Paris Rome Berlin Madrid Vienna Tokyo Oslo Cairo Lima Delhi Boston Dublin Lisbon Athens Prague".split()

# What is told, what the model says to it, what is asked later, and what the model answers then.
KINDS = {
    "name": (["my name is {x}", "i am {x}", "call me {x}", "you can call me {x}", "people call me {x}", "hello, i am {x}", "hi, my name is {x}", "hello, my name is {x}", "this is {x} [speaking|]", "the name is {x}", "i am called {x}", "hi, it is {x}", "my friends call me {x}", "please call me {x}", "remember my name: it is {x}"],
             ["Nice to meet you, {x}! How can I help you?", "Hello, {x}! It is nice to meet you."],
             ["what is my name", "do you know my name", "do you remember my name", "who am i", "can you tell me my name", "how am i called", "say my name", "tell me my name", "what did i say my name is", "what am i called", "do you still know my name", "what is the name i told you", "do you know who i am"],
             ["Your name is {x}.", "Your name is {x}. I remember it well."]),
    "colour": (["my favourite colour is {x}", "i like the colour {x}", "i like {x} best of all colours", "the colour i like best is {x}", "{x} is my favourite colour", "my favorite color is {x}", "i love the colour {x}"],
               ["{x} is a beautiful colour! I will remember that.", "Nice! I like {x} too."],
               ["what is my favourite colour", "which colour do i like", "do you remember my favourite colour", "what colour do i like best", "what is my favorite color", "do you know which colour i like", "tell me my favourite colour"],
               ["Your favourite colour is {x}."]),
    "pet": (["i have a {x}", "my pet is a {x}", "we have a {x} at home", "at home i have a {x}", "i live with a {x}", "i got a {x} for my birthday"],
            ["How nice, a {x}! Animals are good friends.", "A {x} is a fine animal. Take good care of it!"],
            ["what animal do i have", "what pet do i have", "which animal lives with me", "do you remember my pet", "what is my pet", "which pet do i have at home", "do you know what animal i have"],
            ["You have a {x}."]),
    "food": (["my favourite food is {x}", "i like to eat {x}", "i love {x}", "the food i like best is {x}", "i could eat {x} every day", "{x} is my favourite food"],
             ["{x} is very good! I wish that I could taste it.", "Mmm, {x} sounds good!"],
             ["what is my favourite food", "what do i like to eat", "which food do i like", "do you remember what i like to eat", "what food do i love", "do you know my favourite food", "what could i eat every day"],
             ["You like to eat {x}."]),
    "town": (["i live in {x}", "i come from {x}", "i am from {x}", "my home is in {x}", "my town is {x}", "i was born in {x}"],
             ["{x} is a nice place, I think. I live in browser tabs.", "So you are from {x}. That sounds nice!"],
             ["where do i live", "where am i from", "which town am i from", "do you remember where i live", "where is my home", "what is my town", "do you know where i come from"],
             ["You are from {x}. You told me so."]),
    "age": (["i am {x} years old", "my age is {x}", "i am {x}", "i turned {x} this year", "i have been alive for {x} years"],
            ["So you are {x} years old. That is a good age!", "{x} years is a fine age."],
            ["how old am i", "what is my age", "do you remember how old i am", "do you know my age", "how many years old am i", "tell me how old i am"],
            ["You are {x} years old."]),
}
UNTOLD = ["You have not told me yet. Please tell me!", "I do not know that yet, because you did not tell me."]
SPLIT = {kind: (split_phrasings("tell" + kind, tell), split_phrasings("ask" + kind, ask)) for kind, (tell, _, ask, _) in KINDS.items()}
WEIGHTS = {"name": 8, "colour": 2, "pet": 2, "food": 2, "town": 2, "age": 2}


def made_up_name(rng):
    """A name that nobody has, so that the model learns to repeat any name."""
    return ("".join(rng.choice(SOUNDS) for _ in range(rng.choice([1, 2, 2, 3]))) + rng.choice(ENDS)).capitalize()


def pick_value(kind, rng):
    if kind == "name":
        return made_up_name(rng) if rng.random() < 0.4 else rng.choice(NAMES)
    if kind == "age":
        return str(rng.randrange(4, 91))
    return rng.choice({"colour": COLOURS, "pet": PETS, "food": FOODS, "town": TOWNS}[kind])


def memory_turns(rng, heldout=False):
    """Two turns: something told, and later asked for."""
    kind = rng.choices(list(WEIGHTS), WEIGHTS.values())[0]
    (tell_train, tell_heldout), (ask_train, ask_heldout) = SPLIT[kind]
    _, reply, _, recall = KINDS[kind]
    slots = {"x": pick_value(kind, rng)}
    tell = rng.choice(tell_heldout or tell_train) if heldout else rng.choice(tell_train)
    ask = rng.choice(ask_heldout or ask_train) if heldout else rng.choice(ask_train)
    told = (expand(tell, rng, slots), sentence_case(expand(rng.choice(reply), rng, slots)))
    asked = (expand(ask, rng, slots), sentence_case(expand(rng.choice(recall), rng, slots)))
    return told, asked


def untold_pair(rng, heldout=False):
    """The same question when nothing was told before."""
    kind = rng.choices(list(WEIGHTS), WEIGHTS.values())[0]
    train, aside = SPLIT[kind][1]
    return expand(rng.choice(aside if heldout and aside else train), rng), rng.choice(UNTOLD)
