"""Makes the GGUF miniatures from the safetensors ones, and golden logits for those that are not the same model.

    python gguf_files.py CONVERTER      (needs what make.py needs, and: gguf, sentencepiece)

CONVERTER is the folder that holds llama.cpp's `convert_hf_to_gguf.py`. It recognises a tokenizer by a hash, which
ours are not in, so the name of the pre-tokenizer is put in its mouth; all else in the files is as it writes it.
"""

import pathlib
import shutil
import sys
import tempfile

import gguf
import numpy
import torch
import transformers
from safetensors.numpy import load_file, save_file

import gguf_weights
import make

HERE = pathlib.Path(__file__).parent
GGUF = HERE / "gguf"

# Converted in f32, these are the same model as the folder of the same name.
SAME = ["llama", "olmo", "olmo_tied", "olmo2", "olmo3"]
# file -> miniature, type of its matrices; each has golden logits of its own.
OTHER = {
    "olmoe.f16": ("olmoe", "F16"),
    "gemma3.bf16": ("gemma3", "BF16"),
    "llama.q4_0": ("llama", "Q4_0"),
    "olmo.q4_1": ("olmo", "Q4_1"),
    "olmo2.q8_0": ("olmo2", "Q8_0"),
    "olmoe.q5_1": ("olmoe", "Q5_1"),
    "gemma3.q5_0": ("gemma3", "Q5_0"),
}
PRE = {"llama": "smollm", "olmo": "olmo", "olmo2": "dbrx", "olmo3": "dbrx", "olmoe": "olmo"}


def main(converter):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    shutil.rmtree(GGUF, ignore_errors=True)
    GGUF.mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        names = dict.fromkeys(SAME + [name for name, _ in OTHER.values()])
        for name in names:
            convert(converter, name, scratch / f"{name}.gguf")
            check_same(name, scratch / f"{name}.gguf")
        for name in SAME:
            shutil.copy(scratch / f"{name}.gguf", GGUF)
        for file, (name, kind) in OTHER.items():
            requantise(scratch / f"{name}.gguf", GGUF / f"{file}.gguf", gguf.GGMLQuantizationType[kind])
            save_golden(file, HERE / name)
        save_k_quants(scratch / "llama.gguf", scratch)


def convert(converter, name, target):
    """Runs the converter on a copy of the miniature, in f32."""
    import conversion_of

    with tempfile.TemporaryDirectory() as copy:
        copy = pathlib.Path(copy)
        shutil.copytree(HERE / name, copy, dirs_exist_ok=True)
        if name == "gemma3":
            import tokenizers_of

            tokenizers_of.write_sentencepiece(copy)
        conversion_of.run(converter, copy, target, name, PRE.get(name.partition("_")[0]))


def check_same(name, path):
    """What we read back from the GGUF is what the safetensors hold."""
    _, state = gguf_weights.load(path)
    official = make.load(HERE / name).state_dict()
    tied = set(official) - set(state)
    assert tied <= {"lm_head.weight"}, tied
    for key, weight in state.items():
        torch.testing.assert_close(weight, official[key], rtol=0, atol=2e-7 if "norm" in key else 0)


def requantise(source, target, kind):
    """A copy of the GGUF `source` with its matrices stored as `kind`, as far as their rows are whole blocks."""
    reader = gguf.GGUFReader(source)
    block = gguf.GGML_QUANT_SIZES[kind][0]
    writer = writer_with_values_of(reader, target)
    for tensor in reader.tensors:
        weight = numpy.array(tensor.data)
        is_matrix = weight.ndim > 1 and "ffn_gate_inp" not in tensor.name and weight.shape[-1] % block == 0
        stored = kind if is_matrix else gguf.GGMLQuantizationType.F32
        writer.add_tensor(tensor.name, gguf.quants.quantize(weight, stored), raw_dtype=stored)
    finish(writer)


def writer_with_values_of(reader, target, changed=()):
    arch = reader.get_field("general.architecture").contents()
    writer = gguf.GGUFWriter(target, arch)
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        value = dict(changed).get(key, field.contents())
        sub_type = field.types[-1] if len(field.types) > 1 else None
        writer.add_key_value(key, value, field.types[0], sub_type)
    return writer


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def save_golden(file, folder):
    """Logits of the dequantised weights for the ids of the miniature in `folder`."""
    model = make.load(folder)
    _, state = gguf_weights.load(GGUF / f"{file}.gguf")
    rejected = model.load_state_dict(state, strict=False)
    assert not rejected.unexpected_keys and set(rejected.missing_keys) <= {"lm_head.weight"}, rejected
    ids = load_file(folder / "golden.safetensors")["ids"]
    save_file({"ids": ids, "logits": make.logits_of(model, ids)}, GGUF / f"{file}.golden.safetensors")


K_TYPES = {
    "token_embd.weight": "Q6_K", "blk.0.attn_q.weight": "Q4_K", "blk.0.attn_k.weight": "Q5_K",
    "blk.0.attn_v.weight": "Q6_K", "blk.0.attn_output.weight": "Q3_K", "blk.0.ffn_gate.weight": "Q2_K",
    "blk.0.ffn_up.weight": "IQ4_XS", "blk.0.ffn_down.weight": "IQ4_NL", "blk.1.attn_q.weight": "Q5_1",
    "blk.1.attn_k.weight": "Q5_0", "blk.1.attn_v.weight": "Q8_0", "blk.1.attn_output.weight": "Q4_1",
    "blk.1.ffn_gate.weight": "MXFP4", "blk.1.ffn_up.weight": "Q4_0", "blk.1.ffn_down.weight": "Q4_K",
}


def save_k_quants(llama, scratch):
    """One wide Llama of two layers that holds every block type, filled with random valid blocks."""
    config = transformers.LlamaConfig(
        hidden_size=256, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1,
        vocab_size=112, max_position_embeddings=256, rms_norm_eps=1e-5, tie_word_embeddings=True, bos_token_id=94,
        eos_token_id=94, pad_token_id=95)
    folder = scratch / "blocks"
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    sizes = {"embedding_length": 256, "feed_forward_length": 256, "block_count": 2, "attention.head_count": 4,
             "attention.head_count_kv": 1, "attention.key_length": 64, "attention.value_length": 64,
             "rope.dimension_count": 64}
    changed = {f"llama.{key}": value for key, value in sizes.items()}
    writer = writer_with_values_of(gguf.GGUFReader(llama), GGUF / "llama.blocks.gguf", changed)
    random = numpy.random.default_rng(7)
    shapes = {"attn_k": 64, "attn_v": 64, "token_embd": 112}
    for name, kind in K_TYPES.items():
        part = name.removesuffix(".weight").rpartition(".")[2]
        kind = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(name, random_blocks(random, shapes.get(part, 256), kind), raw_dtype=kind)
    for name in ["output_norm", *(f"blk.{i}.{part}_norm" for i in range(2) for part in ("attn", "ffn"))]:
        writer.add_tensor(name + ".weight", (1 + 0.25 * random.standard_normal(256)).astype(numpy.float32))
    finish(writer)
    shutil.copy(HERE / "llama" / "golden.safetensors", folder)
    save_golden("llama.blocks", folder)


def random_blocks(random, n_rows, kind):
    """Rows of 256 weights of spread near 1.2 / 16, every bit of every block in use."""
    n_weights, n_bytes = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (n_rows * 256 // n_weights, n_bytes), dtype=numpy.uint8)
    if kind.name == "MXFP4":
        blocks[:, 0] = random.integers(121, 124, len(blocks))
        return blocks.reshape(n_rows, -1)
    scale, offset, per_scale = SCALES[kind.name]
    set_scales(blocks, scale, offset, per_scale, random, spread=1.0)
    spread = gguf.quants.dequantize(blocks, kind).std()
    set_scales(blocks, scale, offset, per_scale, random, spread=1.2 / 16 / spread)
    return blocks.reshape(n_rows, -1)


# type -> byte of the f16 scale, byte of the f16 offset, offset of the middle code in units of the scale.
SCALES = {
    "Q4_0": (0, None, 0), "Q4_1": (0, 2, -7.5), "Q5_0": (0, None, 0), "Q5_1": (0, 2, -15.5), "Q8_0": (0, None, 0),
    "Q2_K": (80, 82, 1.5), "Q3_K": (108, None, 0), "Q4_K": (0, 2, 7.5), "Q5_K": (0, 2, 15.5), "Q6_K": (208, None, 0),
    "IQ4_NL": (0, None, 0), "IQ4_XS": (0, None, 0),
}


def set_scales(blocks, scale, offset, per_scale, random, spread):
    values = (spread * random.uniform(0.5, 1.5, len(blocks))).astype(numpy.float16)
    blocks[:, scale:scale + 2] = values.view(numpy.uint8).reshape(-1, 2)
    if offset is not None:
        offsets = (per_scale * values.astype(numpy.float32)).astype(numpy.float16)
        blocks[:, offset:offset + 2] = offsets.view(numpy.uint8).reshape(-1, 2)


if __name__ == "__main__":
    main(sys.argv[1])
