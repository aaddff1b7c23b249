"""Talk: conversations of one to six turns, as message lists for the chat template.

A file in `talk/` holds exchanges: the `>` lines are ways to ask, the `<` lines are ways to answer.
"""

from pathlib import Path
from random import Random

import cast
import facts
import stories
import words
from grammar import blocks, expand

FOLDER = Path(__file__).parent / "talk"
HARD = (FOLDER / "_hard.txt").read_text().split("\n")[:-1]
FILES = {path.stem: blocks(path) for path in sorted(FOLDER.glob("[a-z]*.txt"))}
SYSTEMS = [
    "You are a helpful assistant.", "You are a friendly assistant.", "You are Samara, a tiny language model.",
    "Answer in simple words.", "You are a kind storyteller.", "Be short and clear.",
]
Turn = tuple[str, str]


def conversation(rng: Random) -> list[dict[str, str]]:
    """The messages of one conversation; one in eight has a system message first."""
    n_turns = rng.choice([1, 1, 1, 2, 2, 3, 4])
    turns = [turn for _ in range(n_turns) for turn in rng.choices(KINDS, WEIGHTS)[0](rng)]
    messages = [{"role": "system", "content": rng.choice(SYSTEMS)}] if rng.random() < 0.125 else []
    for question, answer in turns:
        messages += [{"role": "user", "content": casual(question, rng)}, {"role": "assistant", "content": answer}]
    return messages


def casual(question: str, rng: Random) -> str:
    """The question as people type it: sometimes in lower case or without the mark at the end."""
    if rng.random() < 0.15:
        question = question.lower()
    return question.rstrip("?.!") if rng.random() < 0.15 else question


def exchange(rng: Random, name: str) -> list[Turn]:
    """One question and answer from a file of exchanges."""
    block = rng.choice(FILES[name])
    asks = [line[1:] for line in block if line.startswith(">")]
    answers = [line[1:] for line in block if line.startswith("<")]
    slots = cast.draw(rng) | {"hard": rng.choice(HARD)}
    return [(expand(rng.choice(asks), rng, slots), expand(rng.choice(answers), rng, slots))]


def fact(rng: Random) -> list[Turn]:
    """One to three questions about simple facts."""
    return [facts.ask(rng) for _ in range(rng.choice([1, 1, 2, 3]))]


ASK_STORY = "[Tell me a story|Can you tell me a story|Please tell me a story|Write a story|Tell a short story|I want to hear a story|Can you write a short story|Tell me a tale]"
ABOUT = ["about a {kind}", "about a {kind} named {hero}", "about {hero}", "about {theme}", "about {theme}", "about {title}", "with a {kind} and a {fkind}", ""]
AGAIN = ["[Another one|One more|Tell me another story][.|, please.|!]", "That was [nice|good|lovely]. [Another one, please.|Tell me more.|Do you know another story?]"]
LEAD_IN = ["", "", "", "", "Of course! ", "Here is a story. ", "Yes, listen. "]


def tell(rng: Random) -> list[Turn]:
    """A story that has what was asked for, and sometimes a second one."""
    plot, slots = rng.choice(list(stories.PLOTS)), cast.draw(rng)
    slots |= {"theme": stories.THEMES[plot], "title": stories.TITLES[plot]}
    question = expand(f"{ASK_STORY} {rng.choice(ABOUT)}{rng.choice(['.', '?', ''])}", rng, slots)
    turns = [(question, rng.choice(LEAD_IN) + stories.story(rng, plot, slots, short=True))]
    if rng.random() < 0.15:
        turns.append((expand(rng.choice(AGAIN), rng, slots), stories.story(rng, rng.choice(list(stories.PLOTS)), cast.draw(rng), short=True)))
    return turns


def introduce(rng: Random) -> list[Turn]:
    """The user gives a name or a liking, and asks for it later."""
    name, food, colour = rng.choice(words.GIRLS + words.BOYS), rng.choice(words.FOODS), rng.choice(words.COLOURS)
    asked, told, later, answer = rng.choice([
        (f"[My name is|I am|I'm|Hello, I am|Hi, my name is] {name}.", f"[Hello|Hi|Nice to meet you], {name}! [How are you?|What shall we talk about?|I am a tiny model.|]",
         "[What is my name|Do you know my name|Who am I|What am I called]?", f"Your name is {name}."),
        (f"[My favourite food is|I love to eat] {food}.", f"{food.capitalize()}! That sounds good.",
         "[What is my favourite food|What do I like to eat]?", f"You like {food}."),
        (f"My favourite colour is {colour}.", f"{colour.capitalize()} is a nice colour.",
         "[What is my favourite colour|Which colour do I like]?", f"Your favourite colour is {colour}."),
    ])
    between = [facts.ask(rng)] if rng.random() < 0.4 else exchange(rng, "hello") if rng.random() < 0.2 else []
    pair = [(expand(asked, rng, {}), expand(told, rng, {})), *between, (expand(later, rng, {}), answer)]
    return pair if rng.random() < 0.7 else pair[:1]


KINDS = [tell, fact, introduce, lambda rng: exchange(rng, "hello"), lambda rng: exchange(rng, "feelings"), lambda rng: exchange(rng, "unknown")]
WEIGHTS = [3, 4, 1.5, 3, 2.5, 1.5]
