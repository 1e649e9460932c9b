"""The closed world: its people, animals, places and words.

This module is vocabulary alone. It knows nothing of questions, documents, chat markup or randomness.
"""


def words(text: str, separator: str | None = None) -> list[str]:
    """The entries of `text`, between spaces or between `separator`."""
    return text.split(separator)


BOYS = words("Adam Arun Bruno Carl Dario Ed Felix George Henry Ian Jonas Karim Luke Mark Nico Owen Paul Quinn Rob Sven")
GIRLS = words(
    "Alice Bea Carmen Diana Eva Fiona Grace Helen Iris Julia Kate Laila Mona Nadia Olga Petra Rita Sara Tara Vera"
)
NAMES = BOYS + GIRLS

# animal: (sound, food, home, young, legs, what it can do)
ANIMALS: dict[str, tuple[str, str, str, str, int, str]] = {
    "dog": ("barks", "meat", "a kennel", "a puppy", 4, "guard the house"),
    "cat": ("meows", "fish", "a basket", "a kitten", 4, "climb trees"),
    "cow": ("moos", "grass", "a barn", "a calf", 4, "give milk"),
    "duck": ("quacks", "bread", "a pond", "a duckling", 2, "swim well"),
    "pig": ("grunts", "corn", "a sty", "a piglet", 4, "dig in the mud"),
    "sheep": ("bleats", "grass", "a field", "a lamb", 4, "grow wool"),
    "horse": ("neighs", "hay", "a stable", "a foal", 4, "run fast"),
    "lion": ("roars", "meat", "the grassland", "a cub", 4, "hunt at night"),
    "frog": ("croaks", "flies", "a pond", "a tadpole", 4, "jump far"),
    "owl": ("hoots", "mice", "a hollow tree", "an owlet", 2, "see in the dark"),
    "bee": ("buzzes", "nectar", "a hive", "a larva", 6, "make honey"),
    "mouse": ("squeaks", "cheese", "a hole", "a pup", 4, "hide in small places"),
    "bear": ("growls", "honey", "a cave", "a cub", 4, "sleep all winter"),
    "wolf": ("howls", "meat", "a den", "a pup", 4, "follow a trail"),
    "hen": ("clucks", "seeds", "a coop", "a chick", 2, "lay eggs"),
    "elephant": ("trumpets", "leaves", "the grassland", "a calf", 4, "lift heavy logs"),
    "monkey": ("chatters", "bananas", "the jungle", "an infant", 2, "swing from branches"),
    "goat": ("bleats", "leaves", "a hill", "a kid", 4, "climb rocks"),
    "crow": ("caws", "worms", "a nest", "a chick", 2, "solve puzzles"),
    "donkey": ("brays", "hay", "a stable", "a foal", 4, "carry heavy bags"),
}

CAPITALS = dict(
    pair.split("=")
    for pair in words(
        "France=Paris Spain=Madrid Italy=Rome Japan=Tokyo China=Beijing Egypt=Cairo Kenya=Nairobi Canada=Ottawa "
        "Peru=Lima Chile=Santiago Cuba=Havana Greece=Athens Norway=Oslo Sweden=Stockholm Finland=Helsinki "
        "Poland=Warsaw Germany=Berlin Austria=Vienna Portugal=Lisbon Ireland=Dublin Russia=Moscow Turkey=Ankara "
        "Nepal=Kathmandu Thailand=Bangkok Vietnam=Hanoi Denmark=Copenhagen Hungary=Budapest Belgium=Brussels "
        "England=London Morocco=Rabat"
    )
)
CITIES = list(CAPITALS.values())

OPPOSITES = dict(
    pair.split("=")
    for pair in words(
        "big=small hot=cold up=down day=night happy=sad fast=slow old=new wet=dry open=closed light=dark hard=soft "
        "full=empty loud=quiet early=late near=far left=right rich=poor strong=weak clean=dirty tall=short "
        "first=last above=below inside=outside push=pull thick=thin high=low true=false start=finish"
    )
)

THING_COLORS = {
    "the sky": "blue", "grass": "green", "the sun": "yellow", "snow": "white", "coal": "black", "a banana": "yellow",
    "a strawberry": "red", "a carrot": "orange", "a lemon": "yellow", "a leaf": "green", "chocolate": "brown",
    "milk": "white", "a plum": "purple", "a tomato": "red", "the sea": "blue", "a flamingo": "pink",
}  # fmt: skip

JOBS = {
    "baker": "bakes bread", "farmer": "grows food", "teacher": "teaches children", "doctor": "helps sick people",
    "pilot": "flies planes", "sailor": "sails ships", "painter": "paints pictures", "tailor": "sews clothes",
    "builder": "builds houses", "writer": "writes books", "singer": "sings songs", "cook": "cooks meals",
    "gardener": "plants flowers", "dentist": "fixes teeth", "miner": "digs for coal", "driver": "drives a bus",
}  # fmt: skip

DAYS = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = words("January February March April May June July August September October November December")
SHAPES = {"triangle": 3, "square": 4, "rectangle": 4, "pentagon": 5, "hexagon": 6, "octagon": 8}
NUMBERS = words("zero one two three four five six seven eight nine ten eleven twelve")

COURSE = {
    "a KV cache": "A KV cache keeps the keys and values of past tokens, so that each new token is computed only once.",
    "prefill": "Prefill reads the whole prompt in one pass and fills the KV cache.",
    "decode": "Decode makes one new token per step from the last token and the KV cache.",
    "a token": "A token is a piece of text with a number, and a model reads and writes tokens.",
    "a tokenizer": "A tokenizer turns text into tokens and tokens back into text.",
    "attention": "Attention lets each token look at the tokens before it and mix in what matters.",
    "an embedding": "An embedding is the row of numbers that stands for a token inside the model.",
    "a logit": "A logit is the score that the model gives to one possible next token.",
    "softmax": "Softmax turns scores into chances that add up to one.",
    "greedy decoding": "Greedy decoding always takes the token with the highest score.",
    "temperature": "Temperature makes the choice of tokens bolder when it is high and safer when it is low.",
    "a batch": "A batch is a group of requests that the model works on in one step.",
    "continuous batching": "Continuous batching lets requests join and leave the batch at every step.",
    "a kernel": "A kernel is a small program that does one operation fast on the hardware.",
    "quantization": "Quantization stores weights in fewer bits, so that the model is smaller and faster.",
    "paged attention": "Paged attention keeps the KV cache in small blocks that a block table finds again.",
    "speculative decoding": "In speculative decoding a small model guesses tokens and a big model checks them.",
    "a transformer": "A transformer is a stack of layers with attention and a small network in each layer.",
    "RoPE": "RoPE turns queries and keys by their position, so that attention knows how far apart tokens are.",
    "RMSNorm": "RMSNorm scales a row of numbers so that its size stays the same from layer to layer.",
}

OBJECTS = words(
    "ball kite book hat cup lamp drum doll boat bell box key coin ring shoe clock map rope brush basket spoon whistle "
    "lantern mirror scarf puzzle"
)
COLORS = words("red blue green yellow white black pink purple orange brown golden silver")
FOODS = words("apples cake soup bread pie cookies sandwiches pears salad rice cheese pancakes")
PLACES = words(
    "the park,the forest,the beach,the garden,the market,the library,the school,the farm,the river,the old mill,"
    "the hill,the lake,the castle,the bakery,the harbor,the playground",
    ",",
)
SPOTS = words(
    "under a bench,behind a tree,in a bush,near the gate,on a rock,under the bridge,inside a barrel,next to the well,"
    "in the tall grass,on top of a wall,behind the shed,beside the road",
    ",",
)
WEATHER = words("sunny rainy windy cloudy snowy warm cold foggy bright stormy")
TRAITS = words("little kind brave clever shy curious cheerful quiet funny gentle clumsy patient")
WORDS = OBJECTS + FOODS + list(ANIMALS)


def article(word: str) -> str:
    """`word` with its indefinite article: "an owl", "a red ball"."""
    return ("an " if word[0] in "aeiou" else "a ") + word


def capital_first(text: str) -> str:
    """`text` with its first letter in upper case and the rest as it was."""
    return text[:1].upper() + text[1:]
