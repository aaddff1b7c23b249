"""Values and what the `gguf` package stores them as.

    pip install gguf==0.19.0 numpy
    python make_encoded.py           # writes encoded.gguf beside this file

`values` in f32, and under the name of each type that we write the same values as `gguf.quants.quantize` packs them.
"""

from pathlib import Path

import gguf
import numpy as np


def values():
    """Rows of 64: spreads from the subnormal to the large, halves that must round away from zero, a zero block."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((12, 64)).astype(np.float32) * np.exp2(np.linspace(-30, 14, 12, dtype=np.float32))[:, None]
    halves = rng.integers(-254, 255, (2, 64)).astype(np.float32) / 2
    halves[:, 0::32] = 127
    edge = np.zeros((1, 64), np.float32)
    edge[0, 32:36] = [-0.0, 1e-40, -1e-8, 3e-5]
    return np.concatenate([rows, halves, edge])


def main():
    writer = gguf.GGUFWriter(Path(__file__).with_name("encoded.gguf"), "encoded")
    writer.add_tensor("values", values())
    for name in ("F32", "F16", "BF16", "Q8_0"):
        dtype = gguf.GGMLQuantizationType[name]
        writer.add_tensor(name, gguf.quants.quantize(values(), dtype), raw_dtype=dtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
