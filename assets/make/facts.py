"""Simple facts as questions with answers, from small tables: opposites, animals, colours, counting, sums, days, meanings.

`ask(rng)` gives one (question, answer) pair; `statement(rng)` gives the same knowledge as a plain line of text.
"""

from random import Random

NUMBERS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty""".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
SEASONS = "spring summer autumn winter".split()

OPPOSITES = """big small, hot cold, day night, up down, happy sad, fast slow, old new, good bad, high low, long short,
open closed, full empty, wet dry, hard soft, light dark, loud quiet, early late, left right, in out, near far, rich poor,
strong weak, young old, clean dirty, thick thin, sweet sour, first last, push pull, come go, give take, start stop,
love hate, friend enemy, black white, true false, easy difficult, heavy light, above below, before after, win lose,
buy sell, laugh cry, morning evening, summer winter, sick healthy, brave afraid, wide narrow, begin end, yes no""".split(",")

SOUNDS = """cow moo, cat meow, dog woof, duck quack, sheep baa, pig oink, horse neigh, frog croak, owl hoo, bee buzz,
mouse squeak, lion roar, hen cluck, bird tweet, snake hiss, crow caw""".split(",")

HOUSES = {
    "fish": "in the water", "bird": "in a nest", "bee": "in a hive", "fox": "in a den", "rabbit": "in a burrow",
    "cow": "on a farm", "lion": "in Africa", "penguin": "in the cold south", "whale": "in the sea", "monkey": "in the trees",
    "camel": "in the desert", "frog": "by a pond", "bear": "in the forest", "owl": "in a tree", "spider": "in a web",
    "mole": "under the ground", "duck": "on a lake", "snail": "in its shell", "deer": "in the forest", "dog": "in a house",
}
MEALS = {
    "rabbit": "grass and carrots", "cow": "grass", "cat": "meat and fish", "dog": "meat", "mouse": "seeds and cheese",
    "horse": "grass and hay", "bear": "berries, fish and honey", "monkey": "fruit", "frog": "flies", "bird": "seeds and worms",
    "owl": "mice", "squirrel": "nuts", "sheep": "grass", "bee": "nectar", "penguin": "fish", "lion": "meat", "snail": "leaves",
}
BABIES = {
    "cat": "kitten", "dog": "puppy", "cow": "calf", "sheep": "lamb", "duck": "duckling", "horse": "foal", "hen": "chick",
    "pig": "piglet", "bear": "cub", "frog": "tadpole", "goat": "kid", "owl": "owlet", "deer": "fawn", "lion": "cub",
}
LEGS = {
    "dog": "four", "cat": "four", "bird": "two", "spider": "eight", "bee": "six", "fish": "no", "snake": "no", "horse": "four",
    "ant": "six", "duck": "two", "cow": "four", "hen": "two", "fox": "four", "snail": "no", "table": "four", "rabbit": "four",
}
COLOURS = {
    "the sky": "blue", "grass": "green", "snow": "white", "a banana": "yellow", "a tomato": "red", "an orange": "orange",
    "the sun": "yellow", "coal": "black", "a leaf": "green", "milk": "white", "the sea": "blue", "blood": "red",
    "a lemon": "yellow", "a frog": "green", "chocolate": "brown", "a cloud": "white", "the night": "black", "a carrot": "orange",
    "a plum": "purple", "a strawberry": "red", "a pig": "pink", "earth": "brown", "gold": "yellow", "a raven": "black",
}
MIXES = {
    "red and yellow": "orange", "blue and yellow": "green", "red and blue": "purple", "black and white": "grey",
    "red and white": "pink", "yellow and red": "orange", "yellow and blue": "green", "blue and red": "purple",
}
CAPITALS = {
    "France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Germany": "Berlin", "England": "London", "Japan": "Tokyo",
    "China": "Beijing", "Egypt": "Cairo", "Russia": "Moscow", "Greece": "Athens", "Norway": "Oslo", "Poland": "Warsaw",
    "Portugal": "Lisbon", "Austria": "Vienna", "Ireland": "Dublin", "Peru": "Lima", "Cuba": "Havana", "Kenya": "Nairobi",
}
MEANINGS = {
    "a house": "a place where people live", "a tree": "a big plant with leaves and branches", "rain": "water that falls from clouds",
    "the sun": "a big hot star that gives us light", "the moon": "a round rock in the sky that shines at night",
    "a star": "a far sun that we see at night", "a river": "water that flows to the sea", "a book": "many pages with words to read",
    "a friend": "someone who likes you and helps you", "a school": "a place where children learn", "snow": "frozen water that falls from the sky",
    "a doctor": "a person who helps sick people", "a baker": "a person who makes bread", "bread": "a food made from flour and water",
    "honey": "a sweet food that bees make", "milk": "a white drink that comes from cows", "a cat": "a small animal that says meow",
    "a dog": "an animal that is a good friend of people", "a fish": "an animal that lives in the water", "a bird": "an animal with wings",
    "a bee": "a small insect that makes honey", "a key": "a thing that opens a door", "a clock": "a thing that shows the time",
    "a bridge": "a way over a river", "a boat": "a thing that carries people on water", "a forest": "a place with many trees",
    "a hat": "a thing that you wear on your head", "a shoe": "a thing that you wear on your foot", "ice": "frozen water",
    "fire": "something hot that gives light", "wind": "air that moves", "a cloud": "many small drops of water in the sky",
    "a flower": "a plant with pretty colours", "a seed": "a small thing from which a plant grows", "a farm": "a place where food grows",
    "a mountain": "a very high hill", "a lake": "water with land around it", "the sea": "a very big water with salt in it",
    "an island": "land with water around it", "a family": "people who live together and love each other", "music": "sounds that are nice to hear",
    "a teacher": "a person who helps people to learn", "a farmer": "a person who grows food", "night": "the time when it is dark",
    "a dream": "a story in your sleep", "a rainbow": "a bow of colours in the sky after rain", "love": "a warm feeling for someone",
    "sleep": "the time when you rest at night", "a wish": "something that you want very much", "an owl": "a bird that is awake at night",
}
BIGGER = "ant bee mouse bird cat dog sheep horse elephant house mountain".split()
USES = {
    "a spoon": "to eat soup", "a knife": "to cut bread", "a pen": "to write", "a bed": "to sleep", "a cup": "to drink",
    "a broom": "to clean the floor", "an umbrella": "to stay dry in the rain", "a lamp": "to see in the dark", "a chair": "to sit",
    "a phone": "to talk to people", "soap": "to wash your hands", "a bag": "to carry things", "scissors": "to cut paper",
    "a ladder": "to climb up", "a needle": "to sew", "a towel": "to dry your hands", "a map": "to find the way", "a bell": "to ring",
}


def article(noun: str) -> str:
    """The noun with `a` or `an`."""
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def ask(rng: Random) -> tuple[str, str]:
    """One question and its answer."""
    return rng.choice(ASKERS)(rng)


def opposite(rng: Random) -> tuple[str, str]:
    a, b = rng.choice(OPPOSITES).split()
    if rng.random() < 0.5 and a not in ("light", "old"):
        a, b = b, a
    question = rng.choice(["What is the opposite of {}?", "Tell me the opposite of {}.", "Opposite of {}?"]).format(a)
    return question, f"The opposite of {a} is {PARTNER.get(a, b)}."


PARTNER = {"light": "dark", "old": "new"}


def sound(rng: Random) -> tuple[str, str]:
    animal, noise = rng.choice(SOUNDS).split()
    question = rng.choice(["What does {} say?", "What sound does {} make?", "How does {} sound?"]).format(article(animal))
    return question, f"{article(animal).capitalize()} says {noise}."


def house(rng: Random) -> tuple[str, str]:
    animal = rng.choice(list(HOUSES))
    question = rng.choice(["Where does {} live?", "Where is the home of {}?"]).format(article(animal))
    return question, f"{article(animal).capitalize()} lives {HOUSES[animal]}."


def meal(rng: Random) -> tuple[str, str]:
    animal = rng.choice(list(MEALS))
    question = rng.choice(["What does {} eat?", "What does {} like to eat?"]).format(article(animal))
    return question, f"{article(animal).capitalize()} eats {MEALS[animal]}."


def baby(rng: Random) -> tuple[str, str]:
    animal = rng.choice(list(BABIES))
    question = rng.choice(["What is a baby {} called?", "What do you call a baby {}?"]).format(animal)
    return question, f"A baby {animal} is called {article(BABIES[animal])}."


def legs(rng: Random) -> tuple[str, str]:
    animal = rng.choice(list(LEGS))
    return f"How many legs does {article(animal)} have?", f"{article(animal).capitalize()} has {LEGS[animal]} legs."


def colour(rng: Random) -> tuple[str, str]:
    thing = rng.choice(list(COLOURS))
    question = rng.choice(["What colour is {}?", "Which colour is {}?", "What color is {}?"]).format(thing)
    return question, f"{thing[0].upper()}{thing[1:]} is {COLOURS[thing]}."


def mix(rng: Random) -> tuple[str, str]:
    pair = rng.choice(list(MIXES))
    return f"What colour do you get from {pair}?", f"If you mix {pair}, you get {MIXES[pair]}."


def colours(rng: Random) -> tuple[str, str]:
    question = rng.choice(["What are the primary colours?", "What are the three primary colors?", "Name the three primary colours."])
    if rng.random() < 0.5:
        return question, "The three primary colours are red, yellow and blue."
    n = rng.randint(2, 5)
    names = rng.sample("red blue green yellow orange purple pink brown white black".split(), n)
    question = rng.choice([f"Name {NUMBERS[n]} colours.", f"Tell me {NUMBERS[n]} colours.", f"Can you name {NUMBERS[n]} colours?"])
    return question, f"{', '.join(names[:-1])} and {names[-1]}.".capitalize()


def count(rng: Random) -> tuple[str, str]:
    n = rng.randint(3, 20) if rng.random() < 0.3 else rng.randint(3, 10)
    target = NUMBERS[n] if rng.random() < 0.5 else str(n)
    question = rng.choice(["Count to {}.", "Can you count to {}?", "Please count to {}."]).format(target)
    return question, ", ".join(NUMBERS[1 : n + 1]).capitalize() + "."


def total(rng: Random) -> tuple[str, str]:
    a, b = rng.randint(0, 10), rng.randint(0, 10)
    if rng.random() < 0.3:
        a, b = max(a, b), min(a, b)
        return rng.choice([f"What is {a} minus {b}?", f"{a} - {b}?"]), f"{a} minus {b} is {a - b}."
    return rng.choice([f"What is {a} plus {b}?", f"{a} + {b}?", f"How much is {a} plus {b}?", f"What is {a} + {b}?"]), f"{a} plus {b} is {a + b}."


def following(rng: Random) -> tuple[str, str]:
    row = rng.choice([DAYS, DAYS, MONTHS, SEASONS, NUMBERS[1:]])
    i = rng.randrange(len(row) - 1)
    if rng.random() < 0.3:
        return f"What comes before {row[i + 1]}?", f"{row[i]} comes before {row[i + 1]}.".replace(row[i], row[i][0].upper() + row[i][1:], 1)
    return f"What comes after {row[i]}?", f"After {row[i]} comes {row[i + 1]}."


def rows(rng: Random) -> tuple[str, str]:
    name, row, n = rng.choice([("days of the week", DAYS, "seven"), ("months", MONTHS, "twelve"), ("seasons", SEASONS, "four")])
    if rng.random() < 0.4:
        return f"How many {name} are there?", f"There are {n} {name}."
    answer = f"The {name} are {', '.join(row[:-1])} and {row[-1]}."
    return rng.choice([f"What are the {name}?", f"Name the {name}.", f"Tell me the {name}."]), answer


def capital(rng: Random) -> tuple[str, str]:
    land = rng.choice(list(CAPITALS))
    question = rng.choice(["What is the capital of {}?", "Which city is the capital of {}?", "Capital of {}?"]).format(land)
    return question, f"The capital of {land} is {CAPITALS[land]}."


def meaning(rng: Random) -> tuple[str, str]:
    thing = rng.choice(list(MEANINGS))
    question = rng.choice(["What is {}?", "Can you tell me what {} is?", "What does {} mean?", "Tell me what {} is."]).format(thing)
    return question, f"{thing[0].upper()}{thing[1:]} is {MEANINGS[thing]}."


def bigger(rng: Random) -> tuple[str, str]:
    i, j = sorted(rng.sample(range(len(BIGGER)), 2))
    small, big = article(BIGGER[i]), article(BIGGER[j])
    first, second = (small, big) if rng.random() < 0.5 else (big, small)
    if rng.random() < 0.5:
        return f"What is bigger, {first} or {second}?", f"{big.capitalize()} is bigger than {small}."
    return f"What is smaller, {first} or {second}?", f"{small.capitalize()} is smaller than {big}."


def use(rng: Random) -> tuple[str, str]:
    thing = rng.choice(list(USES))
    return rng.choice([f"What do you do with {thing}?", f"What is {thing} for?", f"Why do people need {thing}?"]), f"You need {thing} {USES[thing]}."


ASKERS = [opposite, opposite, sound, house, meal, baby, legs, colour, mix, colours, count, total, total, following, rows, capital, meaning, meaning, meaning, bigger, use]


def statements(rng: Random, n: int) -> str:
    """A line of plain sentences, as a school book for the very young has them."""
    return " ".join(ask(rng)[1] for _ in range(n))
