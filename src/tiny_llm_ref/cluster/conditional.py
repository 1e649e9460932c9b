"""Whether a prompt is worth a second worker: the choice between one worker for all of a request, and two."""


def worth_remote(prompt: int, cached: int, tokens: int = 2048, share: float = 0.7) -> bool:
    """Whether a prompt should be computed by a prefill worker.

    prompt: tokens. cached: tokens of it that the best decode worker has. Local is better where fewer than `tokens`, and
    less than `share` of the prompt, are still to compute.
    """
    new = prompt - cached
    return not (new < tokens and new / prompt < share)
