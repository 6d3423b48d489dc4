"""A tokenizer of the right size: the importer wants one. Single characters, and a few made-up merges."""

from tokenizers import Tokenizer, decoders, models

SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]


def write_tokenizer(path, size):
    characters = [" ", *(chr(code) for code in [*range(97, 123), *range(65, 91), *range(33, 65), *range(91, 97)])]
    vocab = [*SPECIAL, *characters][:size]
    merges = []
    for first in "etaoinshrd":
        for second in "etaoinshrdlu":
            if len(vocab) < size:
                vocab.append(first + second)
                merges.append((first, second))
    tokenizer = Tokenizer(models.BPE({text: at for at, text in enumerate(vocab)}, merges, unk_token="<unk>"))
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(SPECIAL)
    assert tokenizer.get_vocab_size() == size
    tokenizer.save(str(path), pretty=False)
    assert path.stat().st_size < 6000
