"""Trains the byte-level BPE tokenizer on the corpus: out/tokenizer.json and out/tokenizer_config.json."""

import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

OUT = pathlib.Path(__file__).parent / "out"
PIECES = 1024
CONTEXT = 512
BEGIN, END, USER, ASSISTANT, SYSTEM = SPECIALS = ["<|begin|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]

# Words with the space before them, single digits, runs of marks, spaces.
WORDS = r" ?\p{L}+|'\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

# The role markers are known words only: "developer" counts as system, anything else as user.
CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}{{ '<|assistant|>' }}"
    "{% elif message['role'] == 'system' or message['role'] == 'developer' %}{{ '<|system|>' }}"
    "{% else %}{{ '<|user|>' }}{% endif %}"
    "{{ message['content'] }}{{ '<|end|>' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def corpus_texts(path):
    """Every text of the corpus, one by one."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            item = json.loads(line)
            yield from [item] if isinstance(item, str) else (message["content"] for message in item)


def train(texts):
    """A tokenizer whose specials are cut out before anything else, and that adds none by itself."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(WORDS), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    specials = [AddedToken(text, special=True, normalized=False) for text in SPECIALS]
    trainer = trainers.BpeTrainer(vocab_size=PIECES, special_tokens=specials, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def config(tokenizer):
    """tokenizer_config.json for the libraries that read the Hugging Face layout."""
    decoder = {
        str(tokenizer.token_to_id(text)): {"content": text, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
        for text in SPECIALS
    }
    return {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": BEGIN, "eos_token": END, "pad_token": END, "add_bos_token": False, "add_eos_token": False,
        "additional_special_tokens": [USER, ASSISTANT, SYSTEM], "added_tokens_decoder": decoder, "clean_up_tokenization_spaces": False, "model_max_length": CONTEXT,
        "chat_template": CHAT_TEMPLATE,
    }


def main():
    tokenizer = train(corpus_texts(OUT / "train.jsonl"))
    tokenizer.save(str(OUT / "tokenizer.json"))
    (OUT / "tokenizer_config.json").write_text(json.dumps(config(tokenizer), indent=2) + "\n", encoding="utf-8")
    sample = "What is a lap? Tell me a story about a fox named Lily."
    print(tokenizer.get_vocab_size(), "pieces;", tokenizer.encode(sample).tokens)


if __name__ == "__main__":
    main()
