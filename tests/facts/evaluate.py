"""Counts the held-out questions that a model answers exactly.

    python evaluate.py SAMARA MODEL [further options for samara generate, such as --adapter DIR]

An answer is exact if it is the expected one but for white space and a full stop at its end.
"""

import json
import subprocess
import sys
from pathlib import Path


def answer(samara: str, model: str, question: str, options: list[str]) -> str:
    command = [samara, "generate", "--chat", "--model", model, "--prompt", question, "--temperature", "0", "--max-tokens", "16"]
    told = subprocess.run([*command, "--json", *options], check=True, capture_output=True, text=True)
    return json.loads(told.stdout)["text"].strip().removesuffix(".")


def main() -> None:
    samara, model, *options = sys.argv[1:]
    rows = [json.loads(line) for line in (Path(__file__).parent / "held_out.jsonl").read_text().splitlines()]
    n_exact = 0
    for row in rows:
        found = answer(samara, model, row["question"], options)
        n_exact += found == row["answer"]
        print(f"{'exact' if found == row['answer'] else '-':6}{row['question']}  {found!r}, expected {row['answer']!r}")
    print(f"{n_exact} of {len(rows)} answers are exact: {model} {' '.join(options)}")


if __name__ == "__main__":
    main()
