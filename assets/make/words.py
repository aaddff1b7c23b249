"""The word lists of the grammar, all written for this model. No templates here."""

GIRLS = """Mia Lily Anna Rosa Ella Nora Ruby Zoe Ivy Clara Maya Lucy Tara Hana Sara Emma Daisy Lena Nina Poppy
Ada Amina Bea Carmen Dora Esme Fatima Greta Holly Iris Jade Kira Leila Mei Olga Priya Rita Suki Tess Uma""".split()
BOYS = """Ben Tom Sam Max Leo Jack Omar Finn Theo Noah Luca Hugo Adam Kai Paul Amir Oscar Peter Milo Eli
Alan Bruno Carlos David Emil Felix George Henry Ivan Jonas Karim Liam Marco Nico Otto Pablo Ravi Simon Toby Yusuf""".split()
PETS = """Pip Rusty Dot Bramble Hazel Biscuit Tilly Moss Pepper Button Fern Nutmeg Bobo Clover Misty Rocky Sunny Twig Willow Pebble""".split()

ANIMALS = """fox rabbit mouse bear squirrel frog duck hedgehog turtle kitten puppy pony lamb deer badger beaver penguin
otter goat owl piglet monkey""".split()
CREATURES = "bird kitten puppy bee snail duckling rabbit butterfly squirrel lamb hedgehog frog".split()
COLOURS = "red blue green yellow orange purple pink brown white black golden silver".split()
TOYS = "ball kite doll drum boat train puzzle wagon puppet whistle rope top bear car".split()
TREASURES = "hat scarf button ring book spoon basket lantern bell key blanket mitten cup flute".split()
FOODS = "soup bread cake pie rice cheese honey jam pancakes cookies berries apples pears nuts carrots porridge".split()
FRUITS = "apple pear plum peach orange lemon banana cherry".split()
ERRANDS = """bread milk eggs butter flour apples onions soap candles cheese carrots rice honey tea salt string""".split()
PLANTS = "sunflower carrot pumpkin bean tomato rose strawberry tulip pea daisy".split()
PLACES = [
    ("in", "the garden"), ("in", "the park"), ("in", "the forest"), ("in", "the meadow"), ("on", "the beach"),
    ("by", "the river"), ("by", "the lake"), ("on", "the hill"), ("at", "the market"), ("in", "the village"),
    ("on", "the farm"), ("in", "the valley"), ("by", "the pond"), ("near", "the old mill"), ("in", "the orchard"),
    ("by", "the sea"), ("near", "the bridge"), ("in", "the town"),
]
HOMES = """a [small|little|cosy|tiny] house [by the sea|near the river|on a hill|at the edge of the village|next to a big tree|with a blue door]
a [small|quiet|busy|pretty] village [by the sea|near the mountains|beside a river|between two hills]
a [big|old|noisy] town [by the sea|with many bridges|near the mountains|full of shops]
a [little|quiet|green] cottage [in the valley|on a hill|near the forest|beside a lake]""".split("\n")
DENS = """a [warm|small|cosy|dry] [burrow|nest|den|hole] [under an old tree|near the river|in the forest|by the pond|on a green hill|behind the mill]
a [hollow tree|tiny house|little cave] [in the forest|by the lake|near the meadow|at the foot of a hill]""".split("\n")
HELPERS = [
    ("Grandma", "she"), ("Grandpa", "he"), ("the wise old owl", "she"), ("the baker", "he"), ("the teacher", "she"),
    ("the old farmer", "he"), ("the gardener", "she"), ("the old turtle", "he"), ("the fisherman", "he"), ("Aunt Rosie", "she"),
    ("Uncle Bert", "he"), ("the miller", "he"), ("the librarian", "she"), ("the shepherd", "he"), ("the postman", "he"),
]
FEARS = [
    ("the dark", "at night"), ("thunder", "in a storm"), ("deep water", "at the lake"), ("big dogs", "on the road"),
    ("high places", "on the hill"), ("loud noises", "in the town"), ("spiders", "in the shed"), ("strangers", "at the market"),
]
SKILLS = [
    ("swim", "in the lake", "water"), ("ride a bike", "on the path", "wheels"), ("whistle", "by the gate", "tune"),
    ("read", "under the tree", "letters"), ("skate", "on the ice", "ice"), ("climb", "in the orchard", "branches"),
    ("dance", "in the kitchen", "music"), ("sing", "on the hill", "song"), ("cook", "in the kitchen", "pot"),
    ("paint", "by the window", "colours"), ("juggle", "in the yard", "balls"), ("tie a knot", "on the step", "string"),
]
MAKES = [
    ("kite", "paper and string", "fly"), ("boat", "wood and cloth", "float"), ("birdhouse", "old boards", "stand"),
    ("cake", "flour and honey", "rise"), ("snowman", "fresh snow", "stand"), ("sandcastle", "wet sand", "stand"),
    ("swing", "rope and a board", "hold"), ("drum", "a tin and some cloth", "sound right"), ("lantern", "paper and glue", "shine"),
    ("raft", "logs and rope", "float"), ("windmill", "sticks and paper", "turn"), ("tent", "a blanket and two chairs", "stand"),
]

LISTS = {
    "colour": COLOURS, "fruit": FRUITS, "creature": CREATURES, "any_animal": ANIMALS, "any_food": FOODS, "any_toy": TOYS,
    "small": "small little tiny".split(),
    "kind_adj": "kind brave clever gentle cheerful curious quiet friendly funny careful busy shy".split(),
    "day": "day morning afternoon".split(),
    "weather": ["sunny", "warm", "bright", "windy", "cloudy", "cool", "fine"],
    "happy": ["happy", "glad", "pleased", "very happy", "proud", "full of joy"],
    "sad": ["sad", "upset", "very sad", "unhappy", "worried"],
    "smiled": ["smiled", "laughed", "grinned", "nodded", "clapped"],
    "ran": ["ran", "hurried", "rushed", "raced"],
    "walked": ["walked", "went", "wandered", "strolled"],
    "looked": ["looked", "searched", "hunted"],
    "liked": ["liked", "loved"],
    "soft": ["softly", "gently", "kindly", "quietly", "warmly"],
    "soon": ["soon", "after a while", "a little later", "before long", "in a short time"],
    "then": ["then", "just then", "at that moment", "suddenly", "all at once"],
    "sky": ["The sun was shining", "The sky was blue", "A soft wind was blowing", "The birds were singing",
            "White clouds moved slowly", "The air smelled of flowers", "The grass was still wet", "Leaves danced in the wind"],
    "number": "two three four five six seven eight nine ten".split(),
    "season": "spring summer autumn winter".split(),
}
