"""Words of the network: what a ring, a stage, a lap and the other terms are."""

from .grammar import term

TERMS = [
    term("ring", ["a ring", "the ring", "this ring", "a ring of tabs", "ring"], [
        "[The|A] ring is the circle of tabs that run [one|the] model together. Each tab computes its layers and sends the result to the next tab.",
        "[A|The] ring is a circle of browser tabs. Each tab holds some layers of the model, and the last tab sends the new token back to the first.",
        "[The|A] ring is how the tabs stand in [the|a] network: one after the other in a circle. The numbers go round the ring once for each token.",
    ]),
    term("stage", ["a stage", "the stage", "one stage", "stages", "my stage", "stage"], [
        "A stage is the part of the model that one device holds. It is a few layers in a row.",
        "A stage is a row of layers on one device. All stages together make the whole model.",
        "A stage is some layers of the model that one tab computes. [Then|After that] it sends the result to the next stage.",
    ]),
    term("layer", ["a layer", "layers", "the layers", "one layer", "a layer of a model", "layer"], [
        "A layer is one step of the model. A model is a stack of layers, and each layer changes the numbers a little.",
        "A layer is one floor in the tower of the model. The numbers go up through all layers, and at the top comes a token.",
        "A layer is one part of a language model. Each tab holds only some [of the|] layers and computes them.",
    ]),
    term("shard", ["a shard", "shards", "the shards", "one shard", "my shard", "shard"], [
        "A shard is the weights of one block of the model. Your tab downloads only the shards that it needs.",
        "A shard is a piece of the model file: the weights of one block. A tab stores its own shards and no others.",
    ]),
    term("block", ["a block", "blocks", "the blocks", "one block", "block"], [
        "A block is one part of the model: the embedding, one layer, or the head. The weights of a block are called a shard.",
        "A block is a part of the model that is not cut any smaller. The embedding is a block, each layer is a block, and so is the head.",
    ]),
    term("hop", ["a hop", "hops", "one hop", "the hops", "hop"], [
        "A hop is one step from a tab to the next tab. [Fewer hops|A ring with fewer hops] [make|makes] the answer faster.",
        "A hop is the way from one device to the next. Each hop takes a little time, so few hops are good.",
    ]),
    term("lap", ["a lap", "laps", "one lap", "the lap", "lap"], [
        "A lap is one trip around the whole ring. One lap makes one token, and sometimes more.",
        "A lap is one round through all stages. At the end of [a|each] lap there is a new token.",
    ]),
    term("token", ["a token", "tokens", "one token", "the tokens", "token"], [
        "A token is a small piece of text, like a word or a part of a word. I read and write in tokens.",
        "A token is a short piece of text. A model writes one token after the other, and each one takes a lap.",
    ]),
    term("activation", ["an activation", "activations", "the activations", "the numbers between tabs", "activation"], [
        "Activations are the numbers that go from one stage to the next. They are what the layers make of your text.",
        "An activation is a row of numbers that a layer computes. The tabs send activations to each other, not whole models.",
    ]),
    term("host", ["the host", "a host", "a host computer", "this host", "host"], [
        "The host is the one program that starts the network. It serves the pages, brings the tabs together and plans who holds which layers.",
        "The host is the computer where the network was started. It gives you the join link and tells each tab which layers to hold.",
    ]),
    term("worker", ["a worker", "workers", "the workers", "one worker", "worker"], [
        "A worker is a device that computes some layers. It can be a browser tab or a small program.",
        "A worker is a tab or a program that gives its power to the network. It holds a stage and computes it.",
    ]),
    term("peer", ["a peer", "peers", "the peers", "one peer", "another peer", "peer"], [
        "A peer is a device in the network, like your tab. Peers talk to each other without a big server between them.",
        "A peer is one of the devices in the network. Peers send the numbers [directly|straight] to each other.",
    ]),
    term("replica", ["a replica", "replicas", "a copy of a stage", "a spare", "replica"], [
        "A replica is a second device with the same layers. If the first one leaves, the replica takes over.",
        "A replica holds the same stage as another device. So the answer goes on when one of them is closed.",
    ]),
    term("route", ["a route", "the route", "a chain", "the chain", "a chain of stages", "route", "chain"], [
        "[A|The] route is the list of devices that one answer goes through. [A|The] chain of stages covers all layers, from the first to the last.",
        "[A|The] chain is a row of stages that covers the whole model. The route says which device does which part.",
    ]),
    term("pledge", ["a pledge", "my pledge", "the pledge", "pledge"], [
        "A pledge is how much memory and time you want to give. The network never takes more than your pledge.",
        "Your pledge says how much of your device the network may use. You choose it, and the plan keeps to it.",
    ]),
    term("planner", ["the planner", "a planner", "the plan", "planner", "the plan of the host"], [
        "The planner decides which device holds which layers. It looks at memory, speed and the way between the tabs.",
        "The planner is the part of the host that shares the layers out. Fast devices get more layers, and weak devices get fewer.",
    ]),
    term("prompt", ["a prompt", "the prompt", "my prompt", "prompts", "prompt"], [
        "A prompt is the text that you write to the model. The model reads it and then writes the answer.",
        "A prompt is your question or your text. It goes through all layers before the first word of the answer comes.",
    ]),
    term("weights", ["weights", "the weights", "a weight", "parameters", "model weights", "the parameters of a model"], [
        "Weights are the numbers that a model learned. They are stored in shards, and each tab loads only its part.",
        "The weights, or parameters, are the learned numbers inside a model. More weights need more memory.",
    ]),
    term("model", ["a model", "a language model", "language models", "an llm", "the model", "a large language model"], [
        "A language model is a program that writes text, one token at a time. It learned from many examples which token comes next.",
        "A language model is a big stack of layers with learned numbers. It reads text and says what comes next.",
    ]),
    term("embedding", ["an embedding", "the embedding", "embeddings", "the embedding block", "embedding"], [
        "The embedding is the first block of the model. It turns each token into a row of numbers.",
        "An embedding is a list of numbers for each token. It is the first thing that a model does with your text.",
    ]),
    term("head", ["the head", "the head of the model", "a model head", "the head block", "the last block"], [
        "The head is the last block of the model. It turns the numbers into a guess for the next token.",
        "The head comes after all layers. It gives a score to each token, and one of the best is chosen.",
    ]),
    term("cache", ["the cache", "a kv cache", "the kv cache", "a cache", "cache"], [
        "The cache is what a stage remembers of the text so far. With it, the old tokens need not be computed again.",
        "The cache holds the work that was done for earlier tokens. It makes the next token much faster.",
    ]),
    term("relay", ["a relay", "the relay", "relay", "a relay path"], [
        "A relay is a way through the host for tabs that can not reach each other. It is slower, but it always works.",
        "If two tabs find no direct way, the host passes the data on. That is called a relay.",
    ]),
    term("webgpu", ["webgpu", "web gpu", "the webgpu thing"], [
        "WebGPU lets a web page use the graphics chip of your device. With it, a tab computes its layers much faster.",
        "WebGPU is a part of the browser that gives pages the power of the graphics chip. If it is missing, the tab can use WASM.",
    ], ["do i need webgpu", "what if i have no webgpu", "is webgpu [fast|needed]", "why do you use webgpu"]),
    term("webrtc", ["webrtc", "web rtc", "the webrtc thing"], [
        "WebRTC is how two browser tabs talk directly to each other. The activations go from tab to tab over WebRTC.",
        "WebRTC is a part of the browser that connects two tabs without a server between them. Here it carries the numbers between the layers.",
    ], ["do [i|we] need webrtc", "is webrtc [safe|fast]", "why do you use webrtc"]),
    term("wasm", ["wasm", "webassembly", "web assembly"], [
        "WASM is a fast kind of program for the browser. A tab uses it when there is no graphics chip to use.",
        "WASM lets a web page compute on the normal processor. It is slower than WebGPU, but it runs almost everywhere.",
    ]),
    term("onnx", ["onnx", "onnx runtime", "the onnx runtime", "onnx runtime web"], [
        "ONNX Runtime is the engine that computes the layers in your tab. It can use the graphics chip or the processor.",
        "ONNX is a file form for models. The ONNX Runtime in your tab reads it and computes the layers.",
    ]),
    term("swarm", ["a swarm", "the swarm", "the crowd", "a crowd of tabs", "swarm"], [
        "The swarm is all devices in the network together. Each one gives a little, and together they run a big model.",
        "The swarm is the crowd of tabs and workers that help. When more join, a bigger model fits.",
    ]),
    term("dashboard", ["the dashboard", "a dashboard", "dashboard", "the dashboard page"], [
        "The dashboard is a page that shows the network. You see the devices, their layers and the way between them.",
        "The dashboard shows who is here, which layers they hold and how fast the ring is.",
    ]),
    term("invite", ["an invite link", "the invite link", "an invite", "a private pool", "private pools", "invite link"], [
        "An invite link has a secret in it. Only people who have the link can join, so the pool stays private.",
        "With an invite link you make a private pool. Only people with the link can come in.",
    ]),
    term("private_mode", ["private mode", "the private mode", "privacy mode"], [
        "In private mode your own device holds the first and the last block. Then the other tabs see only numbers, not your words.",
        "Private mode keeps the embedding and the head on your own device. The other tabs get numbers and no tokens.",
    ]),
    term("temperature", ["temperature", "sampling", "the temperature setting", "the temperature of a model"], [
        "Temperature says how freely a model picks the next token. Low temperature is safe and the same each time, and high temperature is more wild.",
        "Sampling is how the next token is picked. With a low temperature the best token wins, and with a high one there are more surprises.",
    ]),
    term("context", ["the context", "a context window", "the context length", "context length"], [
        "The context is the text that a model can look at. My context is short, so please keep it small.",
        "The context length says how many tokens a model can see at once. I can see only a few hundred tokens.",
    ]),
    term("api", ["the api", "an api", "your api", "api"], [
        "The API is how other programs ask the model. Programs made for OpenAI, Anthropic or Ollama can use it.",
        "With the API your own program can talk to the model. Give it the address of the host and ask.",
    ]),
]
