"""The web page of `serve`, and what it shows: static files, and the state of the engine as JSON."""

from collections.abc import Sequence
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from tokenizers import Tokenizer

from course.served import Served

WEB = Path(__file__).with_name("web")


def web_routes(served: Served, engine: object) -> Sequence[BaseRoute]:
    """Routes beside those of the API. engine: the `AsyncEngine` behind both."""
    state_of = served.module("serving.state").state_of
    options = {name: value for name, value in served.options.items() if isinstance(value, str)}

    async def state(request: Request) -> Response:
        """GET /state: what runs, what waits, who has which page, and the radix tree; between two steps."""
        picture = await engine.ask(state_of)
        if picture["tree"]:
            _spell(picture["tree"], served.tokenizer)
        more = {"model": served.name, "options": options, "stats": engine.stats._asdict()}
        return JSONResponse(picture | more | {"open": len(engine.queues), "draining": engine.draining})

    return [Route("/state", state), Mount("/", StaticFiles(directory=WEB, html=True))]


def _spell(node: dict, tokenizer: Tokenizer) -> None:
    """Give a node of the tree, and all below it, the text of its first page."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        node["text"] = tokenizer.decode(node.pop("tokens"), skip_special_tokens=False)
        waiting += node["children"]
