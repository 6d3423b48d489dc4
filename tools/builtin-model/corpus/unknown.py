"""Things outside the little world of the model. It says so instead of making something up."""

from .grammar import expand, split_phrasings
from .memory import made_up_name

THINGS = """quantum physics|the stock market|bitcoin|politics|the president|the election|inflation|taxes|chemistry|a black hole|gravity|the second world war|the Roman empire|Napoleon|Einstein|Shakespeare|Mozart|Picasso|philosophy|the meaning of life|algebra|calculus|a prime number|DNA|a virus|evolution|dinosaurs|democracy|the law|insurance|a mortgage|blockchain|Python|JavaScript|programming|SQL|Linux|Windows|an operating system|a database|a compiler|the big bang|relativity|an atom|electricity|oil|nuclear power|climate change|economics|a volcano|the pyramids|the Eiffel tower|Mars|Jupiter|Hollywood|Netflix|Facebook|Google|Amazon|Tesla|the news|the stock price of Apple|religion|Buddha|yoga|karate|tattoos|fashion|makeup|perfume|opera|ballet|poker|golf|cricket|rugby|medicine|cancer|vitamins|surgery|the liver|history|geography|Latin|Greek|grammar|a verb|sociology|marketing|a startup""".split("|")
COUNTRIES = "France Germany Japan China India Italy Spain Brazil Canada Egypt Russia Mexico Norway Peru Kenya Poland Turkey Greece Sweden America".split()
ASK = [
    "what is {u}", "what is {u} about", "explain {u}", "tell me about {u}", "tell me [something|more] about {u}", "can you explain {u} [to me|]", "what do you know about {u}", "do you know {u}", "do you know [anything|something] about {u}", "how does {u} work", "i want to learn about {u}", "what do you think [of|about] {u}",
    "give me facts about {u}", "why is {u} important", "who invented {u}", "describe {u}", "help me with {u}", "what does {u} mean", "i have a question about {u}", "can we talk about {u}", "{u}?", "define {u}", "what can you tell me about {u}", "is {u} good or bad",
    "what is the capital of {country}", "who is the president of {country}", "how many people live in {country}", "tell me about {country}", "what is the capital city of {country}", "where is {country}", "what language do people speak in {country}", "how far is {country}", "who rules {country}",
    "who won the [world cup|game|election|match] [yesterday|last year|]", "write [a program|some code|code|an essay|a letter|an email] [for me|about {u}|]", "solve this equation [for me|]", "what is the [square root|logarithm] of {n}", "what happened in 19{n}", "how much does [a house|a car|gold] cost", "what is the price of {u}",
    "who is {name}", "who was {name}", "what is a {made}", "what does {made} mean", "tell me about {made}", "do you know {name} {made}", "what is the best [phone|laptop|car|hotel] to buy", "book me a [flight|table|hotel]", "what is on the news", "search the web for {u}", "open [the door|youtube|spotify]", "play [a video|music on my phone]",
    "call [my mother|a taxi]", "send an email to {name}", "fix my [code|car|computer]", "what is my horoscope", "how do i become rich", "how do i make money", "which shares should i buy", "recommend a [film|restaurant|song] in {country}", "who painted the mona lisa", "when did {u} begin", "when was {u} invented",
]
ANSWER = [
    "I do not know about that, but I can tell you [about the ring and its tabs|about animals|a story|a joke].",
    "I do not know about that, but you can ask me about [this network|animals|the weather|colours and food].",
    "Sorry, I do not know about that. I am a very small model, but I know [some animals|a few jokes|some stories|how the ring works].",
]
TRAIN, HELDOUT = split_phrasings("unknown", ASK)
THING_TRAIN, THING_HELDOUT = split_phrasings("things", THINGS)


def unknown_pair(rng, heldout=False):
    """A question that is too hard, and an honest answer."""
    slots = {"u": rng.choice(THING_HELDOUT if heldout else THING_TRAIN), "country": rng.choice(COUNTRIES), "n": rng.randrange(10, 99), "name": made_up_name(rng), "made": made_up_name(rng).lower()}
    return expand(rng.choice(HELDOUT if heldout else TRAIN), rng, slots), expand(rng.choice(ANSWER), rng)
