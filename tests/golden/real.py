"""What the official implementation makes of the two real models: ids of text, logits, greedy continuations.

    python real.py MODELS      (needs what make.py needs, and: accelerate, gguf, sentencepiece)

MODELS is the folder that `tests/fetch.sh` prints. Writes real.json and tokens.json; README.md says what is in them.
The weights are the GGUF's, dequantised to f32, once by `transformers` (`gguf_file=`) and once by `gguf_weights.py`;
both must give the same model.
"""

import json
import pathlib
import sys

import torch
import transformers

import gguf_weights
import texts

HERE = pathlib.Path(__file__).parent
N_GREEDY = 48
PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "The three primary colors are",
]
FILES = {
    "smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf",
    "gemma3": "gemma-3-270m-q4_k_m.gguf",
}


def main(folder):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    write_tokens(folder)
    real = [golden for name in FILES for golden in continuations(folder, name)]
    write(HERE / "real.json", real)


def write_tokens(folder):
    tokenizers = {name: texts.tokenizer(name, folder / file) for name, file in FILES.items()}
    encoded = [{"text": text} | {n: t.encode(text) for n, t in tokenizers.items()} for text in texts.TEXTS]
    chats = [texts.chat(tokenizers["smollm2"], messages) for messages in texts.CHATS]
    write(HERE / "tokens.json", {"texts": encoded, "chats": chats})


def write(path, value):
    """JSON with one line for each entry of each list, so that a difference can be read."""
    lines = lambda items: "[\n" + ",\n".join(json.dumps(i, ensure_ascii=False) for i in items) + "\n]"
    if isinstance(value, dict):
        text = "{\n" + ",\n".join(f"{json.dumps(k)}: {lines(v)}" for k, v in value.items()) + "\n}"
    else:
        text = lines(value)
    path.write_text(text + "\n")


def continuations(folder, name):
    model = load(folder, FILES[name])
    tokenizer = texts.tokenizer(name, folder / FILES[name])
    for prompt in PROMPTS:
        prompt_ids = tokenizer.encode(prompt)
        ids = continue_greedily(model, prompt_ids)
        logits = check(model, prompt_ids, ids)
        best = logits[0].topk(20)
        yield {
            "model": FILES[name], "prompt": prompt, "prompt_ids": prompt_ids, "ids": ids,
            "text": tokenizer.decode(ids), "min_margin": round(margins(logits).min().item(), 5),
            "top_ids": best.indices.tolist(), "top_logits": [round(x, 5) for x in best.values.tolist()],
        }


def load(folder, file):
    """The model, twice read and once kept."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=file, dtype=torch.float32, attn_implementation="eager").eval()
    check_config(model.config)
    _, state = gguf_weights.load(folder / file)
    official = model.state_dict()
    assert set(official) - set(state) <= {"lm_head.weight"} and not set(state) - set(official)
    for key, weight in state.items():
        torch.testing.assert_close(official[key], weight, rtol=0, atol=0)
    return model


def check_config(config):
    """What the GGUF does not say and the published config does must have come out right."""
    assert config.tie_word_embeddings and config.dtype == torch.float32
    if config.model_type == "llama":
        assert config.rope_parameters["rope_theta"] == 100000.0 and config.hidden_act == "silu"
        return
    assert config.layer_types == ["full_attention" if i % 6 == 5 else "sliding_attention" for i in range(18)]
    assert config.sliding_window == 512 and config.query_pre_attn_scalar == 256 == config.head_dim
    assert config.rope_parameters["full_attention"]["rope_theta"] == 1000000.0
    assert config.rope_parameters["sliding_attention"]["rope_theta"] == 10000.0
    assert config.hidden_activation == "gelu_pytorch_tanh" and config.final_logit_softcapping is None


@torch.no_grad()
def continue_greedily(model, prompt_ids):
    made = model.generate(
        torch.tensor([prompt_ids]), max_new_tokens=N_GREEDY, min_new_tokens=N_GREEDY, do_sample=False,
        eos_token_id=None, pad_token_id=0)
    return made[0, len(prompt_ids):].tolist()


@torch.no_grad()
def check(model, prompt_ids, ids):
    """Logits that each of `ids` was picked from, out of one pass over all of them and without a cache."""
    logits = model(torch.tensor([prompt_ids + ids[:-1]]), use_cache=False).logits[0, len(prompt_ids) - 1:]
    assert logits.argmax(dim=-1).tolist() == ids
    return logits


def margins(logits):
    best = logits.topk(2).values
    return best[:, 0] - best[:, 1]


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
