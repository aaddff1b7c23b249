"""Trains the tiny model with the official Olmo3ForCausalLM on a CPU and writes the model folder.

    python train.py CORPUS_FOLDER MODEL_FOLDER [--minutes 40] [--threads 1]

Matrices inside the layers learn by Muon, everything else by AdamW. The learning rate follows the processor time that
has been spent: it warms up, stays, and falls to zero over the last part. Minutes are processor minutes, so that other
work on the machine only makes it later. State is kept in CORPUS_FOLDER/state.pt; the same command continues after an interruption.
"""

import argparse
import json
import shutil
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional
from transformers import AutoTokenizer, Olmo3Config, Olmo3ForCausalLM

from muon import Muon

HERE = Path(__file__).parent
BATCH_TOKENS, SHORT, LONG = 2048, 256, 512
MUON_LR, EMBED_LR, OTHER_LR = 0.02, 1e-2, 3e-3
N_WATCHED = 32  # validation windows that are watched while training; all of them are taken at the end
WARMUP, DECAY, LONG_FROM = 0.02, 0.4, 0.85
QUIET = 0.3


def tokens(tokenizer, path: Path) -> np.ndarray:
    """All documents of a corpus file as one row of ids, each followed by the end-of-text token; kept beside the file."""
    cache = path.with_suffix(".npy")
    if not cache.exists():
        documents = [json.loads(line) for line in path.open()]
        texts = [d if isinstance(d, str) else tokenizer.apply_chat_template(d, tokenize=False) for d in documents]
        ids = [i for text in texts for i in [*tokenizer._tokenizer.encode(text).ids, tokenizer.eos_token_id]]
        np.save(cache, np.array(ids, dtype=np.uint16))
    return np.load(cache)


def batch(ids: np.ndarray, length: int, rng: np.random.Generator) -> torch.Tensor:
    """Random windows [n, length + 1] that hold BATCH_TOKENS inputs in all."""
    starts = rng.integers(0, len(ids) - length - 1, BATCH_TOKENS // length)
    return torch.from_numpy(np.stack([ids[s : s + length + 1] for s in starts]).astype(np.int64))


def loss_of(model: Olmo3ForCausalLM, window: torch.Tensor) -> torch.Tensor:
    """Mean nats per token of the window's next tokens."""
    logits = model(input_ids=window[:, :-1], use_cache=False).logits
    return functional.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())


@torch.no_grad()
def validate(model: Olmo3ForCausalLM, ids: np.ndarray) -> float:
    """Mean nats per token over consecutive windows of the validation text."""
    n = len(ids) // (LONG + 1)
    windows = torch.from_numpy(ids[: n * (LONG + 1)].astype(np.int64)).view(n, LONG + 1)
    return sum(loss_of(model, part).item() * len(part) for part in windows.split(8)) / n


def optimizers(model: Olmo3ForCausalLM) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the layers, AdamW for embedding, head and norms."""
    inner = [p for p in model.model.layers.parameters() if p.ndim == 2]
    embed = [model.model.embed_tokens.weight]
    other = [p for p in model.parameters() if p.ndim == 1] + [model.lm_head.weight]
    return [
        Muon(inner, lr=MUON_LR),
        torch.optim.AdamW([{"params": embed, "lr": EMBED_LR}, {"params": other, "lr": OTHER_LR}], betas=(0.9, 0.97), weight_decay=0.0),
    ]


def start(config: Olmo3Config) -> Olmo3ForCausalLM:
    """A model before training. Post-norm layers add vectors of length one, whatever comes in, so the embedding starts
    as long as those and the layers start quiet; with the usual 0.02 a token would be drowned by the first layer."""
    model = Olmo3ForCausalLM(config)
    torch.nn.init.normal_(model.model.embed_tokens.weight)
    for layer in model.model.layers:
        torch.nn.init.constant_(layer.post_attention_layernorm.weight, QUIET)
        torch.nn.init.constant_(layer.post_feedforward_layernorm.weight, QUIET)
    return model


def rate(progress: float) -> float:
    """The factor on the learning rates when this share of the time is spent."""
    return min(1.0, progress / WARMUP + 0.02, max(0.0, (1 - progress) / DECAY))


def export(model: Olmo3ForCausalLM, out: Path) -> None:
    """The model folder: weights in bf16, and the hand-written configs (the published Olmo 3 form)."""
    out.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.detach().to(torch.bfloat16) for name, tensor in model.state_dict().items()}
    model.save_pretrained(out, state_dict=weights)
    (out / "model.safetensors").chmod(0o644)
    for name in ["config.json", "generation_config.json"]:
        shutil.copy(HERE / name, out / name)


def main() -> None:
    args = argparse.ArgumentParser()
    args.add_argument("corpus", type=Path)
    args.add_argument("out", type=Path)
    args.add_argument("--minutes", type=float, default=40)
    args.add_argument("--threads", type=int, default=1)
    args = args.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    tokenizer = AutoTokenizer.from_pretrained(args.out)
    train_ids, valid_ids = (tokens(tokenizer, args.corpus / f"{name}.jsonl") for name in ["train", "valid"])
    model = start(Olmo3Config.from_pretrained(HERE / "config.json", attn_implementation="sdpa"))
    run(model, train_ids, valid_ids, args)


def run(model: Olmo3ForCausalLM, train_ids: np.ndarray, valid_ids: np.ndarray, args) -> None:
    """The loop: steps until the time is spent, a line of the log and a checkpoint every 50 steps."""
    steppers, state = optimizers(model), args.corpus / "state.pt"
    base_rates = [group["lr"] for stepper in steppers for group in stepper.param_groups]
    step, spent = restore(state, model, steppers)
    while spent < args.minutes * 60:
        began, progress = time.process_time(), spent / (args.minutes * 60)
        groups = [group for stepper in steppers for group in stepper.param_groups]
        for group, base in zip(groups, base_rates):
            group["lr"] = base * rate(progress)
        window = batch(train_ids, SHORT if progress < LONG_FROM else LONG, np.random.default_rng([1, step]))
        loss = loss_of(model, window)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for stepper in steppers:
            stepper.step()
            stepper.zero_grad()
        step, spent = step + 1, spent + time.process_time() - began
        if step % 50 == 0:
            watched = valid_ids[: N_WATCHED * (LONG + 1)]
            log(args.corpus, step, spent, loss.item(), validate(model, watched) if step % 200 == 0 else None)
            torch.save({"model": model.state_dict(), "steppers": [s.state_dict() for s in steppers], "step": step, "spent": spent}, state)
    log(args.corpus, step, spent, loss.item(), validate(model, valid_ids))
    export(model, args.out)


def restore(path: Path, model: Olmo3ForCausalLM, steppers: list[torch.optim.Optimizer]) -> tuple[int, float]:
    """Loads the kept state, if any; gives the steps done and the processor seconds spent."""
    if not path.exists():
        return 0, 0.0
    state = torch.load(path)
    model.load_state_dict(state["model"])
    for stepper, kept in zip(steppers, state["steppers"]):
        stepper.load_state_dict(kept)
    return state["step"], state["spent"]


def log(folder: Path, step: int, spent: float, loss: float, valid: float | None) -> None:
    """One line: step, tokens seen, processor minutes, training loss, validation loss (nats per token)."""
    line = {"step": step, "tokens": step * BATCH_TOKENS, "minutes": round(spent / 60, 2), "train": round(loss, 4), "valid": valid and round(valid, 4)}
    print(line, flush=True)
    with (folder / "log.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
