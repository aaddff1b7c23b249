"""Prints what the tiny model writes: stories from a few beginnings and answers to a few questions, with a fixed seed.

    python sample.py MODEL_FOLDER [--greedy]
"""

import sys
from pathlib import Path

import torch
from transformers import AutoTokenizer, Olmo3ForCausalLM

BEGINNINGS = ["Once upon a time", "One day, Mia found a", "The little fox was afraid of", "The capital of France is"]
TALKS = [
    ["Hello! Who are you?"],
    ["Tell me a story about a rabbit."],
    ["My name is Anna.", "What is a bee?", "What is my name?"],
    ["What is the opposite of hot?", "Count to five."],
    ["I am sad today."],
    ["Explain quantum physics."],
    ["What is 3 plus 4?", "What does a cow say?"],
    ["Tell me a joke.", "Thank you!"],
]


@torch.no_grad()
def write(model: Olmo3ForCausalLM, tokenizer, text: str) -> str:
    """The continuation of a text, up to its end or 220 tokens."""
    ids = torch.tensor([tokenizer.encode(text)])
    options = {"do_sample": False, "temperature": None, "top_p": None} if "--greedy" in sys.argv else {"do_sample": True}
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=220, **options)
    return tokenizer.decode(out[0, ids.size(1) :], skip_special_tokens=True).strip()


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    folder = Path(sys.argv[1])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = Olmo3ForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    for beginning in BEGINNINGS:
        print(f"{beginning} >>> {write(model, tokenizer, beginning)}\n")
    for questions in TALKS:
        messages = []
        for question in questions:
            messages.append({"role": "user", "content": question})
            prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            messages.append({"role": "assistant", "content": write(model, tokenizer, prompt)})
            print(f"user: {question}\nassistant: {messages[-1]['content']}")
        print()


if __name__ == "__main__":
    main()
