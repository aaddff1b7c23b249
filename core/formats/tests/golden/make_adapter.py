"""A DoRA adapter as the `peft` package saves it, for a Llama that exists only here.

    pip install torch transformers==5.24.0 peft==0.21.2
    python make_adapter.py           # writes the folder adapter beside this file
"""

import json
from pathlib import Path

import peft
import torch
import transformers

FOLDER = Path(__file__).with_name("adapter")


def main():
    config = transformers.LlamaConfig(
        hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1, vocab_size=16)
    torch.manual_seed(2)
    lora = peft.LoraConfig(
        r=3, lora_alpha=6, lora_dropout=0.05, target_modules=["q_proj", "v_proj", "down_proj"], use_dora=True,
        use_rslora=True, init_lora_weights=False, task_type="CAUSAL_LM")
    model = peft.get_peft_model(transformers.LlamaForCausalLM(config), lora)
    model.save_pretrained(FOLDER)
    (FOLDER / "README.md").unlink()
    path = FOLDER / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"base_model_name_or_path": "made/llama"}, indent=2))
    key = "base_model.model.model.layers.1.self_attn.v_proj"
    weights = peft.get_peft_model_state_dict(model)
    for part in ("lora_A.weight", "lora_B.weight", "lora_magnitude_vector"):
        print(part, tuple(weights[f"{key}.{part}"].shape), weights[f"{key}.{part}"].flatten()[-1].item())


if __name__ == "__main__":
    main()
