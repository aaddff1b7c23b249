"""Writes tokens.json: texts and their ids in the vocabularies of two published GGUF files.

    python make_tokens.py SmolLM2-135M-Instruct.Q4_1.gguf gemma-3-270m-q4_k_m.gguf > tokens.json

Needs `pip install regex sentencepiece protobuf`. The ids come from implementations that share nothing with Samara's:
byte-level BPE written out below with the `regex` module, and Google's SentencePiece on a model rebuilt from the vocabulary.
Special tokens written in a text become their ids, as in the Hugging Face tokenizers.
"""

import functools
import json
import struct
import sys

import regex
import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as pb

TEXTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "The three primary colors are",
    "Hello, world! 1234567",
    "don't DON'T I'LL we'Ve 'S it's IT'S it'\u017f ok",
    "\u65e5\u672c\u8a9e\U0001f600",
    "\U0001f642 \u8a9e \U0001f469\u200d\U0001f680 \u00e9 e\u0301",
    "\r\n\r\n x",
    "    def f(x):\n        return x\n\n\n",
    "\tif (a)\n\t\tb();\n\t\t\tc();",
    "a  b   c    d     e      f       g        h",
    "a  \n  b \n \n\n  c  ",
    " leading and trailing  ",
    "1234567890 12,345.67 3rd 2\u00b2 x\u00b2\u00bd\u2167 \U0001d7d8\U0001d7d9",
    "\u0000a \ufeffBOM a\u0085b \u00a0nbsp",
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u0661\u0662\u0663 \u0939\u093f\u0928\u094d\u0926\u0940 \u4e2d\u6587\uff0c\u6d4b\u8bd5\u3002 \ud55c\uad6d\uc5b4 \u0e44\u0e17\u0e22",
    "<think>\nOkay</think>\n\nHello <b>bold</b> <table><tr><td>1</td></tr></table> </s> <s>",
    "snake_case camelCase SCREAMING_CASE kebab-case https://example.org/a?b=c&d=%20 #tag @name",
    "".join(" " * n + "x" for n in (15, 16, 30, 31, 32, 33, 63)),
    "\n" * 30 + "a" + "\n" * 31 + "b" + "\n" * 32 + "c" + "\n" * 65,
    "\t" * 31 + "a" + "\t" * 32,
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbb 0000000000000000000000",
    "\u2581 underline \u2581\u2581 and <0x0A> and \U000e0041 \u0378",
    "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch antidisestablishmentarianism",
    "let mut v: Vec<u8> = vec![0; 16]; // comment\nfor i in 0..v.len() { v[i] ^= 0xFF; }",
    "",
    " ",
    "\n",
]
CHATS = {
    "smollm2": "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi 42<|im_end|>\n<|im_start|>assistant\n",
    "gemma3": "<bos><start_of_turn>user\nHi  there<end_of_turn>\n<start_of_turn>model\n",
}
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def read_metadata(path):
    """The key-value part of a GGUF file."""
    data = open(path, "rb").read(64 << 20)
    at = 24

    def scalar(code):
        nonlocal at
        (value,) = struct.unpack_from("<" + code, data, at)
        at += struct.calcsize(code)
        return value

    def text():
        nonlocal at
        size = scalar("Q")
        at += size
        return data[at - size : at].decode()

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            kind, count = scalar("I"), scalar("Q")
            return [value(kind) for _ in range(count)]
        return scalar(SCALARS[kind])

    (count,) = struct.unpack_from("<Q", data, 16)
    pairs = {}
    for _ in range(count):
        key = text()
        pairs[key] = value(scalar("I"))
    return {key.removeprefix("tokenizer.ggml."): v for key, v in pairs.items() if key.startswith("tokenizer.ggml.")}


def byte_alphabet():
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(256 + i) for i, b in enumerate(moved)}}


def byte_level_encoder(meta):
    """SmolLM2: single digits, then GPT-2's pattern, then merges by rank."""
    alphabet = byte_alphabet()
    ids = {token: i for i, token in enumerate(meta["tokens"])}
    ranks = {tuple(merge.split(" ")): i for i, merge in enumerate(meta["merges"])}
    gpt2 = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")

    @functools.cache
    def merged(word):
        parts = [c for c in word if c in ids]  # Bytes that the vocabulary lacks are left out.
        while len(parts) > 1:
            best = min(range(len(parts) - 1), key=lambda i: ranks.get((parts[i], parts[i + 1]), 1 << 60))
            if (parts[best], parts[best + 1]) not in ranks:
                break
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
        return [ids[part] for part in parts]

    def encode(text):
        pieces = [piece for run in regex.findall(r"\p{N}|[^\p{N}]+", text) for piece in gpt2.findall(run)]
        return [i for piece in pieces for i in merged("".join(alphabet[b] for b in piece.encode()))]

    return encode


def sentencepiece_encoder(meta):
    """Gemma 3: the vocabulary as a SentencePiece BPE model."""
    model = pb.ModelProto()
    for i, (token, score, kind) in enumerate(zip(meta["tokens"], meta["scores"], meta["token_type"])):
        kind = UNKNOWN if i == meta["unknown_token_id"] else kind
        token = token.replace(" ", "\u2581") if kind == USER_DEFINED else token
        model.pieces.add(piece=token, score=score, type=kind)
    spec = model.trainer_spec
    spec.model_type, spec.vocab_size, spec.byte_fallback = pb.TrainerSpec.BPE, len(meta["tokens"]), True
    spec.unk_id, spec.bos_id, spec.eos_id, spec.pad_id = (meta[f"{n}_token_id"] for n in ("unknown", "bos", "eos", "padding"))
    spec.unk_piece, spec.bos_piece, spec.eos_piece, spec.pad_piece = "<unk>", "<bos>", "<eos>", "<pad>"
    normal = model.normalizer_spec
    normal.name, normal.add_dummy_prefix, normal.remove_extra_whitespaces, normal.escape_whitespaces = "identity", False, False, True
    return sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString()).EncodeAsIds


def with_control_tokens(meta, encode):
    ids = {token: i for i, (token, kind) in enumerate(zip(meta["tokens"], meta["token_type"])) if kind == CONTROL}
    pattern = regex.compile("(" + "|".join(map(regex.escape, sorted(ids, key=len, reverse=True))) + ")")

    def encode_all(text):
        return [i for part in pattern.split(text) if part for i in ([ids[part]] if part in ids else encode(part))]

    return encode_all


def cases(name, meta, encode):
    encode = with_control_tokens(meta, encode)
    return [{"text": text, "ids": encode(text)} for text in [*TEXTS, CHATS[name]]]


def main():
    smollm2, gemma3 = (read_metadata(path) for path in sys.argv[1:3])
    golden = {
        "smollm2": cases("smollm2", smollm2, byte_level_encoder(smollm2)),
        "gemma3": cases("gemma3", gemma3, sentencepiece_encoder(gemma3)),
    }
    lists = [f'"{name}": [\n' + ",\n".join("  " + json.dumps(case) for case in rows) + "\n]" for name, rows in golden.items()]
    print("{\n" + ",\n".join(lists) + "\n}")


main()
