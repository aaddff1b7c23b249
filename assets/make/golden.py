"""Writes the golden values of the tiny model: greedy ids of the official class in f32, and a rendered chat prompt.

    python golden.py MODEL_FOLDER OUT_FILE
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoTokenizer, Olmo3ForCausalLM

PROMPT = "Once upon a time, there was a little fox named"
CHAT = [{"role": "user", "content": "Hello! Who are you?"}]
N_TOKENS = 48


@torch.no_grad()
def greedy(model: Olmo3ForCausalLM, prompt: list[int]) -> tuple[list[int], float]:
    """The greedy continuation, computed without a cache, and the smallest gap between the two best logits."""
    ids, margin = list(prompt), float("inf")
    for _ in range(N_TOKENS):
        best = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1].topk(2)
        margin = min(margin, (best.values[0] - best.values[1]).item())
        ids.append(best.indices[0].item())
    return ids[len(prompt) :], margin


def main() -> None:
    torch.set_num_threads(1)
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = Olmo3ForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    prompt_ids = tokenizer.encode(PROMPT)
    chat_text = tokenizer.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True)
    chat_prompt_ids = tokenizer.encode(chat_text)
    ids, margin = greedy(model, prompt_ids)
    chat_ids, chat_margin = greedy(model, chat_prompt_ids)
    golden = {
        "prompt": PROMPT, "prompt_ids": prompt_ids, "ids": ids, "text": tokenizer.decode(ids), "smallest_margin": margin,
        "chat": {
            "messages": CHAT, "rendered": chat_text, "prompt_ids": chat_prompt_ids, "ids": chat_ids,
            "text": tokenizer.decode(chat_ids), "smallest_margin": chat_margin,
        },
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
