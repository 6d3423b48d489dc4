"""Small stories. Whatever the reader asks for (hero, name, thing, place) comes back in the story."""

from .grammar import expand, sentence_case, split_phrasings

NAMES = """Anna Ben Clara David Emma Finn Greta Hugo Ida Jack Kira Leo Mia Noah Olga Paul Rosa Sam Tina Uma Victor Wanda Yuki Zoe Lily Tom Max Lucy Oscar Nina Milo Ella Otto Ruby Felix Maya Omar Aisha Ravi Mei
Carlos Sofia Ivan Elena Amir Fatima Kofi Amara Lena Jonas Marie Pierre Luca Giulia Hans Heidi Erik Astrid Sara Adam Eva Peter Julia Simon Laura Daniel Hannah Jacob Alice Robert Kate John Mary Alex Chris Nora Theo Ali Li""".split()
HEROES = "fox girl boy cat dog robot bear mouse rabbit owl frog duck horse dragon bird turtle elephant lion penguin king queen wizard farmer sailor monkey squirrel hedgehog snail bee whale giant princess pirate knight sheep".split()
THINGS = "key|ball|hat|lamp|book|red balloon|map|bell|kite|boat|cake|drum|coin|stone|star|flower|shoe|box|letter|apple|mirror|spoon|feather|button|ring|blanket|whistle|candle|umbrella|egg|clock|pen|cup|basket|cookie".split("|")
PLACES = """in the forest|at the lake|on a farm|by the sea|in a garden|in the mountains|in a small town|on an island|in a castle|at school|in the snow|on the moon|in the desert|by the river|in a cave|on a ship|in a library|at the market|under a bridge|in the city|on a hill|in the jungle|at the beach|in a train|in a kitchen""".split("|")
PERSON = {"girl": "she", "boy": "he", "king": "he", "queen": "she", "princess": "she", "wizard": "he", "farmer": "he", "sailor": "he", "pirate": "he", "knight": "he"}
ADJECTIVES = "little brave kind small clever quiet happy curious young funny".split()

OPENINGS = [
    "Once upon a time there was {a:adjective} {hero} named {name}. {They} lived {place}.",
    "There once was {a:adjective} {hero} called {name}, who lived {place}.",
    "{name} was {a:adjective} {hero}. {They} lived {place} and liked to walk around.",
]
MIDDLES = [
    "One [day|morning] {name} found {a:thing} [under a tree|in the grass|behind a big stone]. \"[Whose|Who has lost this] {thing} [is this|]?\" {they} asked.",
    "One [day|morning] {name} lost {a:thing}. {They} looked everywhere, but {they} could not find it.",
    "One [night|evening] {name} saw something shine. It was {a:thing}, and it was very beautiful.",
    "One day a friend came and gave {name} {a:thing}. {name} had never seen such a fine {thing}.",
]
TURNS = [
    ["An old owl said that the {thing} belonged to a sad {poor}. So {name} took the {thing} and went to help.", "The {poor} was so happy that they became friends."],
    ["Then {a:helper} came by and offered to help. Together they looked [all day|the whole day] until the sun went down.", "At last they found the {thing} and laughed."],
    ["Then it began to rain, and {name} met {a:helper} who was cold and wet. {name} shared the {thing} and a warm place to sit.", "From that day on they were good friends."],
    ["{a:helper} wanted the {thing} too. {name} thought for a while and said: \"Let us share it.\"", "So they played together until the evening."],
]
ENDINGS = ["{name} went home and slept well.", "And {name} was happy for a long time.", "That night {name} smiled and fell asleep.", "And so {name} learned that it is good to share.", "{name} never forgot that day."]
HELPERS = "frog|bird|snail|hedgehog|rabbit|mouse|goat|duck|bee|crow".split("|")

STEMS = ["tell me a [|short|little|small|nice|good] story", "can you tell me a [|short|little] story", "[please|] write a [|short|little] story", "make up a story", "i want [a|to hear a] story", "give me a [|little] story", "i would like [a|to hear a] story",
         "do you know a story", "a story", "story", "tell us a story", "let me hear a story", "read me a story", "could you write me a story", "invent a [|short] story"]
HERO_PARTS = ["about {a:hero}", "about a [little|small|brave] {hero}", "with {a:hero} in it", "about the {hero}"]
NAME_PARTS = ["about {a:hero} named {name}", "about {a:hero} called {name}", "about {name} the {hero}", "where {a:hero} is called {name}"]
ONLY_NAMES = ["about {name}", "about someone named {name}", "with {name} in it", "in which {name} plays a part"]
THING_PARTS = ["and {a:thing}", "who finds {a:thing}", "with {a:thing}", "who has {a:thing}", "and the {thing}", "who loses {a:thing}"]
PLACE_PARTS = ["{place}", "who lives {place}", "that happens {place}"]


def phrasings():
    """Every combination of the parts, with the slots that each one gives."""
    heads = HERO_PARTS + NAME_PARTS + ONLY_NAMES
    tails = [""] + THING_PARTS + PLACE_PARTS + [f"{thing} {place}" for thing in THING_PARTS for place in PLACE_PARTS[:1]]
    asks = [f"{stem} {head} {tail}".strip() for stem in STEMS for head in heads for tail in tails]
    bare = STEMS + [f"{stem} {tail}" for stem in STEMS for tail in ("{place}", "about {a:thing}", "with {a:thing} in it")] + ["tell me a bedtime story", "i need a story for my child", "once upon a time", "what is your best story", "another story", "one more story please"]
    return split_phrasings("story", bare), split_phrasings("story", asks)


(BARE_TRAIN, BARE_HELDOUT), (FULL_TRAIN, FULL_HELDOUT) = phrasings()


def cast(rng):
    """Who and what a story is about."""
    hero = rng.choice(HEROES)
    they = PERSON.get(hero, "it" if rng.random() < 0.3 else rng.choice(["he", "she"]))
    helper = rng.choice([h for h in HELPERS if h != hero])
    return {"hero": hero, "name": rng.choice(NAMES), "thing": rng.choice(THINGS), "place": rng.choice(PLACES), "adjective": rng.choice(ADJECTIVES), "they": they, "They": they.capitalize(), "helper": helper, "poor": rng.choice(["mouse", "duck", "child"])}


def tell(rng, slots):
    """The story itself."""
    turn, result = rng.choice(TURNS)
    parts = [rng.choice(OPENINGS), rng.choice(MIDDLES), turn, result, rng.choice(ENDINGS)]
    return sentence_case(" ".join(expand(part, rng, slots) for part in parts))


def story_pair(rng, heldout=False):
    """A wish for a story, and the story."""
    slots = cast(rng)
    bare, full = (BARE_HELDOUT, FULL_HELDOUT) if heldout else (BARE_TRAIN, FULL_TRAIN)
    ask = rng.choice(full if rng.random() < 0.8 else bare)
    wish = expand(ask, rng, slots)
    if "{name}" in ask and "{hero}" not in ask and "{a:hero}" not in ask:
        child = rng.choice(["girl", "boy"])
        slots.update(hero=child, they=PERSON[child], They=PERSON[child].capitalize())
    return wish, tell(rng, slots)
