"""Model names become folders; what cannot be had is one line. The hub is played by a small server on this machine."""

import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from course.checkpoint_json import Packing
from course.checkpoints import Quantization, Shape, make_checkpoint
from course.errors import CourseError
from course.folder import Contents, contents, is_complete
from course.memory import GIB, Format, available_memory, check_memory, default_dtype, total_memory
from course.models import ANSWER_SECONDS, EMBEDDED, HUB, locate

COMMIT = "a" * 40


def locate_elsewhere(
    name: str, home: Path, patience: float = ANSWER_SECONDS, **settings: str
) -> tuple[str, str, float]:
    """What `locate(name)` returns, its error, and how long it took, in a process with these settings."""
    program = f"""
from course import models
from course.errors import CourseError
models.ANSWER_SECONDS = {patience}
try:
    print(models.locate({name!r}))
except CourseError as error:
    print("error:", error)
"""
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"} | settings,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.strip(), done.stderr, time.monotonic() - start


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("checkpoint"), np.random.default_rng(0), Shape(), shards=2)


class FakeHub(http.server.BaseHTTPRequestHandler):
    """Answers every request with one status, or serves the files of `folder` as the only revision of any model."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        server = self.server
        server.requests.append(self.path)
        if server.status != 200:
            return self.send(server.status, b"", server.headers)
        files = [p for p in sorted(server.folder.iterdir()) if p.is_file()]
        if "/resolve/" in self.path:
            data = (server.folder / self.path.rpartition("/")[2]).read_bytes()
            name = {"ETag": f'"{len(data)}"', "X-Repo-Commit": COMMIT}
            return self.send(200, data, name)
        if "/tree/" in self.path:
            entries = [{"type": "file", "oid": "0", "size": p.stat().st_size, "path": p.name} for p in files]
            return self.send(200, json.dumps(entries).encode(), {"Content-Type": "application/json"})
        info = {"id": "org/model", "sha": COMMIT, "siblings": [{"rfilename": p.name} for p in files]}
        return self.send(200, json.dumps(info).encode(), {"Content-Type": "application/json"})

    do_GET = do_HEAD = answer

    def send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(checkpoint):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), FakeHub)
    server.status, server.headers, server.folder, server.requests = 200, {}, checkpoint, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield server
    server.shutdown()
    server.server_close()


def closed_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def test_folders_and_embedded_names(checkpoint, tmp_path, monkeypatch):
    assert locate(str(checkpoint)) == checkpoint
    monkeypatch.chdir(checkpoint.parent)
    assert locate(checkpoint.name) == checkpoint
    monkeypatch.setitem(EMBEDDED, "tiny", checkpoint)
    assert locate("tiny") == locate("TINY") == checkpoint
    monkeypatch.setitem(EMBEDDED, "tiny", tmp_path)
    with pytest.raises(CourseError, match="clone it again"):
        locate("tiny")


@pytest.mark.parametrize("name", ["", "no-such", "./no/such", "/no/such", "a/b/c", "../up/x", "Qwen/", "http://x/y"])
def test_names_that_mean_nothing_list_the_choices(name):
    with pytest.raises(CourseError, match=r"choose tiny, tiny-4bit, 0\.6b"):
        locate(name)


def test_download_then_cache_without_network(hub, tmp_path):
    found, progress, _ = locate_elsewhere("0.6b", tmp_path, HF_ENDPOINT=hub.url)
    assert is_complete(Path(found))
    assert any(HUB["0.6b"] in path for path in hub.requests)
    assert "%" in progress
    assert not any(path.endswith((".bin", ".md")) for path in hub.requests)
    again, progress, _ = locate_elsewhere("0.6b", tmp_path, HF_ENDPOINT=closed_port())
    assert (again, progress) == (found, "")
    assert locate_elsewhere(HUB["0.6b"], tmp_path, HF_HUB_OFFLINE="1")[0] == found


def test_interrupted_download_is_resumed(hub, tmp_path):
    found = Path(locate_elsewhere("org/model", tmp_path, HF_ENDPOINT=hub.url)[0])
    shard = sorted(found.glob("*.safetensors"))[0]
    shard.unlink()
    offline, _, _ = locate_elsewhere("org/model", tmp_path, HF_ENDPOINT=closed_port())
    assert offline.startswith("error: cannot download org/model")
    assert locate_elsewhere("org/model", tmp_path, HF_ENDPOINT=hub.url)[0] == str(found)
    assert shard.exists()


@pytest.mark.parametrize(
    ("status", "headers", "part"),
    [
        (401, {"X-Error-Code": "GatedRepo"}, "accept its terms"),
        (403, {"X-Error-Code": "GatedRepo"}, "accept its terms"),
        (404, {"X-Error-Code": "RepoNotFound"}, "the hub has no model org/model"),
        (401, {"X-Error-Code": "RepoNotFound"}, "the hub has no model org/model"),
        (500, {}, "cannot download org/model"),
    ],
)
def test_refusals_of_the_hub_are_one_line(hub, tmp_path, status, headers, part):
    hub.status, hub.headers = status, headers
    said, errors, seconds = locate_elsewhere("org/model", tmp_path, HF_ENDPOINT=hub.url)
    assert said.startswith("error: ")
    assert part in said
    assert "\n" not in said
    assert errors == ""
    assert seconds < 20


def test_no_network_is_one_line_and_quick(tmp_path):
    said, errors, seconds = locate_elsewhere("1.7b", tmp_path, HF_ENDPOINT=closed_port())
    assert said.startswith(f"error: cannot download {HUB['1.7b']} (")
    assert "--model tiny" in said
    assert (said.count("\n"), errors) == (0, "")
    assert seconds < 10
    assert "HF_HUB_OFFLINE" in locate_elsewhere("1.7b", tmp_path, HF_HUB_OFFLINE="1")[0]


def test_silent_server_is_given_up_on(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        said, _, seconds = locate_elsewhere("org/model", tmp_path, patience=1.0, HF_ENDPOINT=url)
    assert said.startswith("error: cannot download org/model")
    assert seconds < 20
    assert ANSWER_SECONDS <= 10


def test_repository_without_safetensors_is_one_line(hub, tmp_path):
    hub.folder = tmp_path / "served"
    hub.folder.mkdir()
    (hub.folder / "config.json").write_text("{}")
    said, _, _ = locate_elsewhere("org/model", tmp_path / "home", HF_ENDPOINT=hub.url)
    assert said == "error: org/model has no config.json with safetensors files: choose a repository in that format"


@pytest.mark.parametrize("shards", [1, 3])
def test_contents_counts_parameters_and_names_the_format(tmp_path, shards):
    shape = Shape(tied=False)
    make_checkpoint(tmp_path / "plain", np.random.default_rng(0), shape, dtype="bfloat16", shards=shards)
    matrices = 2 * 97 * 48 + 2 * (48 * 64 * 2 + 48 * 32 * 2 + 3 * 48 * 80)
    norms = 48 + 2 * (2 * 48 + 2 * 16)
    assert contents(tmp_path / "plain") == Contents(matrices + norms, "bfloat16")


@pytest.mark.parametrize("bits", [4, 8])
def test_contents_of_a_packed_checkpoint_are_its_unpacked_parameters(tmp_path, bits):
    shape = Shape(hidden=64, intermediate=128, heads=4, kv_heads=2, head_dim=32)
    make_checkpoint(tmp_path / "plain", np.random.default_rng(0), shape, dtype="float16")
    packing = Quantization(32, bits)
    make_checkpoint(tmp_path / "packed", np.random.default_rng(0), shape, dtype="float16", quantization=packing)
    assert contents(tmp_path / "packed") == contents(tmp_path / "plain")


@pytest.mark.parametrize("length", [0, 7, 20, -10])
def test_contents_of_a_cut_file_names_it(checkpoint, tmp_path, length):
    folder = shutil.copytree(checkpoint, tmp_path / "cut")
    file = sorted(folder.glob("*.safetensors"))[1]
    os.truncate(file, length if length >= 0 else file.stat().st_size + length)
    with pytest.raises(CourseError, match=f"{file.name} is damaged or was cut off"):
        contents(folder)
    file.unlink()
    with pytest.raises(CourseError, match=f"{file.name} is missing"):
        contents(folder)


def test_default_dtype_follows_system_and_memory():
    found = Contents(parameters=GIB, dtype="bfloat16")
    assert default_dtype(found, system="darwin", memory=100 * GIB) == "bfloat16"
    assert default_dtype(found, system="linux", memory=7 * GIB) == "float32"
    assert default_dtype(found, system="linux", memory=6 * GIB) == "bfloat16"
    assert default_dtype(Contents(GIB, "float16"), system="darwin", memory=GIB) == "float16"
    assert default_dtype(found, packing=Packing(4, 64), system="linux", memory=GIB) == "float32"


def test_too_little_memory_names_need_limit_and_fix():
    found = Contents(parameters=2 * GIB, dtype="bfloat16")
    check_memory(Path("model"), found, Format("float32"), available=8 * GIB)
    with pytest.raises(CourseError, match=r"model needs 8\.0 GiB in float32.* 7\.9 GiB .*--dtype bfloat16"):
        check_memory(Path("model"), found, Format("float32"), available=int(7.9 * GIB))
    with pytest.raises(CourseError, match=r"model needs 4\.0 GiB in bfloat16.*choose a smaller model, or --ops flash"):
        check_memory(Path("model"), found, Format("bfloat16"), available=GIB)


def test_packed_weights_need_a_seventh_of_float32():
    found = Contents(parameters=2 * GIB, dtype="bfloat16")
    packed = Format("float32", Packing(bits=4, group_size=64), "bfloat16")
    assert packed.bytes_per_weight == 0.5 + 4 / 64
    check_memory(Path("model"), found, packed, available=int(1.125 * GIB))
    with pytest.raises(CourseError, match=r"needs 1\.1 GiB in 4 bits with float32 activations, .* a smaller model$"):
        check_memory(Path("model"), found, packed, available=int(1.12 * GIB))
    assert Format("float32", Packing(8, 32), "float32").bytes_per_weight == 1.25


def test_memory_of_this_machine_is_plausible():
    assert 2**28 < available_memory() <= total_memory() < 2**46
