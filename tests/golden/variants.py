"""Other texts of the same configs, as files in the wild have them, and what each must compute.

    python variants.py      (after make.py)

    variants.json          [{name, miniature, why, same, config}]: with the weights of the folder `miniature` and this
                           config text, the logits for that folder's ids are those of the folder itself (same: true),
                           or the ones stored under `name` in
    variants.safetensors   name -> logits f32 [T, V]

Where the official class reads a text wrongly, it computes the golden values from a text of the same meaning that
it reads rightly (`reads_as` below).
"""

import json
import pathlib
import shutil
import tempfile

import torch
import transformers
from safetensors.numpy import load_file, save_file

import make
from miniatures import FULL, SLIDING, YARN

HERE = pathlib.Path(__file__).parent
ABSENT = object()
PLAIN = {"rope_type": "default", "rope_theta": 500000.0}
OLD_ROPE = {"rope_scaling": ABSENT, "rope_theta": ABSENT}
TYPE_ONLY = {("type" if k == "rope_type" else k): v for k, v in YARN.items()}
NO_FACTOR = {k: v for k, v in YARN.items() if k != "attention_factor"}
OFF = NO_FACTOR | {"factor": 1.0}


def nested(full, sliding):
    return OLD_ROPE | {"rope_parameters": {"full_attention": full, "sliding_attention": sliding}}


# name, miniature, why, changes to its config, and optionally changes that the official class reads as meant.
SAME = [
    ("olmo3_flat", "olmo3", "transformers 5.0-5.8 wrote this; 5.24 would drop YaRN without a word",
     OLD_ROPE | {"rope_parameters": YARN | {"rope_theta": 500000}}, {}),
    ("olmo3_nested", "olmo3", "transformers 5.9 and later write this", nested(YARN | {"rope_theta": 500000}, PLAIN)),
    ("olmo3_type", "olmo3", "`type` is the older name of `rope_type`; 5.24 would drop YaRN",
     {"rope_scaling": TYPE_ONLY}, {}),
    ("olmo3_no_attention_factor", "olmo3", "then it is 0.1 ln(factor) + 1", {"rope_scaling": NO_FACTOR}),
    ("olmo3_no_layer_types", "olmo3", "then every fourth layer is full", {"layer_types": ABSENT}),
    ("olmo3_dtype", "olmo3", "`dtype` is the newer name of `torch_dtype`", {"torch_dtype": ABSENT, "dtype": "float32"}),
    ("olmo_kv_heads_null", "olmo", "then there are as many as heads", {"num_key_value_heads": None}),
    ("olmo2_kv_heads_absent", "olmo2", "then there are as many as heads", {"num_key_value_heads": ABSENT}),
    ("olmo2_flat", "olmo2", "transformers 5 writes this",
     OLD_ROPE | {"rope_parameters": {"rope_type": "default", "rope_theta": 500000}}),
    ("olmo2_explicit_head_dim", "olmo2", "equal to d_model / n_heads", {"head_dim": 8}),
    ("olmo_stray_norm_eps", "olmo", "OLMo 1 files carry it; their norm does not use it", {"rms_norm_eps": 0.5}),
    ("gemma3_pattern", "gemma3", "older files count the layers instead of listing them",
     {"layer_types": ABSENT, "sliding_window_pattern": 6}),
    ("gemma3_nested", "gemma3", "transformers 5 writes this",
     {"rope_scaling": ABSENT, "rope_theta": ABSENT, "rope_local_base_freq": ABSENT, "rope_parameters": {
         "full_attention": {"rope_type": "default", "rope_theta": 1000000.0},
         "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}}),
]
DIFFERENT = [
    ("olmo3_no_scaling", "olmo3", "revisions from before the long-context stage", {"rope_scaling": None}),
    ("olmo3_factor_1", "olmo3", "YaRN that stretches nothing", {"rope_scaling": OFF}),
    ("olmo3_theta", "olmo3", "both kinds of layer follow the file's theta",
     {"rope_theta": 10000.0},
     nested(YARN | {"rope_theta": 10000.0}, PLAIN | {"rope_theta": 10000.0})),
    ("olmo3_all_full", "olmo3", "a window is of no use without sliding layers", {"layer_types": [FULL] * 8}),
    ("olmo3_window_5", "olmo3", "an odd window and another pattern",
     {"sliding_window": 5, "layer_types": [FULL, SLIDING] * 4}),
    ("olmo2_linear", "olmo2", "third-party files stretch positions evenly",
     {"rope_scaling": {"type": "linear", "factor": 4.0}}, {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    ("olmo2_gelu", "olmo2", "third-party files name another activation", {"hidden_act": "gelu"}),
    ("olmo_no_clip", "olmo", "published files have null", {"clip_qkv": None}),
    ("olmoe_clip", "olmoe", "clamped after the norm", {"clip_qkv": 0.9}),
    ("olmoe_renormalised", "olmoe", "the weights of the chosen experts sum to one", {"norm_topk_prob": True}),
    ("olmoe_top_1", "olmoe", "one expert a token", {"num_experts_per_tok": 1}),
    ("gemma3_linear", "gemma3", "the larger published ones stretch the full layers",
     {"rope_scaling": {"factor": 8.0, "rope_type": "linear"}}),
    ("gemma3_scalar", "gemma3", "the scale of the scores is not always head_dim ** -0.5", {"query_pre_attn_scalar": 20}),
    ("llama_llama3", "llama", "Llama 3.1 and later stretch by wavelength",
     {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 32}}),
]


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    listed, logits, wrong = [], {}, []
    for same, variants in ((True, SAME), (False, DIFFERENT)):
        for name, miniature, why, changes, *reads_as in variants:
            config = changed(miniature, changes)
            listed.append(dict(name=name, miniature=miniature, why=why, same=same, config=config))
            golden = load_file(HERE / miniature / "golden.safetensors")
            computed = compute(miniature, changed(miniature, *reads_as) if reads_as else config, golden["ids"])
            distance = abs(computed - golden["logits"]).max() / abs(golden["logits"]).max()
            print(f"{name:28} differs by {distance:.1e}")
            if not (distance < 2e-6 if same else distance > 1e-3):
                wrong.append(name)
            if not same:
                logits[name] = computed
    assert not wrong, wrong
    (HERE / "variants.json").write_text("[\n" + ",\n".join(map(json.dumps, listed)) + "\n]\n")
    save_file(logits, HERE / "variants.safetensors")


def changed(miniature, changes):
    config = json.loads((HERE / miniature / "config.json").read_text()) | changes
    return {key: value for key, value in config.items() if value is not ABSENT}


def compute(miniature, config, ids):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(HERE / miniature, folder, dirs_exist_ok=True)
        (pathlib.Path(folder) / "config.json").write_text(json.dumps(config))
        return make.logits_of(make.load(folder), ids)


if __name__ == "__main__":
    main()
