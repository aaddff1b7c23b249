"""Checks the files that `core/formats` writes with the packages that others read them by.

    cargo build --release -p samara-formats --example rewrite
    python rewrite.py REWRITE CONVERTER      (needs what train.py and gguf_files.py need)

REWRITE is the example's binary; CONVERTER is the folder that holds llama.cpp's `convert_lora_to_gguf.py`. Everything
happens in a temporary folder; nothing here is committed but this script.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import gguf
import numpy
import peft
import torch
import transformers
from safetensors.torch import load_file

import gguf_weights
import make
import train

HERE = pathlib.Path(__file__).parent
# miniature -> architecture in GGUF, width of the heads whose q and k rows are interleaved there.
ARCHITECTURES = {"llama": ("llama", 8), "olmo": ("olmo", 8), "olmo2": ("olmo2", 0), "olmo3": ("olmo2", 0)}


def main(binary, converter):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    rewrite = lambda *arguments: subprocess.run([binary, *map(str, arguments)], check=True)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for name, options in [("llama", {}), ("llama", {"use_dora": True}), ("llama", {"use_rslora": True}),
                              ("olmo", {}), ("olmo2", {}), ("olmo3", {}), ("olmoe", {})]:
            check_adapter(rewrite, converter, name, options, pathlib.Path(tempfile.mkdtemp(dir=scratch)))
        check_kills(binary, scratch)
        for name in ("llama", "olmo2", "olmo2_gqa_bf16", "olmoe"):
            check_model(rewrite, name, scratch / f"{name}.copy")
        for file in ("llama", "olmo2", "olmoe.f16", "gemma3.bf16"):
            for kind in ("F32", "F16", "BF16", "Q8_0"):
                check_gguf(rewrite, file, kind, scratch / f"{file}.{kind}.gguf")


def check_adapter(rewrite, converter, name, options, scratch):
    """peft reads ours and computes the same; ours holds what peft wrote; the GGUF is llama.cpp's."""
    targets = train.ATTENTION if name == "olmoe" else train.LINEAR
    model = train.random_adapter(name, targets, **options).eval()
    model.save_pretrained(scratch / "theirs")
    rewrite("adapter", scratch / "theirs", scratch / "ours")
    theirs, ours = (load_file(scratch / who / "adapter_model.safetensors") for who in ("theirs", "ours"))
    assert theirs.keys() == ours.keys() and all(torch.equal(theirs[key], ours[key]) for key in theirs)

    loaded = peft.PeftModel.from_pretrained(train.load(name), scratch / "ours").eval()
    assert type(loaded.peft_config["default"].lora_alpha) is int
    ids = load_ids(name)
    expected, found = make.logits_of(model, ids), make.logits_of(loaded, ids)
    assert (expected == found).all()
    base = make.logits_of(train.load(name), ids)
    print(f"{name:15} {options or 'lora'}: peft gives the same logits, {abs(expected - base).max():.2f} from the base")
    if name in ARCHITECTURES and not options:
        check_export(rewrite, converter, name, scratch)


def check_export(rewrite, converter, name, scratch):
    arch, head_dim = ARCHITECTURES[name]
    rewrite("adapter-gguf", scratch / "theirs", scratch / "ours.gguf", arch, head_dim)
    script = pathlib.Path(converter) / "convert_lora_to_gguf.py"
    subprocess.run([sys.executable, script, "--base", HERE / name, "--outfile", scratch / "theirs.gguf",
                    scratch / "theirs"], check=True, stderr=subprocess.DEVNULL)
    ours, theirs = (gguf.GGUFReader(scratch / f"{who}.gguf") for who in ("ours", "theirs"))
    held = [{t.name: t for t in reader.tensors} for reader in (ours, theirs)]
    assert held[0].keys() == held[1].keys()
    for tensor_name, tensor in held[0].items():
        other = held[1][tensor_name]
        assert tensor.tensor_type == other.tensor_type and (tensor.data == other.data).all(), tensor_name
    for key in ("general.architecture", "general.type", "adapter.type", "adapter.lora.alpha"):
        assert ours.get_field(key).contents() == theirs.get_field(key).contents(), key
    print(f"{name:15} as a GGUF adapter: the {len(held[0])} tensors and the metadata of llama.cpp's converter")


def check_kills(binary, scratch):
    """Killed at a random moment while one adapter replaces another, a folder holds either whole."""
    adapters = []
    for options in ({}, {"use_dora": True}):
        train.random_adapter("llama", train.LINEAR, **options).save_pretrained(scratch / f"kill{len(adapters)}")
        subprocess.run([binary, "adapter", scratch / f"kill{len(adapters)}", scratch / f"whole{len(adapters)}"], check=True)
        adapters.append(contents(scratch / f"whole{len(adapters)}"))
    target, found, n_killed = scratch / "target", [], 0
    shutil.copytree(scratch / "whole0", target)
    random = numpy.random.default_rng(1)
    for i in range(300):
        writer = subprocess.Popen([binary, "adapter", scratch / f"kill{1 - i % 2}", target])
        time.sleep(random.uniform(0, 0.05))
        writer.kill()
        n_killed += writer.wait() != 0
        subprocess.run([binary, "adapter", target, scratch / "read"], check=True)
        found.append(adapters.index(contents(scratch / "read")))
    changed = sum(a != b for a, b in zip(found, found[1:]))
    print(f"{n_killed} of 300 writers killed: the folder always held a whole adapter, and changed it {changed} times")


def contents(folder):
    return [(folder / name).read_bytes() for name in ("adapter_config.json", "adapter_model.safetensors")]


def check_model(rewrite, name, copy):
    rewrite("model", HERE / name, copy)
    kept, model = make.load(HERE / name).state_dict(), transformers.AutoModelForCausalLM.from_pretrained(copy)
    stored = load_file(copy / "model.safetensors")
    assert {weight.dtype for weight in stored.values()} == {model.dtype}
    assert all(torch.equal(weight.float(), kept[key]) for key, weight in model.state_dict().items())
    transformers.AutoTokenizer.from_pretrained(copy)
    print(f"{name:15} written anew in {model.dtype}: transformers reads the same weights, and a tokenizer")


def check_gguf(rewrite, file, kind, copy):
    source = HERE / "gguf" / f"{file}.gguf"
    rewrite("gguf", source, copy, kind)
    old, new = gguf.GGUFReader(source), gguf.GGUFReader(copy)
    old_tensors = {t.name: t for t in old.tensors}
    assert old_tensors.keys() == {t.name for t in new.tensors}
    for tensor in new.tensors:
        held = old_tensors[tensor.name]
        values = gguf.quants.dequantize(held.data, held.tensor_type).astype(numpy.float32)
        expected = gguf.quants.quantize(values, tensor.tensor_type)
        assert (numpy.asarray(tensor.data).view(numpy.uint8) == expected.view(numpy.uint8)).all(), tensor.name
    changed = {"general.file_type", "general.quantization_version"}
    for key in {key for key in old.fields if not key.startswith("GGUF.")} - changed:
        assert old.get_field(key).contents() == new.get_field(key).contents(), key
    gguf_weights.load(copy)
    types = sorted({tensor.tensor_type.name for tensor in new.tensors})
    print(f"{file:15} written anew as {kind} ({', '.join(types)}): the bytes of the gguf package")


def load_ids(name):
    return load_file(HERE / name / "golden.safetensors")["ids"].numpy()


if __name__ == "__main__":
    main(*sys.argv[1:])
