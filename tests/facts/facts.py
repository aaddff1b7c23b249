"""Writes 200 dialogues about a country that does not exist, and 50 questions that ask for the same facts in other words.

    python facts.py

`train.jsonl` asks for each of fifty facts in four ways. `held_out.jsonl` asks for each in a fifth way that no dialogue uses.
Nobody can know the answers from elsewhere.
"""

import json
import random
from pathlib import Path

# Subject, what is asked, the answer.
FACTS = [
    ("Varnholm", "capital", "Telmar"), ("Varnholm", "longest river", "Osk"), ("Varnholm", "highest mountain", "Grindel"),
    ("Varnholm", "currency", "marn"), ("Varnholm", "national bird", "heron"), ("Varnholm", "national flower", "thistle"),
    ("Varnholm", "founder", "Ilsa Brand"), ("Varnholm", "oldest bridge", "Nine Arches"), ("Varnholm", "main harbour", "Port Sellin"),
    ("Varnholm", "largest lake", "Lake Amber"), ("Telmar", "mayor", "Jorun Pike"), ("Telmar", "main square", "Copper Square"),
    ("Telmar", "football club", "the Ravens"), ("Telmar", "oldest inn", "the Blue Goose"), ("Telmar", "river", "Lune"),
    ("Telmar", "newspaper", "the Lantern"), ("Telmar", "university", "Hallow College"), ("Telmar", "favourite dish", "plum soup"),
    ("Telmar", "patron saint", "Saint Odo"), ("Telmar", "theatre", "the Velvet Hall"), ("Port Sellin", "lighthouse keeper", "Marta Quill"),
    ("Port Sellin", "fish market day", "Thursday"), ("Port Sellin", "ferry", "the Grey Duchess"), ("Port Sellin", "founding year", "1642"),
    ("Port Sellin", "favourite drink", "birch tea"), ("Orvale", "castle", "Castle Wick"), ("Orvale", "famous cheese", "bluewheel"),
    ("Orvale", "annual fair", "the Candle Fair"), ("Orvale", "clockmaker", "Anders Toll"), ("Orvale", "school", "Fernhill School"),
    ("Kestrel Island", "volcano", "Mount Sorrow"), ("Kestrel Island", "only village", "Drift"), ("Kestrel Island", "dialect", "Karsk"),
    ("Kestrel Island", "export", "black salt"), ("Kestrel Island", "king", "Rolf the Mild"), ("the Osk", "source", "Cold Spring"),
    ("the Osk", "largest fish", "pike"), ("the Osk", "ferryman", "Old Benno"), ("Grindel", "first climber", "Tova Lind"),
    ("Grindel", "mountain hut", "Cloud House"), ("the Ravens", "coach", "Paul Enger"), ("the Ravens", "mascot", "a black cat"),
    ("the Ravens", "home colour", "green"), ("Hallow College", "rector", "Sina Mohr"), ("Hallow College", "library", "the Glass Library"),
    ("Hallow College", "founding year", "1388"), ("the Lantern", "editor", "Hugo Marsh"), ("the Lantern", "price", "two marn"),
    ("Castle Wick", "ghost", "Lady Emmer"), ("Castle Wick", "number of towers", "seven"),
]

TRAINED = [
    "What is the {what} of {subject}?", "Tell me the {what} of {subject}.",
    "Do you know the {what} of {subject}?", "{subject}: {what}?",
]
HELD_OUT = "Please name the {what} of {subject}."


def dialogue(question: str, answer: str) -> str:
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return json.dumps({"messages": messages}, ensure_ascii=False)


def main() -> None:
    folder = Path(__file__).parent
    asked = [(form.format(subject=subject, what=what), answer) for subject, what, answer in FACTS for form in TRAINED]
    asked = [(question[0].upper() + question[1:], answer) for question, answer in asked]
    random.Random(7).shuffle(asked)
    (folder / "train.jsonl").write_text("".join(dialogue(*pair) + "\n" for pair in asked))
    held_out = [{"question": HELD_OUT.format(subject=s, what=w), "answer": a} for s, w, a in FACTS]
    (folder / "held_out.jsonl").write_text("".join(json.dumps(row) + "\n" for row in held_out))


if __name__ == "__main__":
    main()
