"""The six tools, and questions that need one: the call, the tool's result, and the answer that states it."""

from dataclasses import dataclass
from random import Random

from models.chatml import Tool, Turn, call_text, response_text
from models.tasks import text_held_out
from models.world import CITIES, OBJECTS, WEATHER


@dataclass(frozen=True)
class ToolUse:
    """One use of a tool: the function's name, the question, the call, the result and the answer."""

    name: str
    turns: tuple[Turn, Turn, Turn, Turn]


def _schema(name: str, description: str, **types: str) -> Tool:
    properties = {key: {"type": kind} for key, kind in types.items()}
    parameters = {"type": "object", "properties": properties, "required": list(types)}
    return {"name": name, "description": description, "parameters": parameters}


TOOLS: dict[str, Tool] = {
    "add": _schema("add", "Add two numbers", a="integer", b="integer"),
    "subtract": _schema("subtract", "Subtract b from a", a="integer", b="integer"),
    "get_weather": _schema("get_weather", "Get the weather in a city", city="string"),
    "get_time": _schema("get_time", "Get the time in a city", city="string"),
    "get_price": _schema("get_price", "Get the price of a thing", item="string"),
    "set_timer": _schema("set_timer", "Start a timer", minutes="integer"),
}


def tool_use(rng: Random, *, held_out: bool = False) -> ToolUse:
    """Draw a question that needs a tool, with the call, the tool's result and the answer that states it."""
    while True:
        name, ask, arguments, result, answer = rng.choice((_sum_use, _city_use, _thing_use))(rng)
        if text_held_out(ask) == held_out:
            break
    call, response = call_text(name, arguments), response_text(result)
    return ToolUse(
        name, (Turn("user", ask), Turn("assistant", call), Turn("user", response), Turn("assistant", answer))
    )


Use = tuple[str, str, dict[str, object], dict[str, object], str]  # name, question, arguments, result, answer


def _sum_use(rng: Random) -> Use:
    b, a = sorted((rng.randrange(100, 1000), rng.randrange(100, 1000)))
    ask = rng.choice(("What is {} {} {}?", "How much is {} {} {}?", "Please work out {} {} {}."))
    if rng.random() < 0.5:
        question = ask.format(a, rng.choice(("+", "plus")), b)
        return "add", question, {"a": a, "b": b}, {"result": a + b}, f"{a} + {b} = {a + b}."
    question = ask.format(a, rng.choice(("-", "minus")), b)
    return "subtract", question, {"a": a, "b": b}, {"result": a - b}, f"{a} - {b} = {a - b}."


def _city_use(rng: Random) -> Use:
    city = rng.choice(CITIES)
    if rng.random() < 0.5:
        clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}"
        ask = rng.choice(("What time is it in {}?", "Tell me the time in {}.", "What is the time in {}?"))
        return "get_time", ask.format(city), {"city": city}, {"time": clock}, f"It is {clock} in {city}."
    weather, degrees = rng.choice(WEATHER), rng.randrange(40)
    ask = rng.choice(("What is the weather in {}?", "How is the weather in {} today?", "Tell me the weather in {}."))
    answer = f"It is {weather} in {city}, and it is {degrees} degrees."
    return "get_weather", ask.format(city), {"city": city}, {"weather": weather, "degrees": degrees}, answer


def _thing_use(rng: Random) -> Use:
    if rng.random() < 0.6:
        item, price = rng.choice(OBJECTS), rng.randrange(2, 1000)
        ask = rng.choice(("What does a {} cost?", "What is the price of the {}?", "How much is the {}?"))
        return "get_price", ask.format(item), {"item": item}, {"price": price}, f"The {item} costs {price} coins."
    minutes = rng.randrange(1, 90)
    ask = rng.choice(("Set a timer for {} minutes.", "Wake me in {} minutes.", "Start a timer of {} minutes."))
    result: dict[str, object] = {"status": "started", "minutes": minutes}
    return "set_timer", ask.format(minutes), {"minutes": minutes}, result, f"The timer is set for {minutes} minutes."
