"""The exchanges that chats are made of: arithmetic, word sequences and things to remember.

Each function draws one exchange from a generator that the caller seeds. Some are kept for evaluation, by
their text alone (`pair_held_out`, `text_held_out`): `held_out=True` draws only those, training only the others.
"""

from random import Random
from zlib import crc32

from models.chatml import Turn
from models.world import (
    ANIMALS,
    BOYS,
    CITIES,
    COLORS,
    FOODS,
    GIRLS,
    NAMES,
    NUMBERS,
    OBJECTS,
    WORDS,
    article,
    capital_first,
    words,
)

SUM_QUESTIONS = (
    "What is {a} {o} {b}?", "{a} {o} {b} = ?", "How much is {a} {o} {b}?", "Calculate {a} {o} {b}.", "{a} {o} {b}",
    "What is {a} {w} {b}?", "How much is {a} {w} {b}?", "Please work out {a} {w} {b}.",
)  # fmt: skip
OPERATOR_WORDS = {"+": "plus", "-": "minus", "*": "times"}
SYLLABLES = words("ba be bo da do fa fi ga ka ki ko la le lo ma mi mo na ne no pa ra ri ro sa so ta te to va vi zo")
LIMIT, SMALL = 100, 50  # operands of + and - lie below these: all sums, and those that the model knows well


def casual(text: str, rng: Random) -> str:
    """`text` as a hurried user types it, now and then: lower case, no full stop or question mark at its end."""
    return text.lower().rstrip(".?!") if rng.random() < 0.1 else text


def text_held_out(question: str) -> bool:
    """Whether a question on a list or for a tool is kept for evaluation: one in twelve."""
    return crc32(question.encode()) % 12 == 0


def pair_held_out(a: int, b: int, operator: str) -> bool:
    """Whether a sum is kept for evaluation: one in ten, the same for `a + b` and `b + a`; no product is."""
    low, high = sorted((a, b)) if operator == "+" else (a, b)
    return operator != "*" and crc32(f"{low} {operator} {high}".encode()) % 10 == 0


def thoughts_of(a: int, b: int, operator: str) -> str:
    """Column arithmetic in words, the chain of thought for a sum or difference; empty for a product."""
    if operator == "*":
        return ""
    (tens_a, ones_a), (tens_b, ones_b) = divmod(a, 10), divmod(b, 10)
    if operator == "+":
        ones = ones_a + ones_b
        carry = f"Carry 1. {tens_a} + {tens_b} + 1 = " if ones > 9 else f"{tens_a} + {tens_b} = "
        return f"{ones_a} + {ones_b} = {ones}. {carry}{tens_a + tens_b + ones // 10}."
    if ones_a >= ones_b:
        return f"{ones_a} - {ones_b} = {ones_a - ones_b}. {tens_a} - {tens_b} = {tens_a - tens_b}."
    ones = f"Borrow 1. 1{ones_a} - {ones_b} = {10 + ones_a - ones_b}."
    return f"{ones} {tens_a} - 1 - {tens_b} = {tens_a - 1 - tens_b}."


def arithmetic(rng: Random, *, held_out: bool = False, limit: int = LIMIT) -> list[Turn]:
    """A sum of two numbers below `limit`, or a product from the times table, with its thoughts."""
    while True:
        operator = "*" if not held_out and rng.random() < 0.12 else rng.choice("+-")
        top = 11 if operator == "*" else rng.choice((limit, limit, limit, 30))
        a, b = rng.randrange(top), rng.randrange(top)
        if operator == "-" and b > a:
            a, b = b, a
        if pair_held_out(a, b, operator) == held_out:
            break
    value = {"+": a + b, "-": a - b, "*": a * b}[operator]
    question = rng.choice(SUM_QUESTIONS).format(a=a, b=b, o=operator, w=OPERATOR_WORDS[operator])
    question = casual(question, rng)
    return [Turn("user", question), Turn("assistant", f"{a} {operator} {b} = {value}.", thoughts_of(a, b, operator))]


def sequence(rng: Random, *, held_out: bool = False) -> list[Turn]:
    """A task on a list of words or numbers: count, repeat, reverse, first, last, how many, or spell one word."""
    while True:
        drawn = rng.sample(WORDS, rng.randrange(2, 7))
        if not held_out and rng.random() < 0.1:  # letters cannot be guessed: no spelling is held out
            return [Turn("user", f"Spell the word {drawn[0]}."), Turn("assistant", "-".join(drawn[0]) + ".")]
        question, answer = rng.choice(_list_tasks(drawn, rng))
        if text_held_out(question) == held_out:
            return [Turn("user", question), Turn("assistant", answer + ".")]


def _list_tasks(drawn: list[str], rng: Random) -> list[tuple[str, str]]:
    joined, number = ", ".join(drawn), rng.randrange(10, 1000)
    numbers = ", ".join(str(rng.randrange(10, 1000)) for _ in range(rng.randrange(1, 5)))
    low = rng.randrange(15)
    run = [str(n) for n in range(low, low + rng.randrange(3, 10))]
    return [
        (f"Count from {run[0]} to {run[-1]}.", ", ".join(run)),
        (f"Count down from {run[-1]} to {run[0]}.", ", ".join(run[::-1])),
        (f"Repeat these words: {joined}.", joined),
        (f"Say these words backwards: {', '.join(drawn[:5])}.", ", ".join(drawn[:5][::-1])),
        (f"How many words are here: {joined}?", f"There are {NUMBERS[len(drawn)]} words"),
        (f"What is the first word of this list: {joined}?", f"The first word is {drawn[0]}"),
        (f"What is the last word of this list: {joined}?", f"The last word is {drawn[-1]}"),
        (f"Repeat these numbers: {numbers}.", numbers),
        (f"What number comes after {number}?", f"{number + 1} comes after {number}"),
    ]


def counting(rng: Random) -> list[Turn]:
    """Counting up or down, over more numbers than `sequence` does."""
    while True:
        low = rng.randrange(60)
        run = [str(n) for n in range(low, low + rng.randrange(3, 10))]
        question = f"Count from {run[0]} to {run[-1]}."
        if rng.random() < 0.5:
            run = run[::-1]
            question = f"Count down from {run[0]} to {run[-1]}."
        if not text_held_out(question):
            return [Turn("user", question), Turn("assistant", ", ".join(run) + ".")]


def new_name(rng: Random) -> str:
    """A made-up name that is in no list, so that a model must copy it."""
    name = "".join(rng.choice(SYLLABLES) for _ in range(rng.randrange(2, 4)))
    return capital_first(name) + rng.choice(("", "n", "s"))


def any_name(rng: Random) -> str:
    """A name of the closed world, or now and then a made-up one."""
    return rng.choice(NAMES) if rng.random() < 0.8 else new_name(rng)


def memory(rng: Random) -> list[tuple[list[Turn], list[Turn]]]:
    """One to four things a user says, each with a question to ask later: (statement turns, question turns)."""
    name = any_name(rng)
    color, animal, food, city = rng.choice(COLORS), rng.choice(list(ANIMALS)), rng.choice(FOODS), rng.choice(CITIES)
    thing, age = rng.choice(OBJECTS), rng.randrange(5, 80)
    who = rng.choice(("brother", "sister", "friend", "teacher"))
    other = rng.choice({"brother": BOYS, "sister": GIRLS}.get(who, NAMES))
    says = rng.choice(("My name is {}.", "I am {}.", "Hello, I am {}.", "You can call me {}.", "Hi! My name is {}."))
    who_am_i = rng.choice(("What is my name?", "Who am I?", "Do you know my name?", "Can you tell me my name?"))
    table = [
        (says.format(name), f"Nice to meet you, {name}!", who_am_i, f"Your name is {name}."),
        (f"My favorite color is {color}.", f"{capital_first(color)} is a lovely color.", "What is my favorite color?",
         f"Your favorite color is {color}."),
        (f"I have a pet {animal}.", f"{capital_first(article(animal))} is a wonderful pet.", "What pet do I have?",
         f"You have a pet {animal}."),
        (f"I like to eat {food}.", "That sounds tasty.", "What do I like to eat?",
         f"You like to eat {food}."),
        (f"I lost my {thing}.", f"I hope you find your {thing} soon.", "What did I lose?", f"You lost your {thing}."),
        (f"I live in {city}.", f"{city} is a nice city.", "Where do I live?", f"You live in {city}."),
        (f"I am {age} years old.", "Thank you for telling me.", "How old am I?", f"You are {age} years old."),
        (f"My {who} is called {other}.", f"{other} is a good name.", f"What is the name of my {who}?",
         f"Your {who} is called {other}."),
    ]  # fmt: skip
    chosen = [table[0]] if rng.random() < 0.7 else []
    chosen += rng.sample(table[1:], rng.randrange(0 if chosen else 1, 4))
    rng.shuffle(chosen)
    return [
        ([Turn("user", said), Turn("assistant", reply)], [Turn("user", casual(ask, rng)), Turn("assistant", answer)])
        for said, reply, ask, answer in chosen
    ]
