"""Who is in a story: draws a hero, a friend, a helper, a place and things, and names the slots that stand for them."""

from random import Random

import words

HE = {"he": "he", "him": "him", "his": "his", "himself": "himself"}
SHE = {"he": "she", "him": "her", "his": "her", "himself": "herself"}


def draw(rng: Random, **fixed: str) -> dict[str, str]:
    """Slots for one story. `kind` and `hero` may be fixed by the caller (a girl, a fox, a name)."""
    slots = person(rng, fixed.get("kind"), "")
    slots |= person(rng, None if rng.random() < 0.5 else slots["kind"], "f")
    while slots["friend"] == slots["hero"]:
        slots |= person(rng, None, "f")
    slots |= surroundings(rng) | things(rng) | fixed
    child = slots["kind"] in ("girl", "boy")
    slots["home"] = rng.choice(words.HOMES if child else words.DENS)
    return slots


def person(rng: Random, kind: str | None, prefix: str) -> dict[str, str]:
    """Name, kind and pronouns of one character; `prefix` "f" makes the friend's slots."""
    kind = kind or rng.choice(["girl", "boy", "girl", "boy", rng.choice(words.ANIMALS)])
    she = kind == "girl" or (kind != "boy" and rng.random() < 0.5)
    names = {"girl": words.GIRLS, "boy": words.BOYS}.get(kind, words.PETS)
    # The first twenty names carry most stories, so that a small model meets each often.
    name = rng.choice(names[:20] if rng.random() < 0.8 else names)
    pronouns = {prefix + key: value for key, value in (SHE if she else HE).items()}
    return pronouns | ({"friend": name, "fkind": kind} if prefix else {"hero": name, "kind": kind})


def surroundings(rng: Random) -> dict[str, str]:
    """Places, weather and a helper."""
    (where, place), (where2, place2) = rng.sample(words.PLACES, 2)
    helper, hhe = rng.choice(words.HELPERS)
    kin = rng.choice(["mother", "father"])
    return {
        "place": place, "at_place": f"{where} {place}", "place2": place2, "at_place2": f"{where2} {place2}",
        "helper": helper, "hhe": hhe, "hhis": {"she": "her", "he": "his"}[hhe], "hhim": {"she": "her", "he": "him"}[hhe],
        "kin": kin, "khe": {"mother": "she", "father": "he"}[kin], "weather": rng.choice(words.LISTS["weather"]),
    }


def things(rng: Random) -> dict[str, str]:
    """Objects and themes; pairs that belong together are drawn together."""
    fear, fear_at = rng.choice(words.FEARS)
    skill, skill_at, skill_thing = rng.choice(words.SKILLS)
    make, make_of, make_do = rng.choice(words.MAKES)
    errand1, errand2, errand3 = rng.sample(words.ERRANDS, 3)
    toy, treasure = rng.choice(words.TOYS), rng.choice(words.TREASURES)
    return {
        "toy": toy, "treasure": treasure, "thing": rng.choice([toy, treasure]), "colour": rng.choice(words.COLOURS),
        "food": rng.choice(words.FOODS), "creature": rng.choice(words.CREATURES), "plant": rng.choice(words.PLANTS),
        "fear": fear, "fear_at": fear_at, "skill": skill, "skill_at": skill_at, "skill_thing": skill_thing,
        "make": make, "make_of": make_of, "make_do": make_do, "errand1": errand1, "errand2": errand2, "errand3": errand3,
    }
