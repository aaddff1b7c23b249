"""Tokenizers of 96 tokens for the miniatures, laid out as their family's published tokenizer files are.

They know a small alphabet and a few merges, so any simple English text has ids. The first 93 tokens are text in
the byte-level families, then come three special ones; Gemma's begins with its four. A miniature has more rows
than that in its embedding, as published files have.
"""

import json
import pathlib

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDHIORSTW0123456789.,!?'-:;\"()<>|_"
MERGES = (
    "_+t h+e i+n r+e o+n _t+he e+r _+a a+t _+s e+n _+w o+u i+s n+d _+o _o+f in+g e+d _+in o+r e+s a+n _a+nd _+c "
    "a+r l+l _+b o+m"
).split()
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DOLMA2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = {93: "<|im_end|>", 94: "<|endoftext|>", 95: "<|pad|>"}
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
GEMMA_TEMPLATE = TEMPLATE.replace("<|im_end|>", "<end_of_turn>")
GEMMA_CONTROL = ["<pad>", "<eos>", "<bos>", "<unk>"]


def write(family, folder):
    folder = pathlib.Path(folder)
    if family == "gemma3_text":
        write_gemma(folder)
    else:
        write_byte_level(folder, DOLMA2 if family in ("olmo2", "olmo3") else GPT2)


def write_byte_level(folder, regex):
    merges = [tuple(m.replace("_", "Ġ").split("+")) for m in MERGES]
    tokens = ["Ċ", "Ġ", *LETTERS, *("".join(m) for m in merges)]
    assert len(tokens) == len(set(tokens)) == 93
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Removed", "invert": True}
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    dump(folder / "tokenizer.json", {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added(i, content) for i, content in SPECIAL.items()],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, bytes_]},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": bpe(tokens, merges, byte_fallback=False, unknown=None),
    })
    dump(folder / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": None, "eos_token": "<|endoftext|>",
        "pad_token": "<|pad|>", "unk_token": None, "add_bos_token": False, "clean_up_tokenization_spaces": False,
        "added_tokens_decoder": decoder_entries(SPECIAL),
        "chat_template": TEMPLATE,
    })


def write_gemma(folder):
    merges = [tuple(m.replace("_", "▁").split("+")) for m in MERGES[:27]]
    tokens = ["\n", "▁", *LETTERS.replace("_", ""), "_", *("".join(m) for m in merges)]
    assert len(tokens) == len(set(tokens)) == 91
    special = dict(enumerate(GEMMA_CONTROL)) | {95: "<end_of_turn>"}
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    split = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    bos, sequence = {"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    second = {"Sequence": {"id": "B", "type_id": 1}}
    dump(folder / "tokenizer.json", {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added(i, content) for i, content in special.items()],
        "normalizer": replace,
        "pre_tokenizer": split,
        "post_processor": {
            "type": "TemplateProcessing", "single": [bos, sequence], "pair": [bos, sequence, bos | {}, second],
            "special_tokens": {"<bos>": {"id": "<bos>", "ids": [2], "tokens": ["<bos>"]}},
        },
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        ]},
        "model": bpe(GEMMA_CONTROL + tokens + ["<end_of_turn>"], merges, byte_fallback=True, unknown="<unk>"),
    })
    dump(folder / "tokenizer_config.json", {
        "tokenizer_class": "GemmaTokenizer", "bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>",
        "unk_token": "<unk>", "add_bos_token": True, "add_eos_token": False, "clean_up_tokenization_spaces": False,
        "added_tokens_decoder": decoder_entries(special),
        "chat_template": "{{ bos_token }}" + GEMMA_TEMPLATE,
    })


def write_sentencepiece(folder):
    """The same vocabulary as a SentencePiece model, which the GGUF converter reads for Gemma."""
    from sentencepiece import sentencepiece_model_pb2 as proto

    vocab = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    tokens = sorted(vocab, key=vocab.get)
    n_merged = 27
    model = proto.ModelProto()
    for i, token in enumerate(tokens):
        control = i < 3 or i == 95
        kind = proto.ModelProto.SentencePiece.CONTROL if control else proto.ModelProto.SentencePiece.NORMAL
        if i == 3:
            kind = proto.ModelProto.SentencePiece.UNKNOWN
        first_merged = 95 - n_merged
        score = 0.0 if control or i == 3 else -float((i - first_merged) % 91)
        model.pieces.add(piece=token, score=score, type=kind)
    trainer = model.trainer_spec
    trainer.model_type, trainer.vocab_size = proto.TrainerSpec.BPE, len(tokens)
    trainer.pad_id, trainer.eos_id, trainer.bos_id, trainer.unk_id = range(4)
    trainer.pad_piece, trainer.eos_piece, trainer.bos_piece, trainer.unk_piece = GEMMA_CONTROL
    spec = model.normalizer_spec
    spec.name, spec.add_dummy_prefix, spec.remove_extra_whitespaces = "identity", False, False
    (folder / "tokenizer.model").write_bytes(model.SerializeToString())


def bpe(tokens, merges, byte_fallback, unknown):
    return {
        "type": "BPE", "dropout": None, "unk_token": unknown, "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": unknown is not None, "byte_fallback": byte_fallback,
        "ignore_merges": False, "vocab": {t: i for i, t in enumerate(tokens)}, "merges": [list(m) for m in merges],
    }


def added(token_id, content):
    return {
        "id": token_id, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
        "normalized": False, "special": True,
    }


def decoder_entries(special):
    entries = {str(i): added(i, content) for i, content in special.items()}
    return {i: {k: v for k, v in entry.items() if k != "id"} for i, entry in entries.items()}


def dump(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False) + "\n")
