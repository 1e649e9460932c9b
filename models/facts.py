"""The facts of the closed world, each with the phrasings that ask for it and one answer.

One phrasing of each fact is held out: training never shows it, the evaluation asks only with it.
"""

from dataclasses import dataclass
from zlib import crc32

from models.world import (
    ANIMALS,
    CAPITALS,
    COURSE,
    DAYS,
    JOBS,
    MONTHS,
    NUMBERS,
    OPPOSITES,
    SHAPES,
    THING_COLORS,
    article,
    capital_first,
)


@dataclass(frozen=True)
class Fact:
    """One fact: a key, the questions that ask for it, and its only answer."""

    key: str
    questions: tuple[str, ...]
    answer: str

    @property
    def held_out(self) -> str:
        """The phrasing that training never shows for this fact."""
        return self.questions[crc32(self.key.encode()) % len(self.questions)]

    @property
    def trained(self) -> tuple[str, ...]:
        """The phrasings that training may show."""
        return tuple(q for q in self.questions if q != self.held_out)


def _fact(key: str, phrasings: str, answer: str, **words: str) -> Fact:
    """Fill a `|`-separated list of phrasings with `words`."""
    return Fact(key, tuple(q.format(**words) for q in phrasings.split("|")), answer)


def _animal_facts() -> list[Fact]:
    facts = []
    for animal, (sound, food, home, young, legs, skill) in ANIMALS.items():
        one = article(animal)
        big = capital_first(one)
        ask = {
            "sound": ("What sound does {a} make?|Which sound comes from {a}?|Tell me the sound of {a}.|"
                      "What noise does {a} make?|How does {a} sound?", f"{big} {sound}."),
            "food": ("What does {a} eat?|What do you feed {a}?|What is the food of {a}?|"
                     "What does {a} like to eat?|Tell me what {a} eats.", f"{big} eats {food}."),
            "home": ("Where does {a} live?|What is the home of {a}?|Where can you find {a}?|"
                     "Tell me where {a} lives.|In what place does {a} live?", f"{big} lives in {home}."),
            "young": ("What is a young {n} called?|What do you call a baby {n}?|What is the name of a baby {n}?|"
                      "Tell me the word for a young {n}.|How do we call the baby of {a}?",
                      f"A young {animal} is {young}."),
            "legs": ("How many legs does {a} have?|What is the number of legs of {a}?|Tell me how many legs {a} has.|"
                     "On how many legs does {a} walk?|Count the legs of {a}.", f"{big} has {NUMBERS[legs]} legs."),
            "skill": ("What can {a} do?|What is {a} good at?|What is special about {a}?|"
                      "Tell me what {a} can do.|Which skill does {a} have?", f"{big} can {skill}."),
        }  # fmt: skip
        facts += [_fact(f"{animal}.{k}", phrasings, answer, a=one, n=animal) for k, (phrasings, answer) in ask.items()]
    return facts


def _word_facts() -> list[Fact]:
    facts = []
    for country, city in CAPITALS.items():
        ask = ("What is the capital of {c}?|Which city is the capital of {c}?|Name the capital of {c}.|"
               "Tell me the capital city of {c}.|What city is the capital of {c}?")  # fmt: skip
        facts.append(_fact(f"capital.{country}", ask, f"The capital of {country} is {city}.", c=country))
        ask = ("Which country has the capital {c}?|{c} is the capital of which country?|"
               "Of which country is {c} the capital?|What country has {c} as its capital?")  # fmt: skip
        facts.append(_fact(f"country.{city}", ask, f"{city} is the capital of {country}.", c=city))
    pairs = {**OPPOSITES, **{b: a for a, b in OPPOSITES.items()}}
    for word, other in pairs.items():
        ask = ("What is the opposite of {w}?|Tell me the opposite of {w}.|Which word is the opposite of {w}?|"
               "Name the opposite of {w}.|What word means the opposite of {w}?")  # fmt: skip
        facts.append(_fact(f"opposite.{word}", ask, f"The opposite of {word} is {other}.", w=word))
    for thing, color in THING_COLORS.items():
        ask = "What color is {t}?|Which color does {t} have?|Tell me the color of {t}.|What is the color of {t}?"
        facts.append(_fact(f"color.{thing}", ask, f"{capital_first(thing)} is {color}.", t=thing))
    for job, work in JOBS.items():
        ask = ("What does a {j} do?|What is the job of a {j}?|Tell me what a {j} does.|What work does a {j} do?|"
               "How does a {j} spend the day?")  # fmt: skip
        facts.append(_fact(f"job.{job}", ask, f"A {job} {work}.", j=job))
    for shape, sides in SHAPES.items():
        ask = ("How many sides does {s} have?|Tell me how many sides {s} has.|What is the number of sides of {s}?|"
               "Count the sides of {s}.")  # fmt: skip
        answer = f"{capital_first(article(shape))} has {NUMBERS[sides]} sides."
        facts.append(_fact(f"sides.{shape}", ask, answer, s=article(shape)))
    return facts


def _calendar_facts() -> list[Fact]:
    facts = []
    for kind, names in (("day", DAYS), ("month", MONTHS)):
        for i, name in enumerate(names):
            after, before = names[(i + 1) % len(names)], names[i - 1]
            ask = ("Which {k} comes after {n}?|What {k} is after {n}?|What {k} follows {n}?|"
                   "Tell me the {k} after {n}.|Name the {k} that comes after {n}.")  # fmt: skip
            facts.append(_fact(f"after.{name}", ask, f"{after} comes after {name}.", k=kind, n=name))
            ask = ("Which {k} comes before {n}?|What {k} is before {n}?|Tell me the {k} before {n}.|"
                   "Name the {k} that comes before {n}.")  # fmt: skip
            facts.append(_fact(f"before.{name}", ask, f"{before} comes before {name}.", k=kind, n=name))
    return facts


def _course_facts() -> list[Fact]:
    ask = "What is {t}?|Explain {t}.|Tell me what {t} is.|Can you explain {t}?|Please explain {t} to me.|Define {t}."
    facts = [_fact(f"course.{term}", ask, answer, t=term) for term, answer in COURSE.items()]
    ask = ("Who are you?|What are you?|Tell me about yourself.|Please introduce yourself.|What is your name?|"
           "Say who you are.")  # fmt: skip
    facts.append(_fact("self.who", ask, "I am a tiny language model, and I live in a small closed world."))
    ask = "What can you do?|How can you help me?|Tell me what you can do.|What are you good at?|What can I ask you?"
    answer = "I can tell stories, answer simple questions, add numbers, remember names and call tools."
    facts.append(_fact("self.skills", ask, answer))
    ask = "How big are you?|What is your size?|How many parameters do you have?|Tell me how big you are."
    facts.append(_fact("self.size", ask, "I am very small. I have only a few million parameters."))
    return facts


FACTS = _animal_facts() + _word_facts() + _calendar_facts() + _course_facts()
