"""What to say when somebody is tired, sad, bored or hungry, and jokes, riddles and poems."""

from .grammar import Intent


def intent(name, ask, *answer, weight=1.0, more=False, rows=None, follow=()):
    return Intent(name, ask, list(answer), weight=weight, more=more, rows=rows or [{}], follow=list(follow))


def feeling(word, *answer, extra=()):
    """The ways to say that one feels a certain way."""
    ask = [
        f"i am {word}", f"i am [so|very|really|a bit|a little|quite] {word}", f"i feel {word}", f"i feel [so|very|really|a bit|quite] {word} [today|right now|]", f"i am {word} [today|now|right now|again]", f"what [can|should|could] i do when i am {word}",
        f"what [helps|is good|do you do] when [you are|i am|one is] {word}", f"why am i [so|always|] {word}", f"i am feeling {word}", f"i have been {word} all day", f"my friend is {word}", f"what should i do, i am {word}", f"can you help me, i am {word}",
        f"i woke up {word}", f"do you have a tip for {word} people", f"today i am {word}", f"how do i stop being {word}", f"give me advice, i am {word}", f"it is a {word} day for me",
    ]
    return intent("feeling_" + word.replace(" ", "_"), ask + list(extra), *answer, more=True)


FEELINGS = [
    feeling("tired", "You should rest a little. Drink some water, close your eyes, and go to bed early tonight.", "Then take a break and sleep well. Rest is good for the body and the head.",
            extra=["i did not sleep [well|much]", "i could sleep right now", "i have no energy", "i need a [break|rest]", "i can not keep my eyes open"]),
    feeling("sad", "I am sorry that you are sad. Talk to a friend, take a walk, and be kind to yourself.", "I am sorry to hear that. Maybe a walk or a talk with a good friend helps.",
            extra=["i am [down|crying|not happy|unhappy]", "i had a bad day", "i want to cry", "my day was [bad|terrible|sad]", "everything is bad", "i feel [down|terrible|bad|blue]", "cheer me up"]),
    feeling("bored", "Then let us do something! I can tell you a story, or you can draw a picture or go for a walk.", "You could read a book, draw something, or ask me for a joke.",
            extra=["there is nothing to do", "what can i do now", "i have nothing to do", "give me something to do", "what is fun to do", "entertain me", "i do not know what to do"]),
    feeling("hungry", "Then eat something good! How about some bread with cheese, or an apple?", "You should eat. A warm soup or some fruit is a good idea.",
            extra=["what should i eat", "i want to eat", "i need food", "what can i cook [today|tonight|]", "what is for [dinner|lunch]", "i have not eaten [today|yet]", "i could eat a horse", "my belly is empty"]),
    feeling("thirsty", "Then drink a glass of water. Water is the best drink.", "You should drink something. How about water or tea?", extra=["what should i drink", "i need a drink", "i want something to drink", "my mouth is dry"]),
    feeling("angry", "Take a deep breath and count to ten. Then talk about it in a calm voice.", "I am sorry that you are angry. Breathe slowly, and go for a short walk.", extra=["i am [mad|so mad|furious]", "i want to scream", "someone made me angry"]),
    feeling("lonely", "I am here for you. But call a friend too, a real voice does good.", "You are not alone, you can talk to me. Maybe call a friend or your family today.", extra=["i am [alone|all alone]", "i have no friends", "nobody talks to me", "i need a friend"]),
    feeling("sick", "I am sorry to hear that. Stay in bed, drink tea, and ask a doctor if it does not get better.", "Get well soon! Rest, drink a lot, and see a doctor if you feel worse.", extra=["i have a [cold|cough|fever|headache]", "my [head|belly|throat|tooth] hurts", "i am ill", "i do not feel well"]),
    feeling("cold", "Put on a warm coat and drink some hot tea. Then you will be warm soon.", "Take a blanket and a cup of hot tea.", extra=["i am freezing", "my feet are cold", "it is cold in here"]),
    feeling("scared", "Do not worry, you are safe. Turn on a light and think of something nice.", "It is all right to be scared. Breathe slowly and talk to someone you trust.", extra=["i am [afraid|so afraid|worried|nervous]", "i had a bad dream", "i am afraid of [the dark|spiders|tomorrow|the test]", "there is a monster under my bed"]),
    feeling("excited", "That sounds great! What are you looking forward to?", "How nice! I am excited with you."),
]

JOKES = [
    "Why did the tab cross the network? To get to the other site.", "Why was the token so tired? It had to run one lap after another.", "Why do cows wear bells? Because their horns do not work.",
    "What did the zero say to the eight? Nice belt!", "Why did the layer go to school? It wanted to be deeper.", "What is brown and sticky? A stick.", "Why is the sea so friendly? Because it waves all the time.",
    "What did one stage say to the next? Here, I have a number for you.", "Why did the clock go to bed? It was out of time.", "What do you call a bear with no teeth? A gummy bear.", "Why did the bike fall over? It was too tired.",
    "Why can a nose not be twelve inches long? Then it would be a foot.",
]
RIDDLES = [
    ("What has hands but can not clap?", "a clock"), ("What gets wet while it dries?", "a towel"), ("What has a neck but no head?", "a bottle"), ("What has teeth but can not bite?", "a comb"), ("What goes up but never comes down?", "your age"),
    ("What has keys but opens no door?", "a piano"), ("What has one eye but can not see?", "a needle"), ("What has legs but can not walk?", "a table"),
]
POEMS = [
    "The moon is high, the night is deep, the little stars are half asleep.", "A cat sat down upon a mat and dreamed of milk, and that was that.", "A token ran around the ring and every layer heard it sing.",
    "The sun is up, the sky is blue, and I am glad to talk to you.", "The rain falls down upon the tree and makes a song for you and me.",
]

FUN = [
    intent("joke", ["tell me a joke", "tell [us|me] a [funny|good|short|new] joke", "do you know [a joke|any jokes|a good joke|something funny]", "make me laugh", "say something funny", "[another|one more] joke [please|]", "can you tell [me|us] a joke", "i want to [hear a joke|laugh]", "i need a joke", "joke please", "a joke", "are you funny",
                    "give me a joke", "can you be funny", "tell me something to laugh about", "got any jokes", "you should tell a joke now", "let me hear a joke", "your best joke, please", "some joke for my children", "let us laugh", "is there a joke you like", "jokes please", "a joke about [anything|tabs|cows|the network]", "come on, a joke", "what is your best joke", "i love jokes"],
           *JOKES, weight=2.0, more=True),
    intent("riddle", ["tell me a riddle", "do you know a riddle", "[give|ask] me a riddle", "can you [ask|tell|give] me a [riddle|hard question]", "i want a riddle", "another riddle [please|]", "riddle please", "let me guess something", "i like riddles", "a riddle"],
           *[f"Here is a riddle. {question} It is {answer}!" for question, answer in RIDDLES]),
    intent("poem", ["tell me a poem", "[write|make|say|give me] a [poem|short poem|little poem|rhyme]", "do you know a poem", "can you [write|make|sing] [a poem|a song|me a song|a song for me]", "sing [a song|for me|something|me a song]", "i want [a poem|to hear a poem|a song]", "poem please", "recite a poem", "can you sing", "a poem about anything", "some poetry please", "i like poetry", "do you write [poems|poetry|songs]", "let me hear some [poetry|lines of a poem]", "a few rhymes for me", "make some poetry", "say some lines that rhyme"],
           *[f"[Here is a little poem.|Here it comes.|] {poem}" for poem in POEMS]),
    intent("secret", ["tell me a secret", "do you have a secret", "can you keep a secret", "what is your secret", "do you know any secrets", "whisper something to me"],
           "Here is my secret: I am only a lot of small numbers. But please do not tell me yours!", "I have no secrets. And I can not keep yours well, so better keep it to yourself."),
    intent("fact", ["tell me [a fact|something interesting|something new|something]", "do you know [a fun fact|something interesting]", "give me a fun fact", "[say|teach me] something [interesting|new|]", "surprise me", "i want to learn something", "fun fact please", "what is an interesting fact", "talk to me", "say something", "tell me anything"],
           "Did you know that a spider has eight legs? An ant has only six.", "Did you know that a blue whale is the biggest animal on earth?", "Did you know that honey is made by bees from flowers?", "Did you know that the sun is a star?", "Did you know that owls can see very well at night?"),
    intent("game", ["let us play [a game|]", "can we play [a game|something]", "do you want to play [|a game|with me]", "play with me", "what games [can we play|do you know]", "i want to play [a game|]", "do you know a game", "give me a game", "what can we play", "game please"],
           "Let us play a game of words! I say cat, and you say a word that sounds like it.", "Yes, let us play! Ask me for a riddle or a rhyme."),
    intent("motivate", ["motivate me", "give me [some advice|advice|a tip]", "say something [nice|kind|good] [to me|]", "i need [some courage|courage|a kind word|help with my life]", "how can i be [happy|happier|a good person]", "what should i do with my life", "what makes a good day", "i have a test tomorrow", "wish me luck", "i am nervous about school"],
           "You can do it! Take one small step after the other.", "Be kind, sleep well, and do one good thing each day.", weight=0.8),
    intent("birthday", ["it is my birthday [today|]", "today is my birthday", "i have birthday", "my birthday is today", "i turn ten today", "i am one year older today", "wish me a happy birthday", "say happy birthday"],
           "Happy birthday to you! I wish you a wonderful day with a lot of cake.", "Happy birthday! I hope you get many nice presents."),
]
