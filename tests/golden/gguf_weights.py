"""The weights of a GGUF file, dequantised to f32, under the names and in the layout of the official classes.

This is a second way to what `transformers` does with `gguf_file=`, which knows neither OLMo nor OLMoE, and the
check on it where it does know a family.
"""

import re

import gguf
import numpy
import torch

TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
LAYER = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    "post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
    "ffn_gate_inp": "mlp.gate", "ffn_gate_exps": "mlp.experts.gate", "ffn_up_exps": "mlp.experts.up",
    "ffn_down_exps": "mlp.experts.down_proj",
}
PERMUTED = {"llama", "olmo"}


def load(path):
    """(architecture, state dict) of the file at `path`."""
    reader = gguf.GGUFReader(path)
    arch = reader.get_field("general.architecture").contents()
    heads = {"attn_q": head_count(reader, arch, "head_count"), "attn_k": head_count(reader, arch, "head_count_kv")}
    state = {}
    for tensor in reader.tensors:
        weight = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32)
        name = tensor.name.removesuffix(".weight")
        if arch in PERMUTED and name.rpartition(".")[2] in heads:
            weight = unpermuted(weight, heads[name.rpartition(".")[2]])
        if arch == "gemma3" and name.endswith("norm"):
            weight = weight - numpy.float32(1)
        state[official_name(arch, name)] = torch.from_numpy(numpy.ascontiguousarray(weight))
    fuse_experts(state)
    return arch, state


def head_count(reader, arch, key):
    return reader.get_field(f"{arch}.attention.{key}").contents()


def unpermuted(weight, n_heads):
    """Rows in the order of a rotation of halves, from the order of a rotation of neighbours."""
    return weight.reshape(n_heads, -1, 2, weight.shape[-1]).swapaxes(1, 2).reshape(weight.shape)


def official_name(arch, name):
    if name in TOP:
        return TOP[name] + ".weight"
    layer, part = re.fullmatch(r"blk\.(\d+)\.(\w+)", name).groups()
    official = LAYER[part]
    if arch == "gemma3" and part == "ffn_norm":
        official = "pre_feedforward_layernorm"
    suffix = "" if "experts" in official else ".weight"
    return f"model.layers.{layer}.{official}{suffix}"


def fuse_experts(state):
    """The classes hold the gate and up matrices of all experts as one tensor [E, 2 F, D]."""
    for name in [n for n in state if n.endswith("experts.gate")]:
        stem = name.removesuffix("gate")
        state[stem + "gate_up_proj"] = torch.cat([state.pop(name), state.pop(stem + "up")], dim=1)
