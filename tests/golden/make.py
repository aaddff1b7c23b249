"""Makes the miniature checkpoints of every family and what the official implementation computes with them.

    python make.py [NAME...]      (needs: torch, transformers==5.24.0, safetensors)

For each miniature NAME, a folder with the checkpoint and

    golden.safetensors   ids i32 [T], logits f32 [T, V]: one forward pass in f32 on a CPU, without a cache
    golden.json          prompt, greedy (the ids that follow it, each from a full recomputation), min_margin (the
                         smallest distance between the two best logits on the way), logprobs (natural log of the
                         probability of ids[1..], one each) and their sum
"""

import json
import pathlib
import shutil
import sys

import numpy
import torch
import transformers
from safetensors.numpy import save_file

import miniatures

HERE = pathlib.Path(__file__).parent
N_IDS, N_PROMPT, N_GREEDY = 40, 5, 32


def main(names):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    for name in names or miniatures.MINIATURES:
        folder = HERE / name
        shutil.rmtree(folder, ignore_errors=True)
        miniatures.write(name, folder)
        model = load(folder)
        check_rope(name, model)
        save_golden(model, folder, seed=name)


def load(folder):
    """The checkpoint in `folder`, computed in f32 whatever it is stored in, with the plainest attention."""
    auto = transformers.AutoModelForCausalLM
    return auto.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def save_golden(model, folder, seed):
    n_vocab = model.config.vocab_size
    random = numpy.random.default_rng(list(seed.encode()))
    ids = random.integers(0, n_vocab, N_IDS)
    logits = logits_of(model, ids)
    save_file({"ids": ids.astype(numpy.int32), "logits": logits}, folder / "golden.safetensors")

    logprobs = score(logits, ids)
    prompt, greedy, margin = decisive_continuation(model, random)
    golden = dict(
        prompt=prompt, greedy=greedy, min_margin=round(margin, 6),
        logprobs=[round(x, 6) for x in logprobs], logprob_sum=round(sum(logprobs), 5),
    )
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    print(f"{folder.name:16} max |logit| {abs(logits).max():.2f}, logit spread {logits.std():.2f}, margin {margin:.4f}")


@torch.no_grad()
def logits_of(model, ids):
    return model(torch.tensor(ids)[None], use_cache=False).logits[0].float().numpy()


def score(logits, ids):
    logprobs = torch.log_softmax(torch.tensor(logits).double(), dim=-1)
    return [logprobs[i, token].item() for i, token in enumerate(ids[1:])]


def decisive_continuation(model, random):
    """The first random prompt whose greedy continuation never hangs on rounding."""
    while True:
        prompt = random.integers(0, model.config.vocab_size, N_PROMPT).tolist()
        greedy, margin = continue_greedily(model, prompt, N_GREEDY, least_margin=0.02)
        if len(greedy) == N_GREEDY and len(set(greedy)) > 5:
            return prompt, greedy, margin


def continue_greedily(model, prompt, n_tokens, least_margin=0.0):
    """The greedy ids and their smallest margin; ends early where that is under `least_margin`."""
    ids, margin = list(prompt), float("inf")
    while len(ids) < len(prompt) + n_tokens and margin > least_margin:
        best = torch.tensor(logits_of(model, ids)[-1]).topk(2)
        margin = min(margin, (best.values[0] - best.values[1]).item())
        ids.append(best.indices[0].item())
    return ids[len(prompt):], margin


def check_rope(name, model):
    """Olmo 3 has YaRN on its full layers alone; a release that forgets this would spoil every value here.

    With a head width of 16, theta 500000 and the scaling of `miniatures.YARN` the ramp goes from pair 0 to pair 3.
    """
    if name != "olmo3":
        return
    plain = 500000.0 ** -(torch.arange(8) / 8)
    ramp = torch.tensor([0, 1, 2, 3, 3, 3, 3, 3]) / 3
    rope = model.model.rotary_emb
    torch.testing.assert_close(rope.sliding_attention_inv_freq, plain)
    torch.testing.assert_close(rope.full_attention_inv_freq, plain * (1 - ramp * (1 - 1 / 8)))
    assert rope.sliding_attention_attention_scaling == 1.0
    assert rope.full_attention_attention_scaling == 1.2079441541679836


if __name__ == "__main__":
    main(sys.argv[1:])
