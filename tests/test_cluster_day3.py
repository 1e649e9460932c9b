"""The distributed runtime beneath what is graded: the request plane, the simulated network, whole processes."""

import asyncio
import json
from contextlib import aclosing
from itertools import count

import pytest

from course.cluster_case.greedy import alone
from course.cluster_case.network import Network
from course.cluster_case.scene import generate
from tiny_llm_ref.cluster.balance import RoundRobin
from tiny_llm_ref.cluster.channel import Channels
from tiny_llm_ref.cluster.client import Client
from tiny_llm_ref.cluster.discovery import LeaseError, Registry
from tiny_llm_ref.cluster.discovery_server import DiscoveryServer
from tiny_llm_ref.cluster.kernel import Simulation
from tiny_llm_ref.cluster.migration import Migration
from tiny_llm_ref.cluster.rpc import RefusedError, RemoteError, Server
from tiny_llm_ref.cluster.runtime import Instance, Runtime
from tiny_llm_ref.cluster.transport import SECOND, LoopClock
from tiny_llm_ref.cluster.virtual_run import run

MS = SECOND // 1000
TTL = 4 * SECOND


def on_a_network(main, latency=MS):
    """Run `main(network, simulation)` in virtual time."""
    simulation = Simulation()
    return run(main(Network(lambda sender, receiver: latency), simulation), simulation)


async def consume(items, got=None):
    async for item in items:
        if got is not None:
            got.append(item)


async def collect(items):
    return [item async for item in items]


async def numbers(body):
    for i in range(body):
        await asyncio.sleep(0.01)
        yield i


async def pair(network, **handlers):
    server = Server(network.host("server"))
    server.handlers.update(handlers)
    address = await server.start()
    return server, address, Channels(network.host("client"))


def test_an_answer_is_a_stream():
    async def main(network, simulation):
        _, address, channels = await pair(network, numbers=numbers)
        times = []
        async for item in channels.call(address, "numbers", 3):
            times.append((item, simulation.now // MS))
        assert times == [(0, 14), (1, 24), (2, 34)], "2 ms to connect, 1 to call, 10 for a token, 1 to come back"

    on_a_network(main)


def test_many_calls_share_a_connection():
    async def main(network, simulation):
        server, address, channels = await pair(network, numbers=numbers)
        channel = await channels.get(address)

        async def one(n):
            return [item async for item in channel.call("numbers", n)]

        begun = simulation.now
        answers = await asyncio.gather(*(one(n) for n in range(20)))
        assert answers == [list(range(n)) for n in range(20)]
        assert simulation.now - begun < 200 * MS, "calls wait for each other"
        assert not channel.pending
        assert not server.active
        assert await channels.get(address) is channel

    on_a_network(main)


def test_closing_an_answer_cancels_the_handler():
    ended = []

    async def forever(body):
        try:
            for i in count():
                yield i
                await asyncio.sleep(0.01)
        finally:
            ended.append(body)

    async def main(network, simulation):
        server, address, channels = await pair(network, forever=forever)
        async with aclosing(channels.call(address, "forever", "left")) as items:
            async for item in items:
                if item == 3:
                    break
        await asyncio.sleep(0.01)
        assert ended == ["left"]
        task = asyncio.create_task(consume(channels.call(address, "forever", "cancelled")))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.sleep(0.01)
        assert ended == ["left", "cancelled"]
        task = asyncio.create_task(consume(channels.call(address, "forever", "gone")))
        await asyncio.sleep(0.1)
        network.crash("client")
        await asyncio.sleep(0.01)
        assert ended == ["left", "cancelled", "gone"]
        assert not server.active
        with pytest.raises(ConnectionError):
            await task

    on_a_network(main)


def test_a_handler_that_says_nothing_is_cancelled_when_its_caller_is_gone():
    ended = []

    async def silent(body):
        try:
            await asyncio.sleep(1000)
            yield 1
        finally:
            ended.append(body)

    async def main(network, simulation):
        server, address, channels = await pair(network, silent=silent)
        task = asyncio.create_task(channels.ask(address, "silent", 5))
        await asyncio.sleep(0.1)
        network.crash("client")
        await asyncio.sleep(0.01)
        assert ended == [5]
        assert not server.active
        with pytest.raises(ConnectionError):
            await task

    on_a_network(main)


def test_a_process_that_must_not_serve_begins_nothing():
    begun = []

    async def handler(body):
        begun.append(body)
        yield body

    async def main(network, simulation):
        server = Server(network.host("server"), lambda: simulation.now < SECOND)
        server.handlers["echo"] = handler
        address, channels = await server.start(), Channels(network.host("client"))
        assert await channels.ask(address, "echo", 1) == 1
        await asyncio.sleep(1)
        with pytest.raises(RefusedError):
            await channels.ask(address, "echo", 2)
        assert begun == [1]

    on_a_network(main)


def test_errors_of_a_handler_come_back_and_harm_nobody_else():
    async def broken(body):
        yield 1
        raise KeyError("row")

    async def main(network, simulation):
        _, address, channels = await pair(network, broken=broken, numbers=numbers)
        other = asyncio.create_task(channels.ask(address, "numbers", 1))
        got = []
        with pytest.raises(RemoteError, match="KeyError: 'row'"):
            await consume(channels.call(address, "broken", None), got)
        assert got == [1]
        assert await other == 0
        with pytest.raises(RefusedError, match="missing is not served"):
            await channels.ask(address, "missing", None)
        with pytest.raises(ConnectionRefusedError):
            await channels.ask("server:99", "numbers", 1)
        with pytest.raises(ConnectionRefusedError):
            await channels.ask("nobody:1", "numbers", 1)

    on_a_network(main)


def test_a_broken_connection_fails_all_its_calls_and_the_next_gets_a_new_one():
    async def main(network, simulation):
        _, address, channels = await pair(network, numbers=numbers)
        calls = [asyncio.create_task(consume(channels.call(address, "numbers", 100))) for _ in range(5)]
        await asyncio.sleep(0.1)
        network.crash("server")
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(outcome, ConnectionError) for outcome in outcomes)
        again = Server(network.host("server"))
        again.handlers["numbers"] = numbers
        address = await again.start()
        assert await channels.ask(address, "numbers", 1) == 0

    on_a_network(main)


def test_a_late_answer_is_dropped():
    async def main(network, simulation):
        _, address, channels = await pair(network, numbers=numbers)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.005):
                await channels.ask(address, "numbers", 1)
        assert await channels.ask(address, "numbers", 1) == 0, "it belonged to the first call"

    on_a_network(main)


def test_a_cut_link_holds_messages_in_order():
    async def main(network, simulation):
        _, address, channels = await pair(network, numbers=numbers)
        channel = await channels.get(address)
        network.cut("client", "server")
        task = asyncio.create_task(collect(channel.call("numbers", 3)))
        await asyncio.sleep(1)
        network.heal("client", "server")
        assert await task == [0, 1, 2]
        assert simulation.now > SECOND
        network.cut("client", "server")
        task = asyncio.create_task(channels.ask("server:9", "numbers", 1))
        await asyncio.sleep(1)
        assert not task.done(), "connecting waits too"
        network.heal("client", "server")
        with pytest.raises(ConnectionRefusedError):
            await task

    on_a_network(main)


def test_an_instance_is_read_from_what_was_registered():
    instance = Instance("ns", "decode", "generate", 0x2A, "host:1")
    assert instance.key == "ns/decode/generate/2a"
    assert Instance.parse(instance.__dict__) == instance
    for broken in (None, [], {"id": 1}, {**instance.__dict__, "id": "1"}, {**instance.__dict__, "more": 1}):
        with pytest.raises(ValueError, match="not an instance"):
            Instance.parse(broken)


async def registry_of(network, ttl=TTL):
    registry = Registry(ttl)
    service = DiscoveryServer(registry, Server(network.host("store")), LoopClock())
    return registry, service, await service.start()


async def started(network, name, address, handler=None):
    runtime = Runtime(network.host(name), LoopClock(), address)
    await runtime.start()
    if handler is not None:
        await endpoint(runtime).serve(handler)
    return runtime


def endpoint(runtime):
    return runtime.namespace("ns").component("decode").endpoint("generate")


async def client_of(network, address, balancer=None, idle=None):
    runtime = await started(network, "client", address)
    client = Client(endpoint(runtime), balancer or RoundRobin(), idle)
    await client.start()
    return client


def test_a_process_that_comes_back_is_another_one():
    async def main(network, simulation):
        registry, _, address = await registry_of(network)
        first = await started(network, "worker", address, generate)
        client = await client_of(network, address)
        old = client.instances()[first.discovery.lease]
        network.crash("worker")
        second = await started(network, "worker", address, generate)
        await asyncio.sleep(0.1)
        assert first.discovery.lease != second.discovery.lease
        assert len(registry.get("ns", simulation.now)) == 2, "the old one is still believed in"
        with pytest.raises(ConnectionError):
            await consume(client.call({"token_ids": [1], "max_tokens": 1}, old.id))
        assert list(client.instances()) == [second.discovery.lease]
        await asyncio.sleep(2 * TTL / SECOND)
        assert [instance.id for instance in client.view.entries.values()] == [second.discovery.lease]

    on_a_network(main)


def test_a_watcher_is_told_of_an_expiry_at_once_and_leaves_no_watch_behind():
    async def main(network, simulation):
        registry, _, address = await registry_of(network)
        worker = await started(network, "worker", address, generate)
        client = await client_of(network, address)
        network.crash("worker")
        worker.cancel()
        deadline = registry.leases[worker.discovery.lease].deadline
        await asyncio.sleep((deadline - simulation.now - 1) / SECOND)
        assert len(client.view.entries) == 1
        await asyncio.sleep((MS + 2) / SECOND)
        assert not client.view.entries
        await client.runtime.stop()
        await asyncio.sleep(0.01)
        assert not registry.watches

    on_a_network(main)


def test_queries_by_namespace_component_and_endpoint():
    async def main(network, simulation):
        _, _, address = await registry_of(network)
        ids = {}
        for place in ("work/decode/generate", "work/decode/clear", "work/prefill/generate", "worker/decode/generate"):
            runtime = await started(network, place, address)
            namespace, component, endpoint = place.split("/")
            await runtime.namespace(namespace).component(component).endpoint(endpoint).serve(generate)
            ids[place] = runtime.discovery.lease
        work = runtime.namespace("work")
        for path, expected in [
            ("", 4),
            (work.path, 3),
            (work.component("decode").path, 2),
            (work.component("decode").endpoint("clear").path, 1),
            ("wor", 0),
        ]:
            found = [instance.id for instance in await runtime.instances(path)]
            assert found == [number for place, number in ids.items() if place.startswith(path)][:expected]

    on_a_network(main)


def test_a_watch_survives_a_lost_connection():
    async def main(network, simulation):
        _, _, address = await registry_of(network)
        client = await client_of(network, address)
        client.runtime.channels.drop(address)
        worker = await started(network, "worker", address, generate)
        await asyncio.sleep(TTL / 2 / SECOND)
        assert list(client.instances()) == [worker.discovery.lease]

    on_a_network(main)


def test_a_name_is_one_part_of_a_path():
    async def main(network, simulation):
        runtime = Runtime(network.host("a"), LoopClock(), "store:1")
        for wrong in ("", "a/b"):
            with pytest.raises(ValueError, match="part of a path"):
                runtime.namespace(wrong)

    on_a_network(main)


def test_a_silent_worker_is_left_after_a_while():
    async def main(network, simulation):
        _, _, address = await registry_of(network)
        workers = [await started(network, f"worker-{i}", address, generate) for i in range(2)]
        client = await client_of(network, address, idle=SECOND)
        got = []
        async for token in Migration(client.call, LoopClock()).generate([1, 2, 3], 20):
            got.append(token)
            if len(got) == 5:
                network.cut("client", workers[0].transport.name)
        assert got == alone([1, 2, 3], 20)
        assert list(client.instances()) == [workers[1].discovery.lease], "the silent one is left alone for a while"
        network.heal("client", workers[0].transport.name)
        await asyncio.sleep(2 * TTL / SECOND)
        assert len(client.instances()) == 2
        assert not workers[0].server.active, "the cancellation has reached it"

    on_a_network(main)


def test_a_process_that_cannot_start_leaves_nothing():
    async def main(network, simulation):
        host = network.host("worker")
        runtime = Runtime(host, LoopClock(), "store:9")
        with pytest.raises(ConnectionRefusedError):
            await runtime.start()
        assert (runtime.state, host.open, list(host.ends)) == ("stopped", False, [])
        registry, _, address = await registry_of(network, 100 * MS)
        loop = asyncio.get_running_loop()
        loop.call_later(0.0035, network.cut, "worker", "store")  # connected and asked, not answered
        loop.call_later(1, network.heal, "worker", "store")
        with pytest.raises(LeaseError):
            await started(network, "worker", address)
        assert registry.get("", simulation.now) == {}

    on_a_network(main)


class Lines:
    """A `Connection` over TCP: a line of JSON for each message."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    async def send(self, message):
        if self.writer.is_closing():
            raise ConnectionResetError("closed")
        self.writer.write(json.dumps(message).encode() + b"\n")
        await self.writer.drain()

    async def receive(self):
        line = await self.reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionResetError("the other end is gone")
        return json.loads(line)

    def close(self):
        self.writer.close()


class Tcp:
    """A `Transport` on the loopback."""

    def __init__(self):
        self.servers, self.connections = [], []

    async def connect(self, address):
        host, port = address.split(":")
        return self.keep(Lines(*await asyncio.open_connection(host, int(port))))

    def keep(self, connection):
        self.connections.append(connection)
        return connection

    async def listen(self, accept):
        server = await asyncio.start_server(lambda *pair: accept(self.keep(Lines(*pair))), "127.0.0.1", 0)
        self.servers.append(server)
        return f"127.0.0.1:{server.sockets[0].getsockname()[1]}"

    def close(self):
        for each in (*self.servers, *self.connections):
            each.close()


async def story(transport):
    """A worker is lost in the middle of an answer, another one leaves well."""
    registry = Registry(20 * SECOND)
    store = transport("store")
    address = await DiscoveryServer(registry, Server(store), LoopClock()).start()
    workers = []
    for i in range(3):
        workers.append(Runtime(transport(f"worker-{i}"), LoopClock(), address))
        await workers[i].start()
        await endpoint(workers[i]).serve(generate)
    runtime = Runtime(transport("client"), LoopClock(), address)
    await runtime.start()
    client = Client(endpoint(runtime), RoundRobin())
    await client.start()
    got = []
    async for token in Migration(client.call, LoopClock()).generate([5, 6], 12):
        got.append(token)
        if len(got) == 4:
            workers[0].cancel()
    await workers[1].stop()
    await asyncio.sleep(0.05)
    known = [instance.id for instance in client.view.entries.values()]
    for each in (workers[2], runtime):
        await each.stop()
    store.close()
    return got == alone([5, 6], 12), workers[2].discovery.lease in known, workers[1].discovery.lease in known


def test_the_same_code_runs_in_real_time_on_real_sockets():
    async def main():
        async with asyncio.timeout(20):
            return await story(lambda name: Tcp())

    assert asyncio.run(main()) == (True, True, False)


def test_the_simulated_network_runs_on_a_real_loop_too():
    async def main():
        network = Network()
        return await story(network.host)

    assert asyncio.run(main()) == (True, True, False)
    assert run(main()) == (True, True, False)
