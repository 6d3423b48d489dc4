"""How people type: small letters, missing marks, short forms, kind words, slips."""

import re

QUESTION_WORDS = set(
    "what who how is are do does can could will why when where which did should would may am has have whose was were "
    "what's who's how's where's isn't aren't don't".split()
)
CONTRACTIONS = [
    ("what is", "what's"), ("who is", "who's"), ("where is", "where's"), ("how is", "how's"), ("that is", "that's"),
    ("i am", "i'm"), ("you are", "you're"), ("it is", "it's"), ("do not", "don't"), ("does not", "doesn't"),
    ("is not", "isn't"), ("can not", "can't"), ("i have", "i've"), ("i would", "i'd"), ("i will", "i'll"),
    ("we are", "we're"), ("what are", "what're"), ("did not", "didn't"), ("are not", "aren't"), ("cannot", "can't"),
]
PREFIXES = [
    "hey,", "hey", "hi,", "hi!", "hello,", "hello!", "ok,", "okay,", "ok so", "so,", "so", "um,", "well,", "please,",
    "now", "and", "tell me,", "quick question:", "one question:", "question:", "i wonder,", "say,", "excuse me,",
    "just asking,", "oh,", "hmm,", "but", "alright,", "good,", "crowdtalk,", "i have a question:", "sorry,",
]
SUFFIXES = [" please", ", please", " thanks", ", thanks", " then", " now", " actually", ", do you know", ", i wonder", " again"]
# Other words for the same thing, put into a question now and then.
SYNONYMS = {
    "how do i": ["how would i", "how might i", "how could i", "what is the way to", "what must i do to", "how does one", "how does somebody"],
    "how can i": ["how could i", "how might i", "how would i", "what do i do to", "in what way can i"],
    "can i": ["could i", "may i", "am i able to", "is it possible to", "am i allowed to", "would it be possible to", "might i"],
    "can you": ["could you", "will you", "would you", "are you able to", "would you mind to"],
    "could you": ["would you", "can you", "will you"],
    "tell me": ["say to me", "let me know", "please tell me", "just tell me", "come on, tell me", "inform me", "can you say"],
    "explain": ["describe", "clear up", "make clear", "teach me", "say in easy words", "put in plain words", "show me"],
    "what is": ["what would be", "what might be", "what exactly is", "just what is", "what in the world is", "i ask myself what is", "what sort of thing is"],
    "what are": ["what would be", "what exactly are", "just what are", "what kind of things are"],
    "what does": ["what would", "what will", "what exactly does", "just what does"],
    "do you know": ["have you any idea", "any idea", "do you happen to know", "are you aware", "would you know", "can you say"],
    "i want": ["i would like", "i wish", "i would love", "i am hoping", "i feel like i want"],
    "i would like": ["i want", "i would love", "i wish"],
    "what happens": ["what is going on", "what goes on", "what would happen", "what is the effect", "what comes next"],
    "i do not understand": ["i can not follow", "i am confused about", "i have trouble with", "i never understood"],
    "tell me about": ["talk about", "say something about", "say a word about", "let us talk about", "let me hear about", "inform me about", "what can you say about"],
    "give me": ["let me have", "show me", "bring me", "find me"],
    "what about": ["how about", "and what about", "what of"],
    "which": ["what"], "big": ["large", "huge"], "bigger": ["larger"], "people": ["folks", "persons", "humans", "others"], "computer": ["pc", "machine", "laptop", "notebook"],
    "a lot": ["much", "a great deal", "so much"], "need": ["require", "have to have"], "join": ["enter", "take part in", "come into", "get into"], "someone": ["somebody", "anyone", "a person", "one of us"],
    "my tab": ["my browser tab", "this tab", "the tab here", "my window", "my page"], "fast": ["quick", "speedy"], "help": ["support", "assist"], "see": ["look at", "find out"], "text": ["words", "writing", "message"],
    "answer": ["reply", "response"], "work": ["function", "run"], "here": ["on this page", "in this place", "at this site"], "good": ["nice", "fine", "great"], "nice": ["good", "lovely"], "story": ["tale", "little story", "bedtime story"],
    "called": ["named"], "named": ["called", "with the name"], "live": ["stay", "have a home"], "eat": ["feed on", "like to eat"], "picture": ["image"], "today": ["this day", "these days"], "now": ["at the moment", "right now"],
    "why": ["for what reason", "how come", "tell me why"], "the network": ["this network", "the net", "your network", "the system"], "the ring": ["your ring", "this ring", "the circle"], "happy": ["glad", "cheerful"],
}
SYNONYM = re.compile(r"\b(" + "|".join(sorted(map(re.escape, SYNONYMS), key=len, reverse=True)) + r")\b")
# Words that people say before they come to the point, or after it.
LEADS = [
    "i am new here.", "i have a question.", "this may be a silly question.", "my teacher asked me this.", "i was just thinking.", "i hope you can help me.", "my son wants to know:", "my friend asks:", "you know so much.", "i could not find it anywhere.",
    "i forgot this.", "let me ask you something.", "here is my question:", "just one thing:", "i am not sure about this.", "maybe you know this.", "i read about it.", "another thing:", "next question:", "be honest with me.", "be short.", "in simple words:",
    "in a few words:", "before i forget it:", "while we are here,", "for my homework:", "my daughter asks me:", "i never heard of this.", "we talked about this at home.", "today i saw the word.",
]
TRAILS = [". i always forget it", ". i really want to know", ", if you know it", ". keep it short", ", in your own words", ", if i may ask", ". my friend wants to know", ", my friend", ". just curious", ", in short", ". it is for school", ". i have no idea", ", can you tell me", ", any idea", ". i never knew", ", crowdtalk"]
FILLERS = {"the", "a", "an", "is", "are", "do", "does", "me", "of", "to", "you", "can", "it", "please", "exactly", "my", "i"}


INSERTS = ["really", "maybe", "just", "ever", "actually", "please", "perhaps", "also", "still", "even", "then", "at all", "in fact", "by the way", "you know", "for example", "of course", "today", "here", "exactly"]


def drop_word(words, rng):
    """Leaves out one small word."""
    spots = [i for i, word in enumerate(words) if word in FILLERS]
    if spots and len(words) > 3:
        del words[rng.choice(spots)]
    return words


def put_word(words, rng):
    """Puts in a word that changes nothing."""
    if len(words) > 2:
        words.insert(rng.randrange(1, len(words)), rng.choice(INSERTS))
    return words


def slip(text, rng):
    """One typing slip in a longer word: a letter missing, doubled or swapped."""
    spots = [m for m in re.finditer(r"[a-z]{5,}", text)]
    if not spots:
        return text
    word = rng.choice(spots)
    at = word.start() + rng.randrange(1, len(word.group()) - 1)
    kind = rng.randrange(3)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + text[at] + text[at:]
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def shorten(text, rng):
    """Uses one short form, with or without its mark."""
    for full, short in CONTRACTIONS:
        if re.search(rf"\b{full}\b", text):
            short = short.replace("'", "") if rng.random() < 0.25 else short
            text = re.sub(rf"\b{full}\b", short, text, count=1)
    return text


def reword(text, rng):
    """Puts other words for some of the words."""
    return SYNONYM.sub(lambda match: rng.choice(SYNONYMS[match.group()]) if rng.random() < 0.4 else match.group(), text)


def punctuate(text):
    """The mark that belongs at the end."""
    if text[-1] in ".?!":
        return text
    first = re.split(r"[ ,]", text.lower())[0]
    return text + ("?" if first in QUESTION_WORDS or re.search(r"[:,] (what|who|how|why|where|is|do|can)\b", text) else ".")


def proper(text):
    """The way a careful person writes it."""
    text = re.sub(r"\bi\b", "I", text)
    text = re.sub(r"(^|[.!?] )([a-z])", lambda m: m.group(1) + m.group(2).upper(), text)
    text = re.sub(r"\bcrowd(infer|talk)\b", lambda m: "Crowd" + m.group(1).capitalize(), text)
    return re.sub(r"\bweb(gpu|rtc)\b", lambda m: "Web" + m.group(1).upper(), text)


def dress(text, rng):
    """One of the many ways the same words are typed."""
    if rng.random() < 0.45:
        text = reword(text, rng)
    if rng.random() < 0.35:
        text = shorten(text, rng)
    for change, share in ((drop_word, 0.12), (put_word, 0.10)):
        if rng.random() < share:
            text = " ".join(change(text.split(" "), rng))
    if text.split(" ")[0] not in ("and", "so", "hi", "hey", "hello"):
        text = rng.choices(["", rng.choice(PREFIXES) + " ", rng.choice(LEADS) + " "], [80, 14, 6])[0] + text
    mark = punctuate(text)[-1]
    if rng.random() < 0.08 and text[-1] not in ".?!":
        text += rng.choice(SUFFIXES)
    elif rng.random() < 0.04 and text[-1] not in ".?!":
        text += rng.choice(TRAILS)
    if rng.random() < 0.03:
        text = slip(text, rng)
    marked = text if text[-1] in ".?!" else text + mark
    style = rng.random()
    if style < 0.50:
        return proper(marked)
    if style < 0.72:
        return text.lower().rstrip("?.")
    if style < 0.87:
        return marked.lower()
    if style < 0.95:
        return proper(text).rstrip(".")
    if style < 0.97:
        return marked.upper()
    return proper(text).rstrip("?.!") + rng.choice(["!", "...", "??", "?!", " ?"])
