"""Gradients and loss curves of the miniatures, as PyTorch, `transformers` and `peft` compute them.

    python train.py      (needs what make.py and gguf_files.py need, and: peft)

    train/NAME.safetensors         one batch: ids, positions, labels, loss and gradients, for full training and adapters
    train/NAME.curve.safetensors   thirty steps of AdamW on an adapter: batches, initial and final adapter, losses

README.md lists the names inside. Every document runs alone, in f32, with the plainest attention; a batch's loss is
the sum of the cross entropies at its trained positions divided by their number. OLMoE's auxiliary loss on its
router is not part of it.
"""

import copy
import pathlib

import numpy
import peft
import torch
import transformers
from safetensors.torch import save_file

import gguf_weights
import make

HERE = pathlib.Path(__file__).parent
TRAIN = HERE / "train"
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
LINEAR = ATTENTION + ["gate_proj", "up_proj", "down_proj"]
RANK, ALPHA = 4, 8
IGNORED = -1

# The longest crosses Olmo 3's window of 8; the one of length 1 has nothing to predict.
LENGTHS = [11, 1, 17]
CURVE_LENGTHS = [[12, 5], [9, 1, 7], [16]]
N_STEPS, RATE, DECAY = 30, 5e-3, 0.01


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    TRAIN.mkdir(exist_ok=True)
    for name in ("llama", "olmo2", "olmo3", "olmoe"):
        save_gradients(name)
    save_curve("llama", load("llama"))
    save_curve("olmo2", load("olmo2"))
    save_curve("llama.q4_0", dequantised("llama", "llama.q4_0"))


def save_gradients(name):
    model = load(name)
    random = numpy.random.default_rng(list(f"{name} gradients".encode()))
    batch = documents(random, LENGTHS, model.config.vocab_size, masked=0.25)
    assert any((labels[:-1] == IGNORED).any() for _, labels in batch)
    check_routing(model, batch)
    out = flat(batch)
    loss = mean_loss(model, batch)
    loss.backward()
    out["loss"] = loss.detach()[None]
    full = unfused({n: parameter.grad for n, parameter in model.named_parameters()})
    out |= prefixed("full", full)
    print(f"{name:10} {trained(batch)} positions trained, loss {loss:.4f}; {distance_from_f64(model, batch, full)}")

    targets = ATTENTION if name == "olmoe" else LINEAR
    out |= adapter_gradients(name, batch, "lora", random_adapter(name, targets))
    if name == "llama":
        out |= adapter_gradients(name, batch, "dora", random_adapter(name, targets, use_dora=True))
        out["rslora_loss"] = mean_loss(random_adapter(name, targets, use_rslora=True), batch).detach()[None]
        print(f"{'':10} rslora loss {out['rslora_loss'].item():.4f}")
    write(TRAIN / f"{name}.safetensors", out)


def adapter_gradients(name, batch, kind, model):
    """`KIND.KEY` the adapter, `KIND_grad.KEY` its gradients, `KIND_loss`."""
    check_routing(model, batch)
    loss = mean_loss(model, batch)
    loss.backward()
    gradients = {n: parameter.grad for n, parameter in model.named_parameters() if parameter.requires_grad}
    gradients = peft.get_peft_model_state_dict(model, state_dict=gradients)
    values = peft.get_peft_model_state_dict(model)
    assert values.keys() == gradients.keys() and all(g.abs().max() > 0 for g in gradients.values())
    print(f"{'':10} {kind} loss {loss:.4f}; {distance_from_f64(model, batch, gradients, peft.get_peft_model_state_dict)}")
    return prefixed(kind, values) | prefixed(f"{kind}_grad", gradients) | {f"{kind}_loss": loss.detach()[None]}


def random_adapter(name, targets, **options):
    """A and B normal with spread 0.1, magnitudes within a few percent of the norms of the rows."""
    model = adapted(load(name), targets, **options)
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "lora_magnitude" in key:
                parameter.mul_(1 + 0.05 * torch.randn(parameter.shape, generator=generator))
            elif "lora_" in key:
                parameter.normal_(std=0.1, generator=generator)
    return model


def adapted(model, targets, **options):
    config = peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=targets, lora_dropout=0.0, bias="none", **options)
    return peft.get_peft_model(model, config)


def save_curve(file, base):
    """Thirty steps from an adapter as peft begins it: A random, B zero, so step 0 has the loss of the base."""
    random = numpy.random.default_rng(list(f"{file} curve".encode()))
    batches = [documents(random, lengths, base.config.vocab_size, masked=0.1) for lengths in CURVE_LENGTHS]
    torch.manual_seed(5)
    model = adapted(base, LINEAR)
    twin = copy.deepcopy(model).double()
    initial = {key: value.clone() for key, value in peft.get_peft_model_state_dict(model).items()}
    losses, exact = descend(model, batches), descend(twin, batches)
    first, last = losses[:3].mean().item(), losses[-3:].mean().item()
    away = ((losses - exact) / exact).abs().max().item()
    print(f"{file:10} curve {first:.3f} to {last:.3f} (means of 3); in f64 the losses differ by {away:.1e}")
    print(" " * 10, " ".join(f"{loss:.3f}" for loss in losses))
    assert last < 0.5 * first and away < 1e-4
    out = {"curve.losses": losses.float()}
    for i, batch in enumerate(batches):
        out |= prefixed(f"curve.{i}", flat(batch))
    out |= prefixed("curve.init", initial) | prefixed("curve.final", peft.get_peft_model_state_dict(model))
    write(TRAIN / f"{file}.curve.safetensors", out)


def descend(model, batches):
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=DECAY)
    losses = []
    for step in range(N_STEPS):
        loss = mean_loss(model, batches[step % len(batches)])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64)


def load(name):
    """The miniature `name`; its experts, where it has any, are computed one by one, which works in f64 too."""
    model = make.load(HERE / name)
    model.set_experts_implementation("eager")
    return model


def dequantised(name, file):
    """The official class of the miniature `name` with the weights of a GGUF file."""
    model = load(name)
    _, state = gguf_weights.load(HERE / "gguf" / f"{file}.gguf")
    rejected = model.load_state_dict(state, strict=False)
    assert not rejected.unexpected_keys and set(rejected.missing_keys) <= {"lm_head.weight"}, rejected
    return model


def documents(random, lengths, n_vocab, masked):
    """(ids, labels) of each document; a label is the next id, or IGNORED at the end and where it is masked out."""
    batch = []
    for length in lengths:
        ids = random.integers(0, n_vocab, length)
        labels = numpy.append(ids[1:], IGNORED)
        labels[random.random(length) < masked] = IGNORED
        batch.append((torch.tensor(ids), torch.tensor(labels)))
    return batch


def mean_loss(model, batch):
    total = 0.0
    for ids, labels in batch:
        logits = model(input_ids=ids[None], use_cache=False).logits[0]
        total += torch.nn.functional.cross_entropy(logits, labels, ignore_index=IGNORED, reduction="sum")
    return total / trained(batch)


def trained(batch):
    return sum((labels != IGNORED).sum().item() for _, labels in batch)


def flat(batch):
    """The documents end to end."""
    return {
        "ids": torch.cat([ids for ids, _ in batch]).int(),
        "positions": torch.cat([torch.arange(len(ids)) for ids, _ in batch]).int(),
        "labels": torch.cat([labels for _, labels in batch]).int(),
    }


def unfused(gradients):
    """Checkpoints name the matrices of every expert; the class keeps them as two tensors [E, 2 F, D] and [E, D, F]."""
    out = {}
    for name, gradient in gradients.items():
        stem, _, part = name.rpartition(".")
        if part == "gate_up_proj":
            for e, (gate, up) in enumerate(matrix.chunk(2) for matrix in gradient):
                out |= {f"{stem}.{e}.gate_proj.weight": gate, f"{stem}.{e}.up_proj.weight": up}
        elif part == "down_proj":
            out |= {f"{stem}.{e}.down_proj.weight": matrix for e, matrix in enumerate(gradient)}
        else:
            out[name] = gradient
    return out


def distance_from_f64(model, batch, gradients, named=None):
    """How far f32 rounding moves any gradient tensor, relative to its norm."""
    twin = copy.deepcopy(model).double()
    twin.zero_grad()
    mean_loss(twin, batch).backward()
    exact = {n: parameter.grad for n, parameter in twin.named_parameters() if parameter.requires_grad}
    exact = named(twin, state_dict=exact) if named else unfused(exact)
    away = {key: ((gradients[key] - g).norm() / g.norm()).item() for key, g in exact.items() if g.norm() > 0}
    worst = max(away, key=away.get)
    assert away[worst] < 1e-4, (worst, away[worst])
    return f"f64 differs by {away[worst]:.1e} at most ({worst}), {len(exact) - len(away)} of {len(exact)} are zero"


@torch.no_grad()
def check_routing(model, batch):
    """No token's choice of experts may hang on rounding."""
    k = getattr(model.config, "num_experts_per_tok", None)
    if k is None:
        return
    outputs = [model(input_ids=ids[None], output_router_logits=True).router_logits for ids, _ in batch]
    best = [logits.softmax(-1).topk(k + 1).values for layers in outputs for logits in layers]
    least = min((chances[:, k - 1] - chances[:, k]).min().item() for chances in best)
    print(f"{'':10} the last expert chosen leads the next by {least:.1e}")
    assert least > 1e-4


def prefixed(prefix, tensors):
    return {f"{prefix}.{key}": value for key, value in tensors.items()}


def write(path, tensors):
    save_file({key: value.detach().contiguous().clone() for key, value in tensors.items()}, path)


if __name__ == "__main__":
    main()
