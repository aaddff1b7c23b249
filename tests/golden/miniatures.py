"""The miniature checkpoints: which there are, and how each gets its random weights.

A miniature is a complete checkpoint of one family, small enough to commit, written by the official class of
`transformers`. Its shapes are chosen to catch what real shapes hide: a head width that is not d_model / n_heads,
sizes that are no power of two, a window of 8 tokens, padded vocabulary rows. The config text is laid out as
the family's published files have it, which is not always as today's `transformers` would write it.
"""

import json
import pathlib

import torch
import transformers

import tokenizers_of

YARN = {
    "attention_factor": 1.2079441541679836,
    "beta_fast": 8,
    "beta_slow": 0.25,
    "factor": 8.0,
    "original_max_position_embeddings": 64,
    "rope_type": "yarn",
}
SLIDING, FULL = "sliding_attention", "full_attention"
SPECIAL = {"bos_token_id": None, "eos_token_id": 94, "pad_token_id": 95}

# name -> class, config as published, and how it is stored.
MINIATURES = {
    "llama": dict(
        cls="LlamaForCausalLM",
        config=dict(
            model_type="llama", hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4,
            num_key_value_heads=2, vocab_size=112, max_position_embeddings=256, rms_norm_eps=1e-5,
            rope_theta=10000.0, rope_scaling=None, hidden_act="silu", attention_bias=False, mlp_bias=False,
            tie_word_embeddings=True, **SPECIAL | {"bos_token_id": 94}),
    ),
    "olmo": dict(
        cls="OlmoForCausalLM",
        config=dict(
            model_type="olmo", hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=4, vocab_size=112, max_position_embeddings=256, clip_qkv=0.75, rope_theta=10000.0,
            rope_scaling=None, hidden_act="silu", attention_bias=False, tie_word_embeddings=False, **SPECIAL),
        # Published OLMo 1 files name token 0 here while the text really ends at another one.
        generation=dict(eos_token_id=0),
    ),
    "olmo_tied": dict(
        cls="OlmoForCausalLM",
        config=dict(
            model_type="olmo", hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3,
            num_key_value_heads=3, vocab_size=97, max_position_embeddings=256, clip_qkv=None, rope_theta=10000.0,
            rope_scaling=None, hidden_act="silu", attention_bias=False, tie_word_embeddings=True, **SPECIAL),
    ),
    "olmo2": dict(
        cls="Olmo2ForCausalLM",
        config=dict(
            model_type="olmo2", hidden_size=32, intermediate_size=72, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=4, vocab_size=112, max_position_embeddings=256, rms_norm_eps=1e-6,
            rope_theta=500000, rope_scaling=None, hidden_act="silu", attention_bias=False,
            tie_word_embeddings=False, **SPECIAL),
        shard="24KB",
    ),
    "olmo2_gqa_bf16": dict(
        cls="Olmo2ForCausalLM",
        config=dict(
            model_type="olmo2", hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=6,
            num_key_value_heads=2, vocab_size=101, max_position_embeddings=256, rms_norm_eps=1e-6,
            rope_theta=500000, rope_scaling=None, hidden_act="silu", attention_bias=False,
            tie_word_embeddings=False, **SPECIAL | {"bos_token_id": 94}),
        dtype=torch.bfloat16,
        shard="30KB",
    ),
    "olmo3": dict(
        cls="Olmo3ForCausalLM",
        config=dict(
            model_type="olmo3", hidden_size=32, intermediate_size=48, num_hidden_layers=8, num_attention_heads=4,
            num_key_value_heads=2, head_dim=16, vocab_size=112, max_position_embeddings=512, rms_norm_eps=1e-6,
            rope_theta=500000, rope_scaling=YARN, sliding_window=8, layer_types=[SLIDING, SLIDING, SLIDING, FULL] * 2,
            hidden_act="silu", attention_bias=False, tie_word_embeddings=False, **SPECIAL),
        generation=dict(eos_token_id=[93, 94]),
    ),
    "olmoe": dict(
        cls="OlmoeForCausalLM",
        config=dict(
            model_type="olmoe", hidden_size=32, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=4, vocab_size=112, max_position_embeddings=256, rms_norm_eps=1e-5,
            rope_theta=10000.0, rope_scaling=None, clip_qkv=None, num_experts=8, num_experts_per_tok=2,
            norm_topk_prob=False, output_router_logits=False, router_aux_loss_coef=0.01, hidden_act="silu",
            attention_bias=False, tie_word_embeddings=False, **SPECIAL),
    ),
    "gemma3": dict(
        cls="Gemma3ForCausalLM",
        config=dict(
            model_type="gemma3_text", hidden_size=32, intermediate_size=48, num_hidden_layers=7,
            num_attention_heads=4, num_key_value_heads=1, head_dim=16, vocab_size=112,
            max_position_embeddings=512, rms_norm_eps=1e-6, rope_theta=1000000.0, rope_local_base_freq=10000.0,
            rope_scaling=None, sliding_window=8, layer_types=[SLIDING] * 5 + [FULL, SLIDING],
            query_pre_attn_scalar=16, attn_logit_softcapping=None, final_logit_softcapping=None,
            hidden_activation="gelu_pytorch_tanh", attention_bias=False, use_bidirectional_attention=False,
            bos_token_id=2, eos_token_id=1, pad_token_id=0),
        generation=dict(eos_token_id=[1, 95]),
    ),
}


def write(name, folder):
    """Writes the miniature `name` to `folder` and says nothing about what it computes."""
    spec = MINIATURES[name]
    published = {"architectures": [spec["cls"]]} | spec["config"] | {
        "attention_dropout": 0.0, "initializer_range": 0.02, "use_cache": True,
        "torch_dtype": "bfloat16" if "dtype" in spec else "float32", "transformers_version": "4.57.1",
    }
    cls = getattr(transformers, spec["cls"])
    torch.manual_seed(list(MINIATURES).index(name) + 1)
    model = cls(cls.config_class(**spec["config"]))
    randomise(model)
    model = model.to(spec.get("dtype", torch.float32))
    model.generation_config = transformers.GenerationConfig(**SPECIAL | spec.get("generation", {}))
    model.save_pretrained(folder, max_shard_size=spec.get("shard", "1GB"))
    published = dict(sorted(published.items()))
    (pathlib.Path(folder) / "config.json").write_text(json.dumps(published, indent=2) + "\n")
    tokenizers_of.write(published["model_type"], folder)


@torch.no_grad()
def randomise(model):
    """Weights with enough spread that scores, gates and logits are far from flat, and no norm is neutral."""
    is_gemma = "Gemma3" in type(model).__name__
    for name, weight in model.named_parameters():
        if name.endswith("norm.weight") or "layernorm" in name:
            weight.copy_((not is_gemma) + 0.25 * torch.randn_like(weight))
        elif "embed_tokens" in name or "lm_head" in name:
            weight.normal_(std=0.25 if is_gemma else 0.5)
        else:
            weight.normal_(std=1.3 * weight.shape[-1] ** -0.5)
