"""Compares logits of an adapted GGUF model with those that transformers and peft compute over the same weights.

    python same_logits.py SAMARA MODEL.gguf ADAPTER

Unmerged, and merged by `samara merge` into f32. Prints the largest difference as a part of the largest logit; fails above 1e-3.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

IDS = [1, 4093, 198, 1780, 314, 260, 3575, 282, 12427, 22203, 2, 198, 1, 520, 9531, 198]


def ours(samara: str, model: str, options: list[str], folder: Path) -> torch.Tensor:
    out = folder / "logits.safetensors"
    ids = ",".join(map(str, IDS))
    subprocess.run([samara, "score", "--model", model, "--ids", ids, "--logits", str(out), "--json", *options], check=True, capture_output=True)
    return load_file(out)["logits"].float()


@torch.no_grad()
def official(model: str, adapter: str) -> torch.Tensor:
    path = Path(model)
    base = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32, attn_implementation="eager")
    return PeftModel.from_pretrained(base, adapter).eval()(input_ids=torch.tensor([IDS])).logits[0]


def main() -> None:
    samara, model, adapter, *options = sys.argv[1:]
    expected = official(model, adapter)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        merged = folder / "merged.gguf"
        subprocess.run([samara, "merge", "--model", model, "--adapter", adapter, "--output", str(merged), "--dtype", "f32"], check=True)
        found = {
            "unmerged": ours(samara, model, ["--adapter", adapter, "--kv", "f32", *options], folder),
            "merged": ours(samara, str(merged), ["--kv", "f32", *options], folder),
        }
    off = {how: ((logits - expected).abs().max() / expected.abs().max()).item() for how, logits in found.items()}
    print(json.dumps(off))
    assert max(off.values()) <= 1e-3, off


if __name__ == "__main__":
    main()
