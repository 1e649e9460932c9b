"""Which batches a first-come-first-served scheduler makes, in plain counts; a mistake makes other ones."""

from collections import deque


def prefills(adds: list[dict], rows: int, budget: int, mistake: str = "") -> list[list[list]]:
    """The prefill batches as long as rows are free.

    mistake: "alone" takes one prompt a batch, "overtake" skips those that do not fit, "refuse" takes no prompt over
    the budget, "each" does not count the budget down, "no budget" does not look at it.
    """
    waiting, batches = deque([add["uid"], len(add["ids"])] for add in adds), []
    while waiting and rows:
        batch, left = [], budget
        for uid, n in list(waiting):
            if not rows or (mistake == "alone" and batch):
                break
            if n > left and (batch or mistake == "refuse") and mistake != "no budget":
                if mistake == "overtake":
                    continue
                break
            left -= 0 if mistake == "each" else n
            rows -= 1
            waiting.remove([uid, n])
            batch.append([uid, 0, n, True])
        if not batch:
            break
        batches.append(batch)
    return batches


def timeline(adds: list[dict], rows: int, budget: int, mistake: str = "", most: int = 60) -> list[list[list]]:
    """The batches of the normal loop, one per step up to `most`. An add's "at" is the step of its arrival.

    mistake: "static" lets nobody join while others run, "starve" lets nobody decode while others wait, "cut" lets no
    more decode than the budget of a prefill has tokens.
    """
    line, running, batches = deque(), {}, []
    for step in range(most):
        line.extend(add for add in adds if add["at"] == step)
        batch, left = [], budget
        closed = mistake == "static" and running
        while line and rows > len(running) and not closed:
            n = len(line[0]["ids"])
            if batch and n > left:
                break
            add, left = line.popleft(), left - n
            running[add["uid"]] = [n, add["max_tokens"]]
            batch.append([add["uid"], 0, n, True])
        if not batch and not (mistake == "starve" and line):
            decodes = list(running.items())[: budget if mistake == "cut" else None]
            batch = [[uid, n, n + 1, True] for uid, (n, _) in decodes]
            for _, own in decodes:
                own[0] += 1
        for uid, *_ in batch:
            running[uid][1] -= 1
        running = {uid: own for uid, own in running.items() if own[1]}
        batches.append(batch)
    return batches
