"""Random blocks of every type that can be read, and their values according to the `gguf` package.

    pip install gguf==0.19.0 numpy
    python make_blocks.py            # writes blocks.gguf beside this file

Each type is a tensor NAME of raw blocks, and a tensor NAME.f32 of the values that `gguf.quants.dequantize` gives.
"""

from pathlib import Path

import gguf
import numpy as np

N_VALUES = 2048

# Byte offsets of f16 fields in a block: they get random finite values, everything else random bytes.
HALVES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [], "F16": [], "BF16": [], "F32": [],
}


def random_blocks(rng, block_bytes, n_blocks, halves):
    blocks = rng.integers(0, 256, (n_blocks, block_bytes), dtype=np.uint8)
    for at in halves:
        exponents = rng.uniform(-12, 3, n_blocks)
        values = (np.exp2(exponents) * rng.choice([-1, 1], n_blocks)).astype(np.float16)
        blocks[:, at : at + 2] = values.view(np.uint8).reshape(n_blocks, 2)
    return blocks


def main():
    rng = np.random.default_rng(7)
    writer = gguf.GGUFWriter(Path(__file__).with_name("blocks.gguf"), "blocks")
    for name, halves in HALVES.items():
        dtype = gguf.GGMLQuantizationType[name]
        block_len, block_bytes = gguf.GGML_QUANT_SIZES[dtype]
        n_values = N_VALUES if block_len > 1 else 512
        blocks = random_blocks(rng, block_bytes, n_values // block_len, halves)
        rows = blocks.reshape(n_values // 256, -1)
        with np.errstate(over="ignore"):
            values = gguf.quants.dequantize(rows, dtype).astype(np.float32)
        writer.add_tensor(name, rows, raw_dtype=dtype)
        writer.add_tensor(name + ".f32", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
