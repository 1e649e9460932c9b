"""`pdm run serve`: an OpenAI-compatible server with a web page, on an engine of course code."""

import argparse
import contextlib
import errno
import logging
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

from course.errors import CourseError
from course.manual import Example
from course.options import number
from course.served_options import add_options

HELP = "serve a model to OpenAI clients, and show the engine at work"
ABOUT = """
An OpenAI-compatible HTTP server with a web page that shows scheduler, pages and prefix tree at work, on the
engine of Week 3: the reference's, or yours with --solution tiny_llm. --scheduler, --memory, --attention and
--loop choose its parts, so that an engine of which only some parts are written serves, too.

Ctrl-C or SIGTERM let running requests end; a second one ends them. It listens on this machine only, unless
--host says otherwise.
"""
EXAMPLES = (
    Example(
        "pdm run serve", "http://127.0.0.1:8000 on the reference's engine", untried="runs until it is told to stop"
    ),
    Example(
        "pdm run serve --port 0 --rows 8 --pages 256 --trace engine.json",
        "any free port, a small engine, recorded for ui.perfetto.dev",
        untried="runs until it is told to stop",
    ),
    Example(
        "pdm run serve --solution tiny_llm --scheduler fcfs --memory rows --loop normal",
        "your engine after the first day of Week 3",
        untried="runs until it is told to stop",
    ),
    Example(
        "pdm run serve --scheduler fcfs --pages 4",
        "sizes that do not fit together are refused, with ones that do",
        ends=2,
    ),
)
EXITS = (
    (0, "ended after a signal, all requests answered"),
    (1, "the engine failed"),
    (2, "a mistake; one line on standard error says what to change"),
    (130, "ended by a second signal"),
)
SEE_ALSO = ("batch", "bench", "soak", "week3-07-server.md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    some = number(float, "above 0", lambda x: x > 0, 30)
    count = number(int, "of at least 1", lambda x: x >= 1, 256)
    port = number(int, "from 0 to 65535", lambda x: 0 <= x <= 65535, 8000)
    where = "address to listen at (default 127.0.0.1: this machine only); the page shows pieces of everybody's prompts"
    parser.add_argument("--host", default="127.0.0.1", help=where)
    parser.add_argument("--port", type=port, default=8000, help="0: any free one (default 8000)")
    add_options(parser)
    limits = parser.add_argument_group("limits")
    limits.add_argument("--queue", type=count, default=512, metavar="N", help="requests not ended; then 429 (512)")
    limits.add_argument("--body-bytes", type=count, default=1 << 20, metavar="N", help="of one request (1048576)")
    limits.add_argument("--body-seconds", type=some, default=10.0, metavar="S", help="for a body to arrive (10)")
    limits.add_argument("--seconds", type=some, default=600.0, metavar="S", help="for one answer (600)")
    limits.add_argument("--drain-seconds", type=some, default=30.0, metavar="S", help="to end after a signal (30)")
    parser.add_argument(
        "--trace", type=Path, metavar="FILE", help="record the engine for ui.perfetto.dev, as long as it runs"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until told to stop. Exit status 0 after a drain, 130 after a second signal, 2 for mistakes."""
    from course.worker import leave

    leave(_serve(args))


def _serve(args: argparse.Namespace) -> int:
    import faulthandler

    from course.learner import explained
    from course.models import locate
    from course.served import Served
    from course.web_routes import web_routes

    faulthandler.enable()  # a kernel in C++ that crashes would else end the program without a word
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of each write to a client that has just left
    folder = locate(args.model)
    with bound(args.host, args.port) as listener, _recording(args.trace) as trace:
        served = Served.chosen(args, folder, trace)
        served.prepare()
        with explained(args.solution):
            engine, startup = served.start(args.queue)
            limits = served.module("serving.limits").Limits(
                args.body_bytes, args.body_seconds, args.seconds, args.drain_seconds
            )
            app = served.app(engine, limits, web_routes(served, engine))
            kind = served.module("serving.http_server").HttpServer
            server = announcing(kind, str(served))(
                app, engine, args.drain_seconds, args.host, listener.getsockname()[1]
            )
            _obey_signals(server)
            try:
                server.run(sockets=[listener])
            except KeyboardInterrupt:  # uvicorn raises a second signal again once it has stopped
                return 130
            except SystemExit:  # so uvicorn ends where the application does not start
                startup.check()
                raise
    return 1 if engine.error else 0


def _obey_signals(server: object) -> None:
    """A terminal that closes drains, too, unless `nohup` says no; SIGTERM ends the program no other way than Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, server.handle_exit)


class _Formatter(logging.Formatter):
    """Says of a learner's stub what it is; the way there tells nothing."""

    def formatException(self, info: tuple) -> str:
        from course.stub import stub_of

        stub = stub_of(info[1])
        if stub is None:
            return super().formatException(info)
        return f"  {stub.text} is still to be written. To serve without it, name another part: pdm run serve --help"


def announcing(kind: type, about: str) -> type:
    """The package's server, which also says where it is, and `about` it, once it answers. Before, it logs nothing."""

    class Announcing(kind):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            logging.disable(logging.CRITICAL)  # an engine that does not start is told in one line, by `Startup.check`
            try:
                await super().startup(sockets)
            finally:
                logging.disable(logging.NOTSET)
            if self.started:
                host, port = sockets[0].getsockname()[:2]
                where = f"http://{f'[{host}]' if ':' in host else host}:{port}"
                with contextlib.suppress(OSError):  # nobody has to read it
                    print(
                        f"{where} is a web page, and {where}/v1 an OpenAI endpoint. Ctrl-C stops.\n{about}", flush=True
                    )

    return Announcing


@contextlib.contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket at this address, before the long start of a model. Raises CourseError where there is none."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.create_server(address[:2], family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        raise CourseError(_unbound(host, port, error)) from None
    with listener:
        yield listener


def _unbound(host: str, port: int, error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use: choose another with --port, or --port 0 for any free one"
    if isinstance(error, OSError) and error.errno == errno.EACCES:
        return f"port {port} needs the rights of an administrator: choose one from 1024 on with --port"
    reason = error.strerror if isinstance(error, OSError) else error
    return f"cannot listen at {host!r} ({reason}): use --host 127.0.0.1, or an address of this machine"


@contextlib.contextmanager
def _recording(path: Path | None) -> Iterator[object]:
    """The file of --trace, closed at the end; None without one."""
    from course.trace_file import TraceFile

    if path is None:
        yield None
        return
    try:
        trace = TraceFile(path)
    except OSError as error:
        raise CourseError(f"cannot write {path}: {error.strerror}") from None
    try:
        yield trace
    finally:
        trace.close()
