"""Trains the byte-level BPE tokenizer (2048 tokens, dolma2's split) and writes the tokenizer files of the model folder.

    python tokenizer.py CORPUS_FOLDER MODEL_FOLDER
"""

import json
import sys
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
N_TOKENS = 2048
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>"]
TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def texts(path: Path):
    """Every text of a corpus file, messages one by one, with the words of the template."""
    yield "user\n system\n assistant\n"
    for line in path.open():
        document = json.loads(line)
        yield from [document] if isinstance(document, str) else [message["content"] for message in document]


def train(path: Path) -> Tokenizer:
    """The tokenizer; special tokens come last, as in dolma2."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), behavior="removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=N_TOKENS - len(SPECIALS), min_frequency=2, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
    )
    tokenizer.train_from_iterator(texts(path), trainer)
    tokenizer.add_special_tokens(SPECIALS)
    assert tokenizer.get_vocab_size() == N_TOKENS, tokenizer.get_vocab_size()
    return tokenizer


def main() -> None:
    corpus, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    train(corpus / "train.jsonl").save(str(out / "tokenizer.json"))
    (out / "chat_template.jinja").write_text(TEMPLATE)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast", "add_prefix_space": False, "clean_up_tokenization_spaces": False,
        "bos_token": None, "eos_token": "<|endoftext|>", "pad_token": "<|pad|>", "unk_token": None, "model_max_length": 512,
    }
    (out / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


if __name__ == "__main__":
    main()
