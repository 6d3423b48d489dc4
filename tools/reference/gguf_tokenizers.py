"""Tokenizers for the GGUF files: byte-level BPE with the splits of known models, and SentencePiece."""

import json

import sentencepiece
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

SPECIAL = ["<pad>", "<s>", "</s>", "<|user|>"]
CHAT = (
    "{% for message in messages %}<|user|>{{ message['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<s>{% endif %}"
)
DIGITS = "digits"
# The splits that llama.cpp means by these names of tokenizer.ggml.pre (None: GPT-2's own, in ByteLevel).
SPLITS = {
    "gpt-2": None,
    "smollm": DIGITS,
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+",
    "llama-bpe": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
}
TEXT = [
    "the rain in the town then ran on, and in the inn the men sat in the heat of an oven", "it's 12 or 123 or 1234",
    "she'll eat tea there; the hat that he sent is on the tin", "a\n\nb  c   d", "is it in there? no, on the other one!",
] * 20
CASES = ["the hat", " then  the   inn", "it's 1234 at 12.5", "He'LL eat\n\nnow", "tea – größer 🙂", "<|user|>hi</s><s>", ""]


def write_bpe(folder, size, pre):
    """Vocabularies under 260 have only a part of the bytes: they serve the model, not text."""
    split = SPLITS[pre]
    steps = [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split in (None, DIGITS))]
    if split == DIGITS:
        steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
    elif split is not None:
        steps.insert(0, pre_tokenizers.Split(Regex(split), "isolated"))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    whole = size >= len(alphabet) + len(SPECIAL)
    if whole:
        trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIAL, initial_alphabet=alphabet,
                                      show_progress=False, min_frequency=1)
        tokenizer.train_from_iterator(TEXT, trainer)
    else:
        vocab = [*SPECIAL, *alphabet][: size - 1]
        tokenizer.model = models.BPE({text: at for at, text in enumerate([*vocab, "ab"])}, [("a", "b")])
        tokenizer.add_special_tokens(SPECIAL)
    assert tokenizer.get_vocab_size() == size
    tokenizer.save(str(folder / "tokenizer.json"))
    # The class name is what the converter looks for.
    config = {"tokenizer_class": "GPT2Tokenizer", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>",
              "unk_token": "<pad>", "add_bos_token": False, "chat_template": CHAT}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    if not whole:
        return None
    return [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids} for text in CASES]


def write_spm(folder, size, dummy_prefix):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT), model_prefix=str(folder / "tokenizer"), vocab_size=size, model_type="bpe",
        byte_fallback=True, pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="<pad>", control_symbols=["<|user|>"],
        add_dummy_prefix=dummy_prefix, remove_extra_whitespaces=False, normalization_rule_name="identity",
        split_digits=True, allow_whitespace_only_pieces=True, hard_vocab_limit=True, minloglevel=2)
    (folder / "tokenizer.vocab").unlink()
    config = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>",
              "add_bos_token": True, "chat_template": CHAT}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    encoder = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    return [{"text": text, "ids": encoder.encode(text)} for text in CASES if "<|user|>" not in text]
