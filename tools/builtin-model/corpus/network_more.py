"""More questions about the network, and about the model as a part of it."""

from .grammar import Intent


# Short names of these matters, for questions such as "tell me about ...".
TOPICS = {
    "safe_device": ["the safety of my computer", "the danger for my device", "a virus", "my files", "hackers", "safety", "security", "the files on my computer", "installing something"],
    "phone": ["phones", "my phone", "tablets", "a tablet", "using a phone", "mobile devices", "helping with a phone"],
    "which_models": ["other models", "bigger models", "larger models", "the list of models", "the models it can run", "loading another model", "real models", "a stronger model"],
    "how_many_tabs": ["the number of tabs", "how many tabs it takes", "a single tab", "the size of the ring", "enough tabs", "the number of devices"],
    "why_split": ["splitting the model", "cutting a model", "sharing the layers", "the split model", "many tabs in place of one", "cutting it into parts", "dividing the model"],
    "make_host": ["starting a host", "my own ring", "being a host", "running a host", "hosting", "setting up a network", "making a ring of my own"],
    "offline": ["offline use", "no internet", "working without internet", "the internet connection", "being offline", "a broken internet line", "running it at home without the web"],
    "fail": ["an error", "errors", "the missing answer", "problems", "a page that does not work", "the broken page", "an answer that stopped"],
    "hidden_tab": ["a hidden tab", "tabs in the background", "hiding the tab", "the background", "other tabs", "a tab that nobody looks at", "keeping the tab open"],
    "download": ["the download", "the size of the download", "disk space", "memory for a stage", "what is downloaded", "downloading the model", "stored shards"],
    "gpu": ["a graphics card", "old computers", "slow computers", "the right hardware", "a gpu", "weak laptops", "strong computers", "having no graphics card"],
    "data_between": ["the data between tabs", "what tabs send to each other", "how tabs talk", "the connection of the tabs", "the way from tab to tab", "numbers on the line", "passing numbers to the next tab"],
    "first_last": ["the first stage", "the last stage", "the way of a token", "making an answer", "the path of my question", "how text is made", "the first and the last tab"],
    "how_many_layers": ["your size", "the number of your layers", "the number of your weights", "how big you are", "how small you are", "the count of your numbers"],
    "trained": ["your training", "your makers", "the people who made you", "your training data", "where you learned to speak", "your teachers", "who taught you", "your origin"],
    "learn": ["your memory", "remembering me", "learning from me", "learning new things", "knowing me tomorrow", "what you keep of our talk", "forgetting"],
    "mistakes": ["your mistakes", "wrong answers", "trusting you", "false answers", "errors that you make", "being wrong", "the truth of your answers"],
    "check_results": ["cheaters", "wrong numbers", "bad workers", "checking the results", "lies in the ring", "a tab that cheats", "false results", "tests for new devices"],
}


def intent(name, ask, *answer, weight=1.0):
    return Intent(name, ask, list(answer), topics=TOPICS[name], weight=weight * 1.3, more=True)


MORE = [
    intent("safe_device", [
        "is it safe [for my computer|for my device|for my phone|]", "is this [dangerous|a virus]", "can [it|this|you|the page] [read|see|steal|open] my files", "can [it|this] [harm|break|damage] my [computer|device|phone]",
        "can [you|the network] look into my [computer|device]", "is joining safe", "will it install something", "do i [need|have] to install [anything|something]", "is my computer safe [when i join|here]",
        "can someone hack me through this", "can the other tabs see my files", "is there any danger for my laptop", "what can the page do on my device",
    ], "Yes, it is safe for your device. The layers run inside the browser tab, and the page can not read your files.",
        "Your tab runs in the safe box of the browser. It can not open your files, and nothing is installed."),
    intent("phone", [
        "can [i|my friend|we] [use|join with] [a|my] [phone|tablet|smartphone]", "does it [work|run] on [a|my] [phone|tablet|mobile]", "can a phone [join|help|be a worker]", "is a [phone|tablet] [enough|ok|good enough]",
        "can my [phone|tablet] hold a layer", "what about [phones|tablets|my phone]", "i only have a [phone|tablet]", "do phones work [too|here]", "may i join from my phone", "is my old phone useful",
    ], "Yes, a phone can join if its browser is new enough. It gets a small stage.",
        "A phone can help too. It holds only a few layers, because its memory is small."),
    intent("which_models", [
        "[which|what] models [can|could] [it|this|the network|you|crowdinfer] run", "[which|what] [other|] models are there", "can [it|this|the network] run [other|bigger|larger|big] models", "is there a [bigger|better|smarter|larger] model",
        "how [do|can] i [load|use|choose] [another|a bigger|a different] model", "which kinds of model [work|are possible]", "can we run a real model", "can i bring my own model", "what files can the model be in",
        "do you support llama", "can the host change the model", "where do the models come from", "is there a list of models",
    ], "The host can choose many open models, for example from the Llama family. Bigger models need more tabs.",
        "I am only the small model that comes with it. The host can load bigger open models when enough tabs have joined."),
    intent("how_many_tabs", [
        "how many [tabs|devices|people|computers|workers] [do we need|do you need|are needed|must join]", "is one [tab|device] enough", "how many tabs [make|are in] [a|the] ring", "can [i|it] run with [one|only one|a single] [tab|device]",
        "do [we|you] need more [tabs|people|devices]", "what is the smallest number of tabs", "how big must the [crowd|swarm|ring] be", "are two tabs enough", "can i be alone in the ring", "how many computers does it take",
    ], "For me one tab is enough, because I am very small. A big model needs more tabs, so that all layers have a place.",
        "It depends on the model. I fit in one tab, but a big model needs many tabs to hold all its layers."),
    intent("why_split", [
        "why [do you|do we|does it] [split|cut|divide|share] the model", "why [do we need|use] [many|several|so many] [tabs|devices]", "why not [run|use] one [computer|server|big computer]", "why is the model [split|cut|in parts|in pieces]",
        "why does each tab hold only some layers", "what is the point of many tabs", "what is good about [sharing|splitting] a model", "why share the layers", "why is no single computer used", "what is the use of splitting the model",
        "why do you need other people's computers",
    ], "A big model does not fit on one small device. When many tabs hold a few layers each, they can run it together.",
        "The model is split because it is too big for one tab. Each device gives a little memory, and that is enough."),
    intent("make_host", [
        "how [do|can] i [start|run|make|be] [a|my own] [host|network|ring|server]", "can i [be|run] [a|my own] host", "how do i set up [a host|my own ring|my own network]", "can i start my own ring", "how is [a|the] network started",
        "i want to run a host", "how can i host this [myself|at home]", "what do i need to [run|be] a host", "how do i make a ring with my friends", "can i use this at home with my own computers", "how does one start crowdinfer",
    ], "Start the host program with Node on your computer. It shows a join link that you can send to your friends.",
        "You run one Node program, and it is your host. Then send the join link to other people, and they open it in a tab."),
    intent("offline", [
        "does it [work|run] [offline|without internet|without the internet]", "do [i|we] need [the internet|internet|a connection|the web]", "can [it|we|i] [work|run] [offline|without internet]", "what about [offline use|no internet]",
        "is [the internet|a connection] needed", "can we use it in a house without internet", "will it run in my home network only", "what if the internet is gone",
    ], "The tabs need a way to the host and to each other. A home network is enough, because the small model comes with the host.",
        "It can work without the internet if all devices are in the same home network. I come with the host, so nothing else is fetched."),
    intent("fail", [
        "why [is there|do i get] no answer", "why did [you|the answer|it] stop", "it does not work", "[something|it] is broken", "the answer stopped", "why [does|is] nothing [happen|happening]", "i get an error", "what can i do if it does not work",
        "you are stuck", "it hangs", "the page does nothing", "why are you not answering", "help, it is not working", "nothing happens here",
    ], "I am sorry about that. Look at the dashboard: if a layer has no device, more tabs must join.",
        "That is not nice. Maybe a tab was closed, so look at the dashboard and try again."),
    intent("hidden_tab", [
        "can i [hide|minimize|leave] [the|my] tab [|in the background]", "must [the|my] tab [stay open|be open|be visible]", "do i have to [keep the tab open|watch the tab|stay here]", "can i do other things [meanwhile|while my tab helps|at the same time]",
        "does it work in the background", "may i use other tabs", "what if my tab is hidden", "can i switch to another tab", "can i close the lid", "do i need to look at the page all the time",
    ], "Keep the tab open, and you can do other things. A hidden tab may be slower, so a window of its own is best.",
        "You can use other tabs, but do not close this one. Browsers slow down hidden tabs, so keep it visible if you can."),
    intent("download", [
        "how much [data|memory|space] [does it need|do i need|is loaded|does my tab load]", "how big is the download", "what does my tab download", "does [it|my tab] download the whole model", "how much [is|must be] downloaded", "how much memory does [it|my tab|a stage] need",
        "do i have to download [everything|the model]", "where are the shards stored", "does it load [everything|the model] again each time", "is the download large", "will it fill my disk",
    ], "Your tab downloads only its own share of the model, not all of it. The shards stay in the browser, so next time it is quick.",
        "Only the shards of your layers are downloaded. They are kept in the browser for the next time."),
    intent("gpu", [
        "do i need a [gpu|graphics card|graphics chip|strong computer|fast computer|new computer]", "does it [need|use] [my|the|a] [gpu|graphics card|graphics chip]", "can i join with an old [computer|laptop]", "is my computer [good enough|fast enough|strong enough|too old|too slow]",
        "what if i have no [gpu|graphics card]", "my computer is [old|slow|weak]", "what hardware do i need", "can a slow laptop help", "is a weak computer useful",
    ], "A graphics chip is good, but you do not need one. Without it your tab uses the processor and gets fewer layers.",
        "An old computer can help too. It gets a small stage, and a fast graphics chip gets a bigger one."),
    intent("data_between", [
        "what [do the tabs send|is sent|goes] [to each other|between the tabs|from tab to tab]", "what [data|information] [goes|is sent] over the [network|line]", "how do the tabs talk [to each other|together]", "do the tabs send my words [to each other|around]",
        "what travels [in|around] the ring", "how does one tab reach the next", "what does one tab give to the next tab", "what moves from tab to tab", "how are the tabs connected",
    ], "The tabs send rows of numbers, called activations, to each other. They go directly from tab to tab over WebRTC.",
        "From tab to tab go only numbers, the activations. The connection is WebRTC, and a relay helps if there is no direct way."),
    intent("first_last", [
        "what does the [first|last] [tab|stage] do", "where does [the answer|a token|the text] come from", "how is [a token|an answer|the next word] made", "how do you [make|write|build] [an answer|a sentence|text]", "where does my prompt go [first|]", "what happens [to|with] my [prompt|question]",
        "which way does my text go", "tell me the way of a token", "what is the path of my question", "how does the ring make text",
    ], "The first stage takes your text as tokens. The numbers go through all stages, and the last stage makes the next token.",
        "Your text enters at the first stage and goes around the ring. The last stage picks the next token and sends it back to the first."),
    intent("how_many_layers", [
        "how [many layers|big|large] [do you have|are you]", "how many layers has the model", "how many [parameters|weights|numbers] do you have", "what size are you", "are you a [big|large|small] model", "how big is your [brain|model]",
        "are you large or small", "how small are you", "what is your size", "tell me your size",
    ], "I am a very small model with only a few layers. Big models have a thousand times more numbers than I have.",
        "I am tiny: just a few layers and less than three million numbers. That is why I fit in any tab."),
    intent("trained", [
        "how were you [trained|made|built]", "who [trained|made|built|created|wrote] you", "what [did you learn from|were you trained on|data did you learn from]", "where did you learn [this|that|to talk|all this]", "how did you learn [to talk|to write|to speak|]",
        "who is your [maker|creator|father]", "when were you made", "did you read the [internet|web]", "who made this", "where do you come from", "what is your training data",
    ], "The makers of CrowdInfer trained me on small talks and stories that they wrote for me. I have not read the web.",
        "I was made by the people of CrowdInfer. I learned from short talks and stories that were written for me."),
    intent("learn", [
        "do you [learn|learn from me|get smarter|remember me]", "will you remember [me|this|what i said]", "do you remember [me|our last talk|yesterday|what i said yesterday]", "can [you|i teach you to] learn [new things|something new|]", "do you get better [when we talk|over time|]",
        "is what i say used to train you", "do you store our talk", "can i teach you something", "will you know me tomorrow", "do you have a memory",
    ], "No, I do not learn while we talk. I only see this chat, and when it is over I forget it.",
        "I remember only what is in this chat. I do not learn new things from you."),
    intent("mistakes", [
        "can i [trust|believe] you", "are you always right", "do you make mistakes", "are your answers [right|true|correct]", "can you be wrong", "how good are your answers", "is everything you say true", "should i believe [you|your answers|this]",
        "are you [reliable|sure]", "are you smart", "are you clever", "how smart are you", "that is wrong", "you are wrong", "that is not right", "your answer is wrong",
    ], "I am small and I make mistakes. Please check everything that is important.",
        "I can be wrong, because I am a very small model. Do not trust me with important things."),
    intent("check_results", [
        "what if [a tab|someone|a worker|a bad person] [lies|cheats|sends wrong numbers]", "can [someone|a tab|a worker] [cheat|fake the numbers|send wrong numbers|send bad results]", "how do you know that the numbers are right", "do you check the [tabs|results|workers|numbers]",
        "what about bad [people|tabs|workers]", "is the result checked", "who checks the work of a tab", "can one tab spoil the answer",
    ], "The network checks the tabs. A new device must first give the right result for a test, and bad results lead to a ban.",
        "Results are checked on a second device now and then. A tab that sends wrong numbers is sent away."),
]
