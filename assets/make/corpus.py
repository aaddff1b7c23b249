"""Writes the training text: documents of stories, school-book lines and conversations, from one seed.

    python corpus.py OUT_FOLDER [--mb 16] [--seed 1]

gives OUT_FOLDER/train.jsonl and valid.jsonl; one JSON value per line, a string (plain text) or a list of messages.
The validation documents come from another seed, and none of them occurs in the training text.
"""

import argparse
import json
from pathlib import Path
from random import Random

import facts
import stories
import talk


def document(rng: Random) -> str | list[dict[str, str]]:
    """One document: of ten, three are stories, one is facts and six are conversations (which are shorter, and hold stories too)."""
    kind = rng.random()
    if kind < 0.3:
        return stories.any_story(rng)
    if kind < 0.38:
        return facts.statements(rng, rng.randint(3, 8))
    return talk.conversation(rng)


def write(path: Path, seed: int, n_bytes: int, avoid: set[str]) -> set[str]:
    """Writes about that many bytes of documents that are not in `avoid`; gives their lines."""
    rng, lines, size = Random(seed), {}, 0
    while size < n_bytes:
        line = json.dumps(document(rng))
        if line not in avoid and line not in lines:
            lines[line] = None
            size += len(line) + 1
    path.write_text("\n".join(lines) + "\n")
    return set(lines)


def main() -> None:
    args = argparse.ArgumentParser()
    args.add_argument("out", type=Path)
    args.add_argument("--mb", type=float, default=16)
    args.add_argument("--seed", type=int, default=1)
    args = args.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    valid = write(args.out / "valid.jsonl", args.seed + 1000, 200_000, set())
    write(args.out / "train.jsonl", args.seed, int(args.mb * 1e6), valid)


if __name__ == "__main__":
    main()
