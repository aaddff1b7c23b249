"""Writes the seed files of the targets `gguf`, `safetensors_index` and `adapter`, each under 4 kB.

    pip install gguf==0.19.0 numpy
    python make_seeds.py
"""

import json
import struct
from pathlib import Path

import gguf
import numpy as np

HERE = Path(__file__).parent
SEPARATOR = b"\n---\n"


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def raw_gguf(pairs=(), tensors=(), data=b"", version=3, alignment=32):
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs))
    out += b"".join(pairs) + b"".join(tensors)
    return out + b"\0" * (-len(out) % alignment) + data


def pair(key, of, value):
    return string(key) + struct.pack("<I", of) + value


def entry(name, dims, of, offset):
    return string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, of, offset)


def quantised(types):
    """One row of blocks of each type."""
    rng = np.random.default_rng(1)
    tensors, data = [], b""
    for name in types:
        of = gguf.GGMLQuantizationType[name]
        block_len, block_bytes = gguf.GGML_QUANT_SIZES[of]
        tensors.append(entry(f"blk.0.{name}.weight", [block_len], int(of), len(data)))
        block = rng.integers(0, 256, block_bytes, dtype=np.uint8).tobytes()
        data += block + b"\0" * (-len(block) % 32)
    return raw_gguf(tensors=tensors, data=data)


def gguf_seeds():
    scalars = ["<B", "<b", "<H", "<h", "<I", "<i", "<f", "<B"]
    scalar_pairs = [pair(f"s.{of}", of, struct.pack(form, 1)) for of, form in enumerate(scalars)]
    scalar_pairs += [pair("s.8", 8, string("text é"))]
    scalar_pairs += [pair(f"s.{of}", of, struct.pack(form, 1)) for of, form in [(10, "<Q"), (11, "<q"), (12, "<d")]]
    lists = [(0, "<2B"), (3, "<2h"), (5, "<2i"), (6, "<2f"), (7, "<2B"), (12, "<2d")]
    list_pairs = [pair(f"l.{of}", 9, struct.pack("<IQ", of, 2) + struct.pack(form, 1, 0)) for of, form in lists]
    list_pairs += [pair("l.8", 9, struct.pack("<IQ", 8, 2) + string("a") + string("bc"))]
    floats = [entry("token_embd.weight", [4, 2], 0, 0), entry("output_norm.weight", [4], 0, 32)]
    vocabulary = [
        pair("general.architecture", 8, string("olmo2")),
        pair("tokenizer.ggml.model", 8, string("gpt2")),
        pair("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 3) + string("a") + string("b") + string("ab")),
        pair("tokenizer.ggml.merges", 9, struct.pack("<IQ", 8, 1) + string("a b")),
        pair("tokenizer.ggml.token_type", 9, struct.pack("<IQ3i", 5, 3, 1, 1, 3)),
    ]
    split = [pair("split.no", 2, struct.pack("<H", 0)), pair("split.count", 2, struct.pack("<H", 2))]
    return {
        "empty_container": raw_gguf(),
        "version_2": raw_gguf(version=2, tensors=floats, data=bytes(48)),
        "scalars": raw_gguf(scalar_pairs),
        "lists": raw_gguf(list_pairs),
        "vocabulary": raw_gguf(vocabulary),
        "floats": raw_gguf(scalar_pairs[:1], floats, bytes(48)),
        "alignment_8": raw_gguf([pair("general.alignment", 4, struct.pack("<I", 8))], floats, bytes(48), alignment=8),
        "alignment_0": raw_gguf([pair("general.alignment", 4, bytes(4))], floats, bytes(48)),
        "split_part": raw_gguf(split, floats, bytes(48)),
        "small_blocks": quantised(["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "MXFP4"]),
        "large_blocks": quantised(["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS"]),
        "count_too_large": b"GGUF" + struct.pack("<IQQ", 3, 2**63, 2**63),
        "overlap": raw_gguf(tensors=[entry("a", [8], 0, 0), entry("b", [8], 0, 0)], data=bytes(64)),
        "size_overflow": raw_gguf(tensors=[entry("a", [2**32, 2**32, 2**32, 2**32], 0, 0)], data=bytes(64)),
    }


def header(entries, n_data_bytes):
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + bytes(n_data_bytes)


def tensors(names, dtype="F32", size=4):
    return {
        name: {"dtype": dtype, "shape": [1, 2], "data_offsets": [2 * size * i, 2 * size * (i + 1)]}
        for i, name in enumerate(names)
    }


def index(weight_map, **more):
    return json.dumps({"weight_map": weight_map, **more}).encode()


def safetensors_seeds():
    one, two = header(tensors("ab"), 16), header(tensors("cd", "BF16", 2), 8)
    both = {"a": "1.safetensors", "b": "1.safetensors", "c": "2.safetensors", "d": "2.safetensors"}
    twice = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    pieces = {
        "two_parts": [index(both, metadata={"total_size": 24}), one, two],
        "no_metadata": [index(both), one, two],
        "missing_part": [index(both), one],
        "extra_tensors": [index({"a": "1.safetensors", "d": "2.safetensors"}), one, two],
        "subfolder": [index({"a": "sub/3.safetensors"}), b"", b"", one],
        "outside": [index({"a": "../1.safetensors"}), one],
        "no_weight_map": [b"{}", one],
        "single": [b"", header({"__metadata__": {"format": "pt"}, **tensors("ab", "F16", 2)}, 8)],
        "single_scalar": [b"", header({"s": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}, 4)],
        "name_twice": [b"", header(twice, 4)],
        "gap": [b"", header({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, 8)],
        "header_too_long": [b"", struct.pack("<Q", 2**40) + b"{}"],
        "size_overflow": [b"", header({"a": {"dtype": "F32", "shape": [2**33, 2**33], "data_offsets": [0, 4]}}, 4)],
        "unreadable_type": [b"", header(tensors("a", "I64", 8), 16)],
    }
    return {name: SEPARATOR.join(files) for name, files in pieces.items()}


def lora(parts, rank=2, module="base_model.model.model.layers.0.self_attn.q_proj"):
    """A file with these parts of one module, from 3 to 4 wide."""
    shapes = {"lora_A": [rank, 3], "lora_B": [4, rank], "lora_magnitude_vector": [4]}
    entries, start = {}, 0
    for part in parts:
        shape = shapes[part.partition(".")[0]]
        end = start + 4 * int(np.prod(shape))
        entries[f"{module}.{part}"] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
        start = end
    return header(entries, start)


def adapter_seeds():
    config = lambda **more: json.dumps({"peft_type": "LORA", "r": 2, "lora_alpha": 8, **more}).encode()
    pair = ["lora_A.weight", "lora_B.weight"]
    twice = pair + ["lora_A.default.weight"]
    pieces = {
        "lora": [config(), lora(pair)],
        "dora": [config(use_dora=True, use_rslora=True), lora(pair + ["lora_magnitude_vector"])],
        "old_spelling": [config(), lora(["lora_A.default.weight", "lora_B.default.weight"])],
        "no_b": [config(), lora(pair[:1])],
        "part_twice": [config(), lora(twice)],
        "other_rank": [config(), lora(pair, rank=3)],
        "rank_overflow": [config(r=2**63), lora(pair)],
        "no_config": [b"", lora(pair)],
        "no_weights": [config()],
        "pattern": [config(target_modules=".*(q|v)_proj", lora_dropout=0.1), lora(pair)],
        "patterns_of_rank": [config(rank_pattern={"q_proj": 4}), lora(pair)],
        "head": [config(target_modules="all-linear"), lora(pair, module="base_model.model.lm_head")],
        "half_floats": [config(), header(tensors(["base_model.model.l.lora_A.weight"], "F16", 2), 4)],
    }
    return {name: SEPARATOR.join(files) for name, files in pieces.items()}


def main():
    targets = [("gguf", gguf_seeds()), ("safetensors_index", safetensors_seeds()), ("adapter", adapter_seeds())]
    for target, seeds in targets:
        (HERE / target).mkdir(exist_ok=True)
        for name, seed in seeds.items():
            assert len(seed) < 4096, (name, len(seed))
            (HERE / target / name).write_bytes(seed)


if __name__ == "__main__":
    main()
