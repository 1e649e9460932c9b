"""The model registry: from what a user calls a model to a folder with its checkpoint. Knows names and the hub."""

import errno
import os
import re
from pathlib import Path

from course.errors import CourseError
from course.folder import is_complete
from course.paths import MODELS

EMBEDDED = {"tiny": MODELS / "tiny", "tiny-4bit": MODELS / "tiny-4bit"}
HUB = {"0.6b": "Qwen/Qwen3-0.6B", "1.7b": "Qwen/Qwen3-1.7B", "4b": "Qwen/Qwen3-4B", "8b": "Qwen/Qwen3-8B"}
FILES = ["*.safetensors", "*.json", "*.jinja", "merges.txt", "vocab.txt"]
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
ANSWER_SECONDS = 8.0

CHOICES = f"{', '.join([*EMBEDDED, *HUB])}, a folder, or a hub id such as {HUB['0.6b']}"


def locate(name: str) -> Path:
    """The folder of the checkpoint called `name`; downloads it when it is on the hub and not yet in the cache.

    An existing folder wins over a hub id of the same spelling. Raises CourseError, saying what to do instead.
    """
    short = name.lower()
    if short in EMBEDDED:
        return _checked(EMBEDDED[short], "the repository is incomplete: clone it again")
    if short in HUB:
        return _from_hub(HUB[short])
    folder = Path(name).expanduser()
    if name and folder.is_dir():
        return _checked(folder.resolve(), "give the folder that holds config.json and the safetensors files")
    if HUB_ID.fullmatch(name) and not name.startswith(("./", "../")):
        return _from_hub(name)
    raise CourseError(f"no model {name!r}: choose {CHOICES}")


def _checked(folder: Path, fix: str) -> Path:
    if not (folder / "config.json").is_file():
        raise CourseError(f"no config.json in {folder}: {fix}")
    return folder


def _from_hub(repository: str) -> Path:
    """A complete copy in the cache is used without asking the network; a download shows the hub's progress bar."""
    from huggingface_hub import model_info, snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        cached = Path(snapshot_download(repository, allow_patterns=FILES, local_files_only=True))
        if is_complete(cached):
            return cached
    except HFValidationError:
        raise CourseError(f"{repository!r} is no hub id: choose {CHOICES}") from None
    except LocalEntryNotFoundError:
        pass  # not in the cache yet
    try:
        model_info(repository, timeout=ANSWER_SECONDS)  # snapshot_download asks the same, but waits for ever
        folder = Path(snapshot_download(repository, allow_patterns=FILES, etag_timeout=ANSWER_SECONDS))
    except Exception as error:  # the hub client raises errors of its own, of its HTTP library and of the system
        raise CourseError(_explanation(repository, error)) from error
    if not is_complete(folder):
        raise CourseError(f"{repository} has no config.json with safetensors files: choose a repository in that format")
    return folder


def _explanation(repository: str, error: BaseException) -> str:
    """What a failed download means and what to do, in one line. The client may wrap the cause in 'not in the cache'."""
    from huggingface_hub import errors

    causes = [error]
    while (cause := causes[-1].__cause__) is not None:
        causes.append(cause)
    if any(isinstance(c, errors.GatedRepoError) for c in causes):
        return f"{repository} needs a permission: accept its terms at huggingface.co/{repository}, then `hf auth login`"
    if any(isinstance(c, errors.RepositoryNotFoundError) for c in causes):
        return f"the hub has no model {repository} (or it is private: `hf auth login`): choose {CHOICES}"
    if any(isinstance(c, errors.OfflineModeIsEnabled) for c in causes):
        return f"{repository} is not in the cache and HF_HUB_OFFLINE is set: unset it, or use --model tiny"
    if any(isinstance(c, OSError) and c.errno in (errno.ENOSPC, errno.EDQUOT) for c in causes):
        cache = os.environ.get("HF_HOME", "~/.cache/huggingface")
        return f"no disk space left for {repository} in {cache}: free some, or set HF_HOME to another disk"
    reason = (str(causes[-1]) or type(causes[-1]).__name__).splitlines()[0]
    return (
        f"cannot download {repository} ({reason}): check the network and run the same command again, or use --model "
        "tiny, which needs none"
    )
