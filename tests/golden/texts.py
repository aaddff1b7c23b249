"""Texts that tokenizers get wrong, and the tokenizers of the two real models to judge by.

`transformers` builds both from the GGUF. What it cannot know is put right or checked here: SmolLM2 separates every digit
before it splits words (the GGUF says so only by the name `smollm`), and Gemma's ids must be those of SentencePiece
itself, given the pieces and scores of the GGUF, wherever no special token is spelled out. (They differ over runs of
more than 31 spaces, for which there is no token and no published file here to ask, so no text has one.)
"""

import gguf
import tokenizers
import transformers

TEXTS = [
    "",
    " ",
    "Hello, world!",
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "  two spaces before, two between  words and two after  ",
    "a\n\nb\n\n\nc\r\n\r\n d",
    "\ttabs\t\tand\n\tnewlines\n",
    "    def f(x):\n        return x ** 2  # square\n\n\nprint(f(3))",
    "1234567890 and 3.14159, 12,345.67 or 1e-9",
    "  7 dwarfs,   42 answers,\n\n99 balloons",
    "don't DON'T we've I'LL it's 'quoted' o'clock",
    "naïve café, Zürich, Øresund, crème brûlée",
    "e\u0301 and \u00e9 are the same to the eye",
    "Привет, мир! Как дела?",
    "Καλημέρα κόσμε",
    "你好，世界。今天天气很好！",
    "日本語のテキストと、カタカナ",
    "한국어 문장입니다.",
    "مرحبا بالعالم ١٢٣",
    "שלום עולם",
    "हिन्दी में एक वाक्य",
    "ภาษาไทยไม่มีช่องว่าง",
    "👋🌍 emoji 👩‍🚀 family 👨‍👩‍👧‍👦 flag 🇩🇪 skin 👍🏽",
    "𝟘𝟙𝟚 x²½Ⅷ ﬁne ™ © №",
    "\u200bzero\u200dwidth\ufeff and nbsp\u00a0here, \u0085 next line",
    "https://example.org/a?b=c&d=%20#e user@example.org C:\\dir\\file.txt",
    '{"key": [1, 2.5, null, true], "s": "a\\nb"}',
    "<|im_start|>user\nhi<|im_end|>\n<|endoftext|>",
    "<bos><start_of_turn>user\nhi<end_of_turn>\n<eos>",
    "<b>bold</b> <table><tr><td>1</td></tr></table> <unk>",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!!!!!!!!!!??????......------======",
    "snake_case camelCase SCREAMING_CASE kebab-case ▁lower ▁▁two",
    "x" + " " * 15 + "y" + "\n" * 12 + "z" + "\t" * 5,
]
CHATS = [
    [{"role": "user", "content": "What is the capital of France?"}],
    [
        {"role": "system", "content": "You answer in one word."},
        {"role": "user", "content": "Two plus two?"},
        {"role": "assistant", "content": "Four."},
        {"role": "user", "content": "And three more? 🙂"},
    ],
]


def tokenizer(name, path):
    return {"smollm2": SmolLM2, "gemma3": Gemma3}[name](path)


class SmolLM2:
    def __init__(self, path):
        self.official = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        self.official.backend_tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
            tokenizers.pre_tokenizers.Digits(individual_digits=True),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=True),
        ])

    def encode(self, text):
        return self.official.encode(text)

    def decode(self, ids):
        return self.official.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)


class Gemma3:
    def __init__(self, path):
        self.official = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        self.pieces = sentencepiece_model(path)

    def encode(self, text):
        ids = self.official.encode(text)
        assert "<" in text or ids[1:] == self.pieces.encode(text), text
        return ids

    def decode(self, ids):
        return self.official.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)


def sentencepiece_model(path):
    """The vocabulary of a GGUF as the SentencePiece model it came from."""
    from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2 as proto

    reader = gguf.GGUFReader(path)
    value = lambda key: reader.get_field(f"tokenizer.ggml.{key}").contents()
    model = proto.ModelProto()
    for token, score, kind in zip(value("tokens"), value("scores"), value("token_type")):
        spelled = token.replace(" ", "▁") if kind == 4 else token
        model.pieces.add(piece=spelled, score=score, type=kind)
    trainer, spec = model.trainer_spec, model.normalizer_spec
    trainer.model_type, trainer.byte_fallback, trainer.vocab_size = proto.TrainerSpec.BPE, True, len(model.pieces)
    trainer.bos_id, trainer.eos_id = value("bos_token_id"), value("eos_token_id")
    trainer.unk_id, trainer.pad_id = value("unknown_token_id"), value("padding_token_id")
    spec.name, spec.add_dummy_prefix, spec.remove_extra_whitespaces = "identity", False, False
    return SentencePieceProcessor(model_proto=model.SerializeToString())


def chat(tokenizer, messages):
    """The model's own template around `messages`, and its ids."""
    text = tokenizer.official.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return {"messages": messages, "text": text, "ids": tokenizer.encode(text)}
