"""Stories: a cast, an opening, then one line of each block of a plot in order.

A plot is a file in `stories/`; a line that starts with `?` is an ending or an aside that is left out half of the time.
"""

from pathlib import Path
from random import Random

import cast
from grammar import blocks, expand

FOLDER = Path(__file__).parent / "stories"
OPENINGS = blocks(FOLDER / "_opening.txt")
PLOTS = {path.stem: blocks(path) for path in sorted(FOLDER.glob("[a-z]*.txt"))}

FRIENDS = [
    "{^his} best friend was [a {fkind} named {friend}|{friend} the {fkind}].",
    "{hero} had a [good|dear|{kind_adj}] friend, {friend} the {fkind}.",
    "Next door lived {friend}, {his} best friend.",
]


def header(plot: str, key: str) -> str:
    """The `# title:` or `# theme:` of a plot."""
    lines = (FOLDER / f"{plot}.txt").read_text().splitlines()
    return next(line.split(":", 1)[1].strip() for line in lines if line.startswith(f"# {key}:"))


THEMES = {plot: header(plot, "theme") for plot in PLOTS}
TITLES = {plot: header(plot, "title") for plot in PLOTS}


def story(rng: Random, plot: str, slots: dict[str, str], short: bool = False) -> str:
    """One story of one to four paragraphs; a short one leaves out asides."""
    parts = [expand(rng.choice(rng.choice(OPENINGS)), rng, slots)]
    if plot != "friend" and slots["friend"] not in parts[0] and rng.random() < 0.4:
        parts.append(expand(rng.choice(FRIENDS), rng, slots))
    for block in PLOTS[plot]:
        line = rng.choice(block)
        if not line.startswith("?"):
            parts.append(expand(line, rng, slots))
        elif rng.random() < (0.3 if short else 0.7):
            parts.append(expand(line[1:], rng, slots))
    return join(parts, rng, 1 if short else rng.choice([1, 2, 3]))


def join(parts: list[str], rng: Random, n_paragraphs: int) -> str:
    """The parts as that many paragraphs."""
    cuts = set(rng.sample(range(1, len(parts)), n_paragraphs - 1))
    return "".join(("" if i == 0 else "\n\n" if i in cuts else " ") + part for i, part in enumerate(parts))


def any_story(rng: Random) -> str:
    """A story with a random plot and cast, half of them under a title."""
    plot, slots = rng.choice(list(PLOTS)), cast.draw(rng)
    text = story(rng, plot, slots)
    if rng.random() < 0.3:
        return expand(TITLES[plot], rng, slots).title().replace("'S", "'s") + "\n\n" + text
    return text
