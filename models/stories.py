"""Short stories, each with the questions that its text answers.

A story is told from a `Cast`, drawn once, so that a question can only ask for what the text says. Every question has
one answer in one form: reading is then scored by exact match.
"""

from dataclasses import dataclass
from random import Random

from models.world import (
    ANIMALS,
    COLORS,
    FOODS,
    GIRLS,
    NAMES,
    OBJECTS,
    PLACES,
    SPOTS,
    TRAITS,
    WEATHER,
    article,
    capital_first,
    words,
)

Question = tuple[str, str]
OPENINGS = words(
    "One day|One morning|One afternoon|One evening|Last summer|On Monday|After lunch|Early in the day", "|"
)


@dataclass(frozen=True)
class Cast:
    """Who and what a story is about."""

    hero: str
    kind: str  # "girl", "boy" or an animal
    trait: str
    friend: str
    place: str
    thing: str
    color: str
    spot: str
    food: str
    weather: str
    animal: str

    @property
    def he(self) -> str:
        """The hero's pronoun: he or she."""
        return "she" if self.hero in GIRLS else "he"

    @property
    def his(self) -> str:
        """The hero's possessive: his or her."""
        return "her" if self.hero in GIRLS else "his"


def cast(rng: Random, hero: str = "", kind: str = "", place: str = "", thing: str = "") -> Cast:
    """Draw a cast; arguments that are not empty are kept as given."""
    hero = hero or rng.choice(NAMES)
    return Cast(
        hero=hero,
        kind=kind or ("girl" if hero in GIRLS else "boy"),
        trait=rng.choice(TRAITS),
        friend=rng.choice([name for name in NAMES if name != hero]),
        place=place or rng.choice(PLACES),
        thing=thing or rng.choice(OBJECTS),
        color=rng.choice(COLORS),
        spot=rng.choice(SPOTS),
        food=rng.choice(FOODS),
        weather=rng.choice(WEATHER),
        animal=rng.choice(list(ANIMALS)),
    )


def _pick(rng: Random, *options: str) -> str:
    return rng.choice(options)


def _opening(c: Cast, rng: Random) -> tuple[list[str], list[Question]]:
    who = f"{article(c.trait)} {c.kind} named {c.hero}"
    start = _pick(rng, *OPENINGS)
    text = [
        _pick(
            rng,
            f"{start}, {who} went to {c.place}.",
            f"There was once {who}. {start}, {c.hero} went to {c.place}.",
            f"Once upon a time, {who} went to {c.place}.",
            f"{c.hero} was {article(c.trait)} {c.kind}. {start}, {c.he} went to {c.place}.",
        ),
        _pick(rng, f"It was {article(c.weather)} day.", f"The weather was {c.weather}.", f"The day was {c.weather}."),
    ]
    asks = [
        (_pick(rng, f"Where did {c.hero} go?", f"To which place did {c.hero} go?"), f"{c.hero} went to {c.place}."),
        (_pick(rng, "What was the weather like?", "How was the weather?"), f"The weather was {c.weather}."),
        (_pick(rng, "Who is the story about?", "What is the name of the hero?"), f"The story is about {c.hero}."),
        (_pick(rng, f"Who was {c.hero}?", f"What do we know about {c.hero}?"),
         f"{c.hero} was {article(c.trait)} {c.kind}."),
    ]  # fmt: skip
    return text, asks


def _color_ask(c: Cast, rng: Random) -> Question:
    return _pick(rng, f"What color was the {c.thing}?", f"Which color did the {c.thing} have?"), (
        f"The {c.thing} was {c.color}."
    )


def _lost(c: Cast, rng: Random) -> tuple[list[str], list[Question]]:
    text = [
        _pick(rng, f"{c.hero} had {article(c.color)} {c.thing} and loved it very much.",
              f"{capital_first(c.he)} took {c.his} {c.color} {c.thing} along."),
        _pick(rng, f"But when {c.he} stopped to play, the {c.thing} was gone!", f"Then {c.hero} lost the {c.thing}."),
        _pick(rng, f"{c.hero} looked here and there but could not find it.", f"{c.hero} was sad and sat down."),
        _pick(rng, f'{c.friend} came by and said, "I will help you."', f'"Do not worry," said {c.friend}.'),
        _pick(rng, f"At last {c.friend} found the {c.thing} {c.spot}.", f"Soon {c.friend} saw the {c.thing} {c.spot}."),
        _pick(rng, f'"Thank you, {c.friend}!" said {c.hero}.', f"{c.hero} was happy, and they played until dark."),
    ]  # fmt: skip
    return text, [
        _color_ask(c, rng),
        (_pick(rng, f"What did {c.hero} lose?", f"Which thing did {c.hero} lose?"), f"{c.hero} lost the {c.thing}."),
        (_pick(rng, f"Who found the {c.thing}?", f"Who helped {c.hero}?"), f"It was {c.friend}."),
        (_pick(rng, f"Where was the {c.thing}?", f"Where did {c.friend} find it?"), f"The {c.thing} was {c.spot}."),
    ]


def _honest(c: Cast, rng: Random) -> tuple[list[str], list[Question]]:
    text = [
        f"{capital_first(c.he)} found {article(c.color)} {c.thing} {c.spot}.",
        _pick(rng, f'"Whose {c.thing} is this?" asked {c.hero}.', f"{c.hero} wanted to keep it."),
        f"Then {c.he} saw {c.friend}, who was looking for something.",
        _pick(rng, f'"Is this your {c.thing}?" asked {c.hero}.', f"{c.hero} gave the {c.thing} back."),
        _pick(rng, f"{c.friend} was glad and shared some {c.food} with {c.hero}.",
              f"{c.friend} smiled and gave {c.hero} some {c.food}."),
        _pick(rng, f"{c.hero} learned that it is good to be honest.", "From that day on, they were best friends."),
    ]  # fmt: skip
    return text, [
        _color_ask(c, rng),
        (_pick(rng, f"What did {c.hero} find?", f"Which thing did {c.hero} find?"), f"{c.hero} found the {c.thing}."),
        (_pick(rng, f"Whose {c.thing} was it?", f"Who was looking for the {c.thing}?"), f"It was {c.friend}."),
        (_pick(rng, f"Where was the {c.thing}?", f"Where did {c.hero} find it?"), f"The {c.thing} was {c.spot}."),
        (_pick(rng, f"What did {c.friend} share?", f"What food did {c.friend} give?"), f"{c.friend} shared {c.food}."),
    ]


def _cooking(c: Cast, rng: Random) -> tuple[list[str], list[Question]]:
    text = [
        f"{c.hero} wanted to make some {c.food} for {c.friend}.",
        _pick(rng, f"But {c.he} did not know how.", "But there was no salt at home."),
        _pick(rng, f"{capital_first(c.he)} asked {c.his} grandmother for help.", "A kind cook showed the way."),
        f"They put the {c.food} in {article(c.color)} bowl.",
        _pick(rng, f'{c.friend} said, "I love this!"', f"{c.friend} ate it all and asked for more."),
        _pick(rng, f"{c.hero} was proud.", f"{c.hero} and {c.friend} laughed and were full."),
    ]
    return text, [
        (_pick(rng, "What color was the bowl?", "Which color did the bowl have?"), f"The bowl was {c.color}."),
        (_pick(rng, f"What did {c.hero} make?", f"Which food did {c.hero} make?"), f"{c.hero} made {c.food}."),
        (_pick(rng, f"Who ate the {c.food}?", f"Who was the {c.food} for?"), f"It was {c.friend}."),
    ]


def _rescue(c: Cast, rng: Random) -> tuple[list[str], list[Question]]:
    food, home, skill = ANIMALS[c.animal][1], ANIMALS[c.animal][2], ANIMALS[c.animal][5]
    text = [
        f"{capital_first(c.he)} saw {article(c.animal)} {c.spot}.",
        _pick(rng, f"The {c.animal} was hurt and could not move.", f"The {c.animal} was hungry and cold."),
        _pick(rng, f"{c.hero} gave it {food} to eat.", f"{c.hero} ran home and came back with {food}."),
        f"{c.friend} helped to bring the {c.animal} to {home}.",
        _pick(rng, f"The next day the {c.animal} was well again.", f"Soon it could {skill} again."),
        _pick(rng, f'"Goodbye, little {c.animal}!" said {c.hero}.', f"{c.hero} waved and felt proud."),
    ]
    return text, [
        (
            _pick(rng, f"What did {c.hero} see?", f"Which animal did {c.hero} see?"),
            f"{c.hero} saw {article(c.animal)}.",
        ),
        (_pick(rng, f"Where was the {c.animal}?", f"Where did {c.hero} see it?"), f"The {c.animal} was {c.spot}."),
        (_pick(rng, f"Who helped {c.hero}?", f"Who helped to bring the {c.animal}?"), f"It was {c.friend}."),
    ]


def _sharing(c: Cast, rng: Random) -> tuple[list[str], list[Question]]:
    text = [
        f"{c.hero} and {c.friend} both wanted to play with the {c.color} {c.thing}.",
        _pick(rng, f'"It is mine!" said {c.hero}.', f"They pulled and pulled, and the {c.thing} almost broke."),
        _pick(rng, f'Then {c.he} had an idea. "Let us share," {c.he} said.', '"Stop! We can take turns."'),
        f"First {c.hero} played with the {c.thing}, and then {c.friend} did.",
        _pick(rng, "They learned that sharing is fun.", "In the end they were both happy."),
    ]
    return text, [
        _color_ask(c, rng),
        (_pick(rng, "What did they share?", "What did they play with?"), f"They shared the {c.thing}."),
        (_pick(rng, f"Who played with {c.hero}?", f"Who was with {c.hero}?"), f"It was {c.friend}."),
    ]


def _courage(c: Cast, rng: Random) -> tuple[list[str], list[Question]]:
    fear = _pick(rng, "the dark", "the water", "the thunder", "the tall trees", "the big waves")
    text = [
        f"{c.hero} was scared of {fear}.",
        f'{c.friend} brought {article(c.color)} {c.thing} and said, "This will make you brave."',
        _pick(rng, f"{c.hero} held the {c.thing} and took a deep breath.", f"{c.hero} closed {c.his} eyes."),
        _pick(rng, f"Step by step, {c.he} was not afraid any more.", f"Then {c.he} tried, and it was not so bad."),
        _pick(rng, f'"I did it!" {c.he} shouted.', f'{c.friend} clapped and said, "You were brave all along."'),
    ]
    return text, [
        _color_ask(c, rng),
        (_pick(rng, f"What was {c.hero} scared of?", f"What scared {c.hero}?"), f"{c.hero} was scared of {fear}."),
        (_pick(rng, f"Who brought the {c.thing}?", f"Who helped {c.hero}?"), f"It was {c.friend}."),
    ]


PLOTS = (_lost, _honest, _cooking, _rescue, _sharing, _courage)


def story(c: Cast, rng: Random) -> tuple[str, list[Question]]:
    """Tell one story about `c`; return its text and the questions that it answers."""
    opening, asks = _opening(c, rng)
    body, more = rng.choice(PLOTS)(c, rng)
    return " ".join(opening + body), asks + more


def passage(rng: Random) -> tuple[str, list[Question]]:
    """A few plain sentences that give several people one thing each, with questions that ask who has what."""
    names = rng.sample(NAMES, rng.randrange(2, 5))
    things = rng.sample(OBJECTS, len(names))
    colors = rng.sample(COLORS, len(names))
    places = rng.sample(PLACES, len(names))
    rows = list(zip(names, things, colors, places, strict=True))
    text = [f"{name} has {article(color)} {thing} and goes to {place}." for name, thing, color, place in rows]
    asks: list[Question] = []
    for name, thing, color, place in rows:
        asks += [
            (f"What does {name} have?", f"{name} has {article(color)} {thing}."),
            (f"Where does {name} go?", f"{name} goes to {place}."),
            (f"Who has the {thing}?", f"{name} has the {thing}."),
            (f"What color is the {thing}?", f"The {thing} is {color}."),
        ]
    return " ".join(text), asks
