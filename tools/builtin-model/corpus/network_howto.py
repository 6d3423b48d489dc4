"""How the network behaves: joining, leaving, speed, cost, privacy, failure."""

from .grammar import Intent

JOIN = [
    "how [do|can|could] i join", "how [do|can] i join [the network|the ring|crowdinfer|you|the swarm|in]", "how [do|can] i take part",
    "how [do|can] i help [|the network|with my computer]", "i want to join [|the network|the ring]", "can i join [|the network|too]",
    "where [do|can] i join", "how [can|do] i add [my tab|my computer|my device|another device]", "what do i [need|have] to do to join",
    "how [do|can] [my friends|other people|we|others] join", "i would like to help, what do i do", "what do i need to join",
    "how does [a person|someone|a friend] join", "how can [i|we] become [a part|part] of the ring", "how do i get in",
    "let me join", "sign me up", "how do i give my [computer|power] to the network", "how do i start", "how do i open the join page",
]
LEAVE = [
    "how [do|can|could] i leave", "how [do|can] i leave [the network|the ring]", "how [do|can] i [stop|pause|quit] [|helping|my tab]",
    "can i [leave|stop|pause|quit] [|at any time|when i want|now]", "i want to [leave|stop|pause] [|now|my tab]", "how do i pause [|my device|my work]",
    "may i go whenever i want", "is it ok to leave", "how do i get out [|of the network|of here]", "what if i do not want to help any more",
    "can i take a break from helping", "how do i turn it off", "how do i switch it off", "how can i end my part", "is there a pause button",
]
CLOSES = [
    "what [happens|will happen] [if|when] [a tab|my tab|one tab|a device|someone's tab] [closes|is closed|leaves|goes away]",
    "what [happens|will happen] [if|when] [i|someone|somebody|a person] [close|closes|shut|shuts] [my|the|a|their] tab", "what if [a tab|one tab|a device|someone] [closes|leaves|dies|is gone|goes offline]",
    "what if i close [my|this] [tab|page|browser|laptop]", "is it bad [if|when] i close my tab", "can i close [my|the|this] tab",
    "what do you do [if|when] a tab [closes|leaves|is lost]", "does the answer stop when a tab closes", "do we lose the answer if someone leaves",
    "what happens when [a worker|a stage|a peer] [dies|is lost|fails|disappears]", "is the text lost when a tab is closed",
    "what if somebody leaves in the middle of [an answer|a sentence]", "what happens [if|when] [a phone|a laptop|a computer] falls asleep",
    "can the ring survive when a tab closes", "how do you repair the ring", "what happens when a device breaks", "my friend closed the tab, what now",
]
PRIVACY = [
    "who can [see|read] my [text|prompt|words|messages|chat|question|questions]", "can [other people|others|anyone|somebody|the other tabs|strangers] [see|read] [my text|my prompt|what i write|my chat]",
    "is my [text|chat|data|prompt] [private|safe|secret]", "is this [private|safe for secrets|chat private]", "does anyone see what i [type|write|say]",
    "can i [tell you|write|type] [a secret|secrets|my password|private things]", "what about [privacy|my privacy]", "do you keep my data",
    "who sees what i write", "are my [messages|words|questions] safe [|here|with you]", "is it safe to write [private things|my name|secrets] here",
    "should i [write|type|send] my password [here|]", "can the [host|workers|volunteers|peers] read [my words|my text|the prompt]", "how private is [this|the chat|my chat]",
    "can people spy on [me|my chat|us]", "do the other tabs know what i ask", "is anybody reading this", "how do i keep my text private",
    "does the network protect my words", "i am worried about my privacy",
]
COST = [
    "does [it|this] cost [anything|money|something]", "what does [it|this] cost", "how much does [it|this] cost", "is [it|this|crowdinfer] free",
    "do i [have|need] to pay [|for this|something]", "is there a price", "how much money [do i need|is it]", "what is the price", "what do i pay [|for this]",
    "must i buy [something|anything]", "does joining cost money", "do i need an account", "do i get paid", "will i have to pay [|later]",
]
BATTERY = [
    "does [it|this] [use|need|drain|eat|take] [my battery|much battery|battery|much power|power]", "what about [my battery|the battery|power]", "will [it|this] drain my battery",
    "is [it|this] bad for my [battery|phone|laptop]", "how much [battery|power|energy] does [it|this] use", "does [it|this] make my [computer|phone|laptop] [hot|slow|warm]",
    "will my [laptop|phone|computer] get [hot|slow|warm]", "why is my fan so loud", "my [laptop|phone] is hot", "does it slow down my computer", "is my battery safe",
    "should i plug in my laptop", "can i join on battery", "does helping take a lot of power",
]
SPEED = [
    "how fast [are you|is it|is this|is the network|is the ring]", "why [are you|is it|is this] so slow", "are you [fast|slow]", "is [it|this] [fast|slow]",
    "how many tokens [a|per] second [|do you make|can you do]", "what makes [it|you|the ring] [fast|slow|faster]", "can [it|you|this] be [faster|quicker]",
    "does it get faster [with|when there are] more tabs", "do more tabs make it faster", "how can we make it [faster|quicker]", "what is the speed [|of the ring]",
    "how long does [an answer|one token|a lap] take", "why does it take so long", "speed it up", "how quick are you", "what does the speed depend on",
]
MY_TAB = [
    "what does my tab do", "what is my tab doing", "what [does|will] my [computer|device|browser|phone] do", "what do i [do|give] in the ring",
    "what is the job of [my|a] tab", "what does [a|each|one|every] tab do", "what happens in my [tab|browser]", "what does my [tab|computer] compute", "why is my tab busy",
    "which part [does|do] my tab [hold|have]", "what work does my tab have", "what am i helping with", "how does my tab help", "what is my part in this",
    "what is my device doing right now", "what do the tabs do", "tell me the task of my tab", "what is running on my computer", "what is inside my tab",
]
CROWDINFER = [
    "what is [this|crowdinfer|this page|this site|this thing|this network|this program]", "what does crowdinfer do", "tell me about [crowdinfer|this network|this project]", "how does [crowdinfer|this network|this|all this] work",
    "explain crowdinfer [|to me]", "what is this all about", "what can i do here", "where am i", "what is the idea [of crowdinfer|of this|behind this|here]", "why does crowdinfer exist",
    "what is crowdinfer [for|good for]", "describe crowdinfer", "explain this network [|to me]", "what happens here", "what kind of program is this", "crowdinfer?",
    "i am new here, what is this", "in short, what is crowdinfer", "how do the tabs run a model together", "how does it work", "how do you work",
]


# Short names of these matters, for questions such as "tell me about ...".
TOPICS = {
    "join": ["joining", "taking part", "the join link", "becoming a part of the ring", "getting into the network", "adding a device", "bringing my laptop in", "giving my computer to the ring", "entering the ring"],
    "leave": ["leaving", "stopping", "pausing", "the pause button", "ending my help", "getting out", "quitting", "taking a break from the ring"],
    "closes": ["a closed tab", "closing a tab", "a lost tab", "a tab that goes away", "a laptop that is switched off", "a device that leaves", "a dead worker", "a hole in the ring", "somebody who leaves", "a computer that crashes", "losing the answer", "a broken device"],
    "privacy": ["privacy", "my privacy", "who reads my text", "strangers who read my chat", "secrets in the chat", "private messages", "reading my prompt", "keeping things private", "spying", "my private data", "people who see what i write", "my passwords"],
    "cost": ["the cost", "the price", "money", "paying", "costs", "the fee", "payment", "buying this", "paying for the ring"],
    "battery": ["my battery", "the battery", "power use", "energy", "the heat of my laptop", "an empty battery", "a hot phone", "the battery of my phone", "electric power"],
    "speed": ["the speed", "the speed of the ring", "slow answers", "how fast it goes", "waiting so long", "getting faster", "more speed", "fast tabs", "slow devices", "more tabs and speed", "tokens a second"],
    "my_tab": ["the work of my tab", "my tab", "the job of a tab", "the task of my browser tab", "what my tab is doing", "what my computer does", "the things my tab does", "my part of the work"],
    "crowdinfer": ["crowdinfer", "this network", "this project", "this page", "the whole thing", "this program", "all of this", "the idea of crowdinfer"],
}


def intent(name, ask, *answer, weight=1.3):
    return Intent(name, ask, list(answer), topics=TOPICS[name], weight=weight * 1.3, more=True)


HOWTO = [
    intent("join", JOIN,
           "[It is easy.|That is easy.|] Open the join link of the host in a browser tab [and keep it open|]. Then your tab gets some layers and helps.",
           "[Just|You only have to] open the join link in your browser. Your tab loads its part of the model and joins the ring.", weight=1.6),
    intent("leave", LEAVE,
           "You can leave at any time. Press pause, or just close the tab.",
           "[Yes, you are free.|That is fine.|] Press the pause button or close your tab. Another device takes over your layers."),
    intent("closes", CLOSES,
           "If a tab closes, another device with the same layers takes over. If there is none, the answer stops and you keep the text so far.",
           "When a tab leaves, the host finds a new route and the answer goes on. No word is lost if another device holds the same layers.", weight=1.8),
    intent("privacy", PRIVACY,
           "[To be honest, a|A]nyone who runs a stage may be able to read your prompt. So do not write secrets, and use an invite link for a private pool.",
           "[Be careful.|Please be careful.|] People who run a stage may be able to read your text. With an invite link you can keep the pool private.", weight=2.0),
    intent("cost", COST,
           "No, it is free. You only give some power of your device.",
           "It costs no money. You need no account, only a browser tab and a little power.",
           "It is free. You pay nothing, but your device does some work."),
    intent("battery", BATTERY,
           "It uses some battery, because your device computes. Plug it in, or press pause when the battery is low.",
           "Yes, computing takes power, and your device may get warm. You can pause when you are on battery.", weight=1.4),
    intent("speed", SPEED,
           "The speed depends on the slowest stage and on the hops between the tabs. More tabs do not make a small model faster, but they make a bigger model possible.",
           "It depends on the devices and on the way between them. One token takes one lap, so few hops and fast devices are best.", weight=1.5),
    intent("my_tab", MY_TAB,
           "Your tab holds some layers of the model and computes them. Then it sends the result to the next tab.",
           "Your tab downloads a few layers and computes them for each token. The result goes on to the next tab in the ring.", weight=1.6),
    intent("crowdinfer", CROWDINFER,
           "CrowdInfer runs a language model in many browser tabs. Each tab holds only some layers, and together they write the answer.",
           "This is CrowdInfer. People open a link, each tab takes a part of the model, and then you can chat with it.", weight=1.8),
]
