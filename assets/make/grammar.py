"""A seeded text grammar: `[a|b]` picks one alternative, `{slot}` puts a word, and the result is tidied into sentences.

A slot is looked up in the caller's slots first and then in the word lists, where each use picks anew.
`{^slot}` starts with a capital letter. The grammar knows nothing of stories or talk.
"""

import re
from random import Random

from words import LISTS

CHOICE = re.compile(r"\[([^\[\]]*)\]")
SLOT = re.compile(r"\{(\^?)([a-z_0-9]+)\}")


def expand(template: str, rng: Random, slots: dict[str, str]) -> str:
    """The template with every choice made and every slot filled, tidied."""
    text = template
    while "[" in text or "{" in text:
        before = text
        text = CHOICE.sub(lambda m: rng.choice(m.group(1).split("|")), text)
        text = SLOT.sub(lambda m: fill(m.group(1), m.group(2), rng, slots), text)
        if text == before:
            raise ValueError(f"unbalanced brackets: {template}")
    return tidy(text)


def fill(capital: str, name: str, rng: Random, slots: dict[str, str]) -> str:
    """The word for one slot."""
    word = slots[name] if name in slots else rng.choice(LISTS[name])
    return word[:1].upper() + word[1:] if capital else word


def tidy(text: str) -> str:
    """One space between words, `an` before a vowel, a capital letter at the start of each sentence."""
    text = re.sub(r" {2,}", " ", text).strip()
    text = re.sub(r" ([.,!?])", r"\1", text)
    text = re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
    return re.sub(r"(^|\n|(?<!\.\.)[.!?] |\.\" )([a-z])", lambda m: m.group(1) + m.group(2).upper(), text)


def blocks(path) -> list[list[str]]:
    """The paragraphs of a grammar file, each a list of lines; lines that start with `#` are comments."""
    lines = [line.strip() for line in path.read_text().splitlines() if not line.startswith("#")]
    groups: list[list[str]] = [[]]
    for line in lines:
        if line:
            groups[-1].append(line)
        elif groups[-1]:
            groups.append([])
    return [group for group in groups if group]
