"""The distributed runtime: discovery, streams, migration, by examples and over random schedules of faults."""

import asyncio
import json
from collections import Counter
from contextlib import aclosing
from itertools import count
from random import Random

import pytest
from cluster_world import TTL, World, alone, next_token

from tiny_llm_ref.cluster.balance import DeviceWeighted, LeastLoaded, PowerOfTwo, RandomChoice, RoundRobin
from tiny_llm_ref.cluster.channel import Channels
from tiny_llm_ref.cluster.client import Client, NoInstanceError
from tiny_llm_ref.cluster.discovery import Change, LeaseError, Registry, View, covers
from tiny_llm_ref.cluster.discovery_server import DiscoveryServer
from tiny_llm_ref.cluster.kernel import Simulation
from tiny_llm_ref.cluster.lease import Discovery
from tiny_llm_ref.cluster.migration import Migration, Progress
from tiny_llm_ref.cluster.network import Network
from tiny_llm_ref.cluster.rpc import RefusedError, RemoteError, Server
from tiny_llm_ref.cluster.runtime import Instance, Runtime
from tiny_llm_ref.cluster.transport import SECOND, LoopClock
from tiny_llm_ref.cluster.virtual_loop import VirtualLoop
from tiny_llm_ref.cluster.virtual_run import finish, run

MS = SECOND // 1000

# Discovery, without a network


@pytest.mark.parametrize(
    ("prefix", "key", "expected"),
    [
        ("work", "worker/1", False),
        ("work", "work/1", True),
        ("work", "work", True),
        ("work/1", "work/10", False),
        ("", "work/1", True),
        ("work/1", "work", False),
    ],
)
def test_a_prefix_ends_at_a_slash(prefix, key, expected):
    assert covers(prefix, key) is expected


def test_a_key_lives_for_exactly_ttl_after_the_last_renewal():
    registry = Registry(100)
    lease = registry.grant(0)
    registry.put(lease, "a/1", {"x": 1}, 10)
    registry.renew(lease, 60)
    assert registry.get("a", 159) == {"a/1": {"x": 1}}
    assert registry.get("a", 160) == {}
    with pytest.raises(LeaseError, match=f"lease {lease} is not alive"):
        registry.renew(lease, 160)
    with pytest.raises(LeaseError):
        registry.put(lease, "a/2", 1, 161)
    assert registry.next_deadline() is None


def test_ids_are_never_used_twice():
    registry = Registry(10)
    ids = []
    for time in range(0, 100, 5):
        ids.append(registry.grant(time))
        if time % 3 == 0:
            registry.revoke(ids[-1], time)
    assert len(set(ids)) == len(ids)


def test_revoking_removes_at_once_and_is_idempotent():
    registry, told = Registry(100), []
    one, other = registry.grant(0), registry.grant(0)
    registry.put(one, "a/1", 1, 0)
    registry.put(one, "a/2", 2, 0)
    registry.put(other, "b/1", 3, 0)
    registry.watch("a", told.append, 0)
    registry.revoke(one, 1)
    registry.revoke(one, 1)
    assert told == [Change("a/1", None), Change("a/2", None)]
    assert registry.get("", 1) == {"b/1": 3}


def test_a_watch_is_a_list_and_then_each_change():
    registry, told = Registry(100), []
    lease = registry.grant(0)
    registry.put(lease, "a/1", 1, 0)
    number, snapshot = registry.watch("a", told.append, 0)
    assert snapshot == {"a/1": 1}
    registry.put(lease, "a/2", 2, 1)
    registry.put(lease, "ab/1", 9, 1)
    registry.put(lease, "a/1", 5, 2)
    registry.delete(lease, "a/2", 3)
    registry.expire(100)
    assert told == [("a/2", 2), ("a/1", 5), ("a/2", None), ("a/1", None)]
    registry.unwatch(number)
    registry.put(registry.grant(101), "a/3", 1, 101)
    assert len(told) == 4


def test_a_key_ends_with_the_lease_that_set_it_last():
    registry = Registry(100)
    old, new = registry.grant(0), registry.grant(50)
    registry.put(old, "a", 1, 0)
    registry.put(new, "a", 2, 50)
    assert registry.get("a", 120) == {"a": 2}
    assert registry.get("a", 150) == {}


def number(value):
    if not isinstance(value, int):
        raise ValueError(value)
    return value


def test_a_view_resyncs_by_difference():
    view = View(number)
    assert view.resync({"a": 1, "b": 2}) == [("a", 1), ("b", 2)]
    assert view.resync({"b": 3, "c": 4}) == [("a", None), ("b", 3), ("c", 4)]
    assert view.resync({"b": 3, "c": 4}) == []
    assert view.entries == {"b": 3, "c": 4}


def test_what_cannot_be_read_changes_nothing():
    view = View(number)
    view.resync({"a": 1})
    assert view.resync({"a": "broken", "b": "broken"}) == []
    assert view.apply(Change("a", "broken")) == []
    assert view.entries == {"a": 1}
    assert view.apply(Change("a", None)) == [("a", None)]
    assert view.apply(Change("a", None)) == [], "a removal that is told twice is one"


@pytest.mark.parametrize("seed", range(20))
def test_a_view_that_misses_changes_is_right_after_a_resync(seed):
    rng, registry = Random(seed), Registry(30)
    one, other = View(number), View(number)
    _, snapshot = registry.watch("a", one.apply, 0)
    one.resync(snapshot)
    registry.watch("a", lambda change: rng.random() < 0.5 and other.apply(change), 0)
    leases = []
    for time in range(200):
        step = rng.choice(["grant", "put", "put", "renew", "revoke", "delete"])
        try:
            if step == "grant" or not leases:
                leases.append(registry.grant(time))
            elif step == "put":
                registry.put(rng.choice(leases), f"a/{rng.randrange(6)}", rng.randrange(9), time)
            elif step == "delete":
                registry.delete(rng.choice(leases), f"a/{rng.randrange(6)}", time)
            else:
                getattr(registry, step)(rng.choice(leases), time)
        except LeaseError:
            pass
        there = registry.get("a", time)
        assert one.entries == there, "the changes add up to what there is"
    other.resync(there)
    assert other.entries == there


def test_an_instance_is_read_from_what_was_registered():
    instance = Instance("ns", "decode", "generate", 0x2A, "host:1")
    assert instance.key == "ns/decode/generate/2a"
    assert Instance.parse(instance.__dict__) == instance
    for broken in (None, [], {"id": 1}, {**instance.__dict__, "id": "1"}, {**instance.__dict__, "more": 1}):
        with pytest.raises(ValueError, match="not an instance"):
            Instance.parse(broken)


# Balancing


def choices(balancer, ids=(3, 5, 9), inflight=None, n=3000):
    return Counter(balancer.choose(ids, inflight or {}) for _ in range(n))


def test_balancers():
    assert choices(RoundRobin()) == {3: 1000, 5: 1000, 9: 1000}
    assert all(900 < n < 1100 for n in choices(RandomChoice(Random(0))).values())
    ties = choices(LeastLoaded(Random(0)), inflight={3: 2})
    assert set(ties) == {5, 9}
    assert min(ties.values()) > 1400, "ties go to chance"
    two = choices(PowerOfTwo(Random(0)), inflight={3: 2, 5: 1})
    assert 3 not in two
    assert two[9] / 3000 == pytest.approx(2 / 3, abs=0.05)
    assert choices(PowerOfTwo(Random(0)), (4,)) == {4: 3000}
    assert choices(DeviceWeighted(Random(0), {9: 4.0}), inflight={3: 1, 5: 1, 9: 3}) == {9: 3000}


def test_round_robin_goes_on_when_instances_come_and_go():
    balancer = RoundRobin()
    assert [balancer.choose(ids, {}) for ids in ([1, 2, 4], [1, 2, 4], [1, 4], [1, 4, 7], [1, 4, 7])] == [1, 2, 4, 7, 1]


# The request plane


def on_a_network(main, latency=MS):
    """Run `main(network, simulation)` in virtual time."""
    simulation = Simulation()
    return run(main(Network(lambda sender, receiver: latency), simulation), simulation)


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


async def consume(items, got=None):
    async for item in items:
        if got is not None:
            got.append(item)


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


# The network


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


async def collect(items):
    return [item async for item in items]


# Processes


async def registry_of(network, ttl=TTL):
    registry = Registry(ttl)
    service = DiscoveryServer(registry, Server(network.host("store")), LoopClock())
    return registry, service, await service.start()


async def generate(body):
    ids = list(body["token_ids"])
    for left in reversed(range(body["max_tokens"])):
        await asyncio.sleep(0.01)
        ids.append(next_token(ids))
        yield {"token": ids[-1], "finish_reason": None if left else "length"}


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


def test_a_process_lives_on_while_it_renews():
    async def main(network, simulation):
        registry, service, address = await registry_of(network)
        worker = await started(network, "worker", address, generate)
        await asyncio.sleep(1000)
        assert list(registry.get("ns", simulation.now)) == [f"ns/decode/generate/{worker.discovery.lease:x}"]
        assert worker.alive
        assert service.server.accepting

    on_a_network(main)


def test_a_partition_makes_a_process_stop_itself_before_the_registry_forgets_it():
    async def main(network, simulation):
        registry, _, address = await registry_of(network)
        worker = await started(network, "worker", address, generate)
        deadlines = []
        network.cut("worker", "store")
        await worker.stopped.wait()
        deadlines.append(registry.next_deadline())
        assert worker.state == "stopped"
        assert 0 <= deadlines[0] - simulation.now <= 3 * MS
        await asyncio.sleep(1)
        assert registry.get("", simulation.now) == {}

    on_a_network(main)


def test_a_blocked_loop_loses_its_lease():
    """CO-3: a call that does not yield starves the renewal. The healthy process disappears, and then stops itself."""
    simulation = Simulation()
    loop = VirtualLoop(simulation, "store")
    network, got = Network(), []

    async def store():
        got.append(await registry_of(network))

    async def worker(block):
        runtime = await started(network, "worker", got[0][2], generate)
        await asyncio.sleep(1)
        asyncio.get_running_loop().block(block)
        await asyncio.sleep(0.1)
        return runtime.state, list(got[0][0].get("", simulation.now))

    loop.run_until_complete(store())
    harmless, _ = loop.process("a").run_until_complete(worker(TTL // 4))
    assert harmless == "running"
    state, keys = loop.process("b").run_until_complete(worker(2 * TTL))
    assert state == "stopped"
    assert len(keys) == 1, "only the first worker is left"
    finish(loop)


def test_a_graceful_stop_vanishes_first_and_then_finishes_what_it_has():
    async def main(network, simulation):
        registry, _, address = await registry_of(network)
        worker = await started(network, "worker", address, generate)
        client = await client_of(network, address)
        task = asyncio.create_task(collect(client.call({"token_ids": [1], "max_tokens": 100})))
        await asyncio.sleep(0.1)
        stop = asyncio.create_task(worker.stop())
        await asyncio.sleep(0.01)
        assert (worker.state, registry.get("", simulation.now)) == ("draining", {})
        with pytest.raises(NoInstanceError, match="of 0 known"):
            await consume(client.call({"token_ids": [1], "max_tokens": 1}))
        with pytest.raises(RefusedError):
            await client.runtime.channels.ask(worker.address, next(iter(worker.server.handlers)), {})
        assert [item["token"] for item in await task] == alone([1], 100)
        await stop
        assert worker.state == "stopped"
        assert worker.stopped.is_set()

    on_a_network(main)


def test_draining_has_a_limit():
    async def main(network, simulation):
        _, _, address = await registry_of(network)
        worker = await started(network, "worker", address, generate)
        client = await client_of(network, address)
        task = asyncio.create_task(collect(client.call({"token_ids": [1], "max_tokens": 10_000})))
        await asyncio.sleep(0.1)
        begun = simulation.now
        await worker.stop(SECOND)
        assert simulation.now - begun == pytest.approx(SECOND, abs=10 * MS)
        with pytest.raises(ConnectionError):
            await task

    on_a_network(main)


def test_leaving_without_a_registry_ends_with_the_lease():
    async def main(network, simulation):
        registry, _, address = await registry_of(network)
        worker = await started(network, "worker", address, generate)
        network.cut("worker", "store")
        await worker.stop()
        assert worker.state == "stopped"
        assert simulation.now <= registry.next_deadline()

    on_a_network(main)


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


def test_a_client_without_a_lease_routes_nothing():
    async def main(network, simulation):
        _, _, address = await registry_of(network)
        await started(network, "worker", address, generate)
        client = await client_of(network, address)
        network.cut("client", "store")
        await asyncio.sleep(2 * TTL / SECOND)
        with pytest.raises(NoInstanceError):
            await consume(client.call({"token_ids": [1], "max_tokens": 1}))

    on_a_network(main)


# Migration


def test_progress_asks_for_the_rest():
    progress = Progress([1, 2], 3)
    assert progress.request() == {"token_ids": [1, 2], "max_tokens": 3}
    progress.take({"token": 7, "finish_reason": None})
    assert progress.request() == {"token_ids": [1, 2, 7], "max_tokens": 2}
    progress.take({"token": 8, "finish_reason": None})
    progress.take({"token": 9, "finish_reason": None})
    assert (progress.tokens, progress.finish_reason) == ([7, 8, 9], "length")
    with pytest.raises(ValueError, match="complete: 3 of 3"):
        progress.request()


def fragile(deaths, stop=None, error=ConnectionResetError):
    """A route whose n-th worker dies after deaths[n] tokens; later ones live. Returns it and what it was asked."""
    asked = []

    async def route(body):
        asked.append(body)
        die = deaths[len(asked) - 1] if len(asked) <= len(deaths) else None
        ids = list(body["token_ids"])
        for i in range(body["max_tokens"]):
            if i == die:
                raise error("dead")
            ids.append(next_token(ids))
            last = ids[-1] == stop or i + 1 == body["max_tokens"]
            yield {"token": ids[-1], "finish_reason": "length" if last else None}
            if last:
                break
        if die is not None:
            raise error("dead after the last token")

    return route, asked


@pytest.mark.parametrize("deaths", [[0], [1], [4], [5], [0, 0, 0], [1, 1, 1], [2, 0, 2], [9]])
def test_a_worker_that_dies_at_any_token_changes_nothing(deaths):
    async def main(network, simulation):
        route, asked = fragile(deaths)
        migration = Migration(route, LoopClock(), limit=3, pause=MS)
        assert await collect(migration.generate([3, 1], 5)) == alone([3, 1], 5)
        needed = 0 if deaths[0] >= 5 else len(deaths)
        assert (migration.migrations, len(asked)) == (needed, needed + 1)
        assert all(len(body["token_ids"]) + body["max_tokens"] == 7 for body in asked)

    on_a_network(main)


def test_a_stop_token_that_was_delivered_ends_the_answer():
    expected = alone([3, 1], 5)

    async def main(network, simulation):
        route, asked = fragile([2], stop=expected[1])
        assert await collect(Migration(route, LoopClock()).generate([3, 1], 5)) == expected[:2]
        assert len(asked) == 1, "it must not be begun again for what broke after the last token"

    on_a_network(main)


def test_migration_has_a_limit_and_gives_what_it_has():
    async def main(network, simulation):
        route, asked = fragile([1, 1, 1, 1])
        got = []
        with pytest.raises(ConnectionResetError):
            await consume(Migration(route, LoopClock(), limit=2).generate([3, 1], 9), got)
        assert got == alone([3, 1], 3)
        assert len(asked) == 3

    on_a_network(main)


def test_only_lost_workers_are_replaced():
    async def main(network, simulation):
        route, asked = fragile([1], error=RemoteError)
        with pytest.raises(RemoteError):
            await collect(Migration(route, LoopClock()).generate([3, 1], 9))
        assert len(asked) == 1

    on_a_network(main)


def test_an_answer_without_a_last_token_is_a_lost_worker():
    async def main(network, simulation):
        async def silent(body):
            if False:
                yield

        with pytest.raises(ConnectionError, match="before the last token"):
            await collect(Migration(silent, LoopClock(), limit=1).generate([3], 9))

    on_a_network(main)


@pytest.mark.parametrize("kill", range(0, 20, 3))
def test_a_worker_killed_at_a_token(kill):
    async def main(network, simulation):
        _, _, address = await registry_of(network)
        workers = [await started(network, f"worker-{i}", address, generate) for i in range(3)]
        client = await client_of(network, address)
        migration = Migration(client.call, LoopClock())
        got = []
        async for token in migration.generate([1, 2, 3], 20):
            if len(got) == kill:
                busy = next(worker for worker in workers if worker.discovery.lease in client.inflight)
                network.crash(busy.transport.name)
            got.append(token)
        assert got == alone([1, 2, 3], 20)
        assert migration.migrations == 1
        assert not client.inflight
        assert sum(len(worker.server.active) for worker in workers if worker is not busy) == 0

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


def test_leaving_a_migrating_stream_stops_the_worker():
    async def main(network, simulation):
        _, _, address = await registry_of(network)
        worker = await started(network, "worker", address, generate)
        client = await client_of(network, address)
        async with aclosing(Migration(client.call, LoopClock()).generate([1], 1000)) as tokens:
            async for _ in tokens:
                break
        await asyncio.sleep(0.01)
        assert not worker.server.active
        assert not client.inflight

    on_a_network(main)


# Random schedules


def test_random_schedules_of_faults():
    migrations = 0
    for seed in range(60):
        world = World(seed)
        world.run()
        assert world.violations == [], f"seed {seed}"
        migrations += world.migrations
    assert migrations > 50, "the schedules hardly harm anybody"


def test_a_schedule_repeats():
    def log(seed):
        world = World(seed)
        return world.run(), world.registry.renewed

    assert log(3) == log(3) != log(4)


def never_alone(monkeypatch):
    monkeypatch.setattr(Runtime, "alive", property(lambda self: self.state not in ("starting", "stopped")))


def no_self_cancel(monkeypatch):
    monkeypatch.setattr(Discovery, "keep_alive", lambda self: asyncio.sleep(1e6))


def believes_for_longer(monkeypatch):
    monkeypatch.setattr(Discovery, "alive", property(lambda self: self.clock.now < self.deadline + TTL))
    never_alone(monkeypatch)


def forgets_what_was_generated(monkeypatch):
    monkeypatch.setattr(
        Progress, "request", lambda self: {"token_ids": self.prompt, "max_tokens": self.max_tokens - len(self.tokens)}
    )


def expires_late(monkeypatch):
    expire = Registry.expire
    monkeypatch.setattr(Registry, "expire", lambda self, now: expire(self, now - SECOND))


def reuses_ids(monkeypatch):
    grant = Registry.grant

    def again(self, now):
        self._ids = count(len(self.leases) + 1)
        return grant(self, now)

    monkeypatch.setattr(Registry, "grant", again)


def misses_removals(monkeypatch):
    apply = View.apply
    monkeypatch.setattr(View, "apply", lambda self, change: [] if change.value is None else apply(self, change))
    monkeypatch.setattr(Client, "report_down", lambda self, instance_id: None)


MISTAKES = [
    never_alone,
    no_self_cancel,
    believes_for_longer,
    forgets_what_was_generated,
    expires_late,
    reuses_ids,
    misses_removals,
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_schedules_find_mistakes(monkeypatch, mistake):
    mistake(monkeypatch)
    for seed in range(60):
        world = World(seed)
        try:
            world.run()
        except Exception as error:
            world.violations.append(repr(error))
        if world.violations:
            return
    pytest.fail("no schedule shows it")


# The same code between real sockets, in real time


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
    registry = Registry(2 * SECOND)
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
