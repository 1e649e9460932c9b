"""Decode workers fall silent: clients lose patience, and nobody takes the prompts that were computed for them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from course.sim.gallery.runs import BLOCK, SECOND, Cluster, requests
from course.sim.gallery.scenario import Outcome, Scenario

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.connector import Release
    from tiny_llm_ref.cluster.disaggregation import TwoStage
    from tiny_llm_ref.cluster.journey import Journey
    from tiny_llm_ref.cluster.simulator import Simulator

KV_BLOCKS, RATE, COUNT, PATIENCE, LEASE = 1_500, 4.0, 640, 5 * SECOND, 20 * SECOND
FAULTS, EACH, END = (20 * SECOND, 60 * SECOND, 100 * SECOND), SECOND // 2, 160 * SECOND


def two_stage(cluster: Cluster, repaired: bool) -> type["TwoStage"]:
    """How requests are routed."""
    routing = cluster("disaggregation").TwoStage

    class Forgetful(routing):
        """Thinks that a client who leaves when the prompt is computed leaves nothing behind."""

        def give_back(self, journey: "Journey") -> list["Release"]:
            """Tell the prefill worker that nobody will take the prompt."""
            return super().give_back(journey) if journey.prefilling else []

    return routing if repaired else Forgetful


def simulator_of(cluster: Cluster, repaired: bool) -> "Simulator":
    """One prefill worker and two decode workers, of which one falls silent every 40 s, until its lease has ended."""
    deployment, cost = cluster("deployment"), cluster("cost").Mocker()
    pool = deployment.Pool(cost, block_size=BLOCK, kv_blocks=KV_BLOCKS)
    faults = [
        deployment.Fault(time, "partition", f"decode-{number}", LEASE + SECOND) for number, time in enumerate(FAULTS)
    ]
    load = requests(cluster, RATE, COUNT, (1_000, 0.3), (50, 0.3))
    control = deployment.Control(lease=LEASE)
    plan = deployment.Deployment(replace(pool, workers=2), prefill=pool, control=control, faults=faults)
    simulator = cluster("simulator").Simulator(plan, load)
    (stage,) = simulator.front.stages
    simulator.front.stages = [two_stage(cluster, repaired)(stage.prefill, stage.decode)]
    return simulator


def play(cluster: Cluster, repaired: bool) -> Outcome:
    """Four prompts a second. Each client waits 5 s for an answer, and then leaves."""
    simulator, phase = simulator_of(cluster, repaired), cluster("kernel").Phase.ADMISSION
    simulation, front = simulator.simulation, simulator.front
    held: list[tuple[float, int]] = []

    def leave(uid: int) -> None:
        if (job := front.jobs.get(uid)) and job.record.output_length <= 1:
            front.carry(front.stage(job).cancel(uid, simulation.now))
            front.end(job, "abort")

    def look(time: int) -> None:
        memory = simulator.fleet.workers["prefill-0"].memory
        held.append((time / SECOND, memory.pages - memory.available))

    for uid, arrival in enumerate(front.workload.initial()):
        simulation.at(int(arrival.time_ns) + PATIENCE, phase, leave, uid)
    for time in range(EACH, END, EACH):
        simulation.at(time, cluster("kernel").Phase.TELEMETRY, look, time)
    run = simulator.simulate()
    reasons = [record.finish_reason for record in run.records.values()]
    numbers = {
        "answers": reasons.count("stop"),
        "clients that left": reasons.count("abort"),
        "KV blocks held at most": max(count for _, count in held),
        "KV blocks held at the end": held[-1][1],
    }
    times, counts = zip(*held, strict=True)
    return Outcome(numbers, {"held": (times, counts)})


def check(broken: Mapping[str, float], repaired: Mapping[str, float]) -> None:
    """Nothing is kept for those who left."""
    assert repaired["KV blocks held at the end"] == 0
    assert broken["KV blocks held at the end"] > 1_000
    assert repaired["answers"] > broken["answers"]


SCENARIO = Scenario(
    title="Memory leaks away when clients leave",
    complaint="vLLM 50425: clients leave before the decode worker sees them, and their KV stays at the prefill worker",
    broken="a client who leaves after the prefill is forgotten",
    repaired="the prefill worker is told that nobody will come",
    play=play,
    check=check,
    y="KV blocks held",
)
