"""What code of a submission may try against its grader: one function each, bounded so that it is harmless if it works.

The test writes this file into a package under test; `x` is what the test gives along."""

import atexit
import ctypes
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

KEY = 0x544C4D  # of shared memory
ADD_KEY, KEYCTL = 248, 250  # system calls of x86_64
SECONDS = 30.0  # that anything left behind would live


def echo(x):
    return x


calls = 0


def counts(x):
    global calls
    calls += 1
    return calls


def prints(x):
    print("hello")
    print("world", file=sys.stderr)
    return x


def exits(x):
    os._exit(0)


def exits_at_exit(x):
    atexit.register(os._exit, 0)
    raise SystemExit(0)


def kills_parent(x):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(0.3)
    return "went on"


def stops_parent(x):
    os.kill(os.getppid(), signal.SIGSTOP)
    return "went on"


def kills_group(x):
    os.killpg(0, signal.SIGKILL)


def stops_itself(x):
    os.kill(os.getpid(), signal.SIGSTOP)


def ends_by_signal(x):
    """x: its number."""
    os.kill(os.getpid(), x)


def stops_all_others(x):
    """x: s. Daemons stop again and again whatever they may: also the process that is to kill them."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.fork()
            os.closerange(0, 10)
            end = time.monotonic() + x
            while time.monotonic() < end:
                with suppress(OSError):
                    for _ in range(50):
                        os.kill(-1, signal.SIGSTOP)
        os._exit(0)
    time.sleep(0.2)
    return "returned"


def loops(x):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass


def loops_in_c(x):
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    return sum(itertools.repeat(0))


def loops_in_libc(x):
    libc = ctypes.PyDLL(None)  # holds the interpreter's lock
    libc.sleep(int(SECONDS))


def leaves_thread(x):
    threading.Thread(target=time.sleep, args=(SECONDS,)).start()
    return 1


def leaves_daemon(x):
    """x: an argument by which the test finds the process."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", x])
        os._exit(0)
    time.sleep(0.2)
    return 1


def forks(x):
    """x: how many."""
    for _ in range(x):
        if os.fork() == 0:
            time.sleep(SECONDS)
            os._exit(0)
    time.sleep(1.0)
    return x


def takes_memory(x):
    """x: MB, in one process."""
    return len(b"\1" * (x << 20))


def takes_memory_in_many(x):
    """x: [processes, MB in each]."""
    for _ in range(x[0]):
        if os.fork() == 0:
            kept = b"\1" * (x[1] << 20)
            time.sleep(SECONDS)
            os._exit(kept[0])
    time.sleep(4.0)
    return 1


def fills_disk(x):
    """x: how many files of 4 MB."""
    for i in range(x):
        Path(os.environ["TMPDIR"], f"{i}").write_bytes(bytes(4 << 20))
    time.sleep(0.5)
    return x


def writes_large_file(x):
    """x: MB."""
    with open(Path(os.environ["TMPDIR"], "large"), "wb") as file:
        for _ in range(x):
            file.write(bytes(1 << 20))
    return x


def writes_into_cache(x):
    """x: MB, in files of 4 MB."""
    for i in range(x // 4):
        Path(os.environ["XDG_CACHE_HOME"], f"{i}").write_bytes(bytes(4 << 20))
    time.sleep(0.5)
    return x


def writes_nameless_files(x):
    """x: MB, in open files of 8 MB that have no name."""
    kept = []
    for _ in range(x // 8):
        kept.append(tempfile.TemporaryFile())  # noqa: SIM115
        kept[-1].write(bytes(8 << 20))
        kept[-1].flush()
    time.sleep(0.5)
    return x


def writes_memory_files(x):
    """x: MB, in files of 8 MB that lie in memory."""
    for i in range(x // 8):
        os.write(os.memfd_create(f"{i}"), bytes(8 << 20))
    time.sleep(0.5)
    return x


def takes_shared_memory(x):
    """x: how many segments of 8 MB. Their number."""
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    for i in range(x):
        key = libc.shmget(KEY + i, 8 << 20, 0o1600)
        if key < 0:
            return i
        place = libc.shmat(key, None, 0)
        ctypes.memset(place, 1, 8 << 20)
        libc.shmdt(ctypes.c_void_p(place))
    time.sleep(0.5)
    return x


def finds_shared_memory(x):
    """x: how many to look for. How many are there."""
    return sum(ctypes.CDLL(None).shmget(KEY + i, 0, 0) >= 0 for i in range(x))


def writes_empty_files(x):
    """x: how many."""
    for i in range(x):
        os.close(os.open(f"{os.environ['TMPDIR']}/{i}", os.O_CREAT | os.O_WRONLY, 0o600))
    time.sleep(0.5)
    return x


def nests_folders(x):
    """x: [levels, s to stay]."""
    os.chdir(os.environ["TMPDIR"])
    for _ in range(x[0]):
        os.mkdir("d")
        os.chdir("d")
    Path("file").write_text("deep")
    time.sleep(x[1])
    return x[0]


def prints_much(x):
    """x: MB."""
    text = "passed\n" * 150_000
    for _ in range(x):
        sys.stdout.write(text)
    return x


def returns_much(x):
    import numpy as np

    return np.zeros(x << 17)


def leaves_file(x):
    Path(os.environ["HOME"], "left").write_text("here")
    Path(os.environ["HOME"], "link").symlink_to(x)
    Path(os.environ["TMPDIR"]).rmdir()
    Path(os.environ["TMPDIR"]).symlink_to(x)
    return 1


def leaves_key(x):
    """Whether it could leave a key of the kernel's with its user."""
    return ctypes.CDLL(None).syscall(ADD_KEY, b"user", b"note", b"hello", ctypes.c_size_t(5), -4) > 0


def finds_key(x):
    libc = ctypes.CDLL(None)
    libc.syscall(KEYCTL, 0, -4, 1)
    return libc.syscall(KEYCTL, 10, -4, b"user", b"note", 0) > 0


def writes_shared(x):
    """x: paths of new files; those that it could make."""
    for path in x:
        with suppress(OSError):
            Path(path).write_text("left")
    return [path for path in x if os.path.exists(path)]


def lists_home(x):
    return [sorted(os.listdir(os.environ[name])) for name in ("HOME", "TMPDIR")]


def descriptors():
    return [int(name) for name in os.listdir("/proc/self/fd")] if Path("/proc/self/fd").exists() else list(range(3, 20))


def forges_an_answer(x):
    """Writes an answer of its own wherever it can, then goes on."""
    answer = b"v" + (4).to_bytes(4, "little") + b"true"
    for fd in descriptors():
        if fd > 2:
            with suppress(OSError):
                os.write(fd, len(answer).to_bytes(8, "little") + answer)
    return 1


def floods_answers(x):
    def flood():
        while True:
            for fd in descriptors():
                if fd > 2:
                    with suppress(OSError):
                        os.write(fd, b"\1" * 997)

    threading.Thread(target=flood, daemon=True).start()
    time.sleep(0.3)
    return 1


def patches_all(x):
    import mlx.core as mx
    import numpy as np

    numpy_all = np.allclose
    np.allclose = np.array_equal = lambda *a, **k: True
    mx.allclose = mx.array_equal = lambda *a, **k: mx.array(True)
    json.dumps = lambda value, **k: '["list", []]'
    for name in list(sys.modules):
        if name.startswith(("course.compare", "course.judge", "tiny_llm")):
            sys.modules[name] = None
    return bool(numpy_all)


def closes_everything(x):
    os.closerange(3, 100)
    time.sleep(SECONDS)


def raises_then_answers_late(x):
    """Fails; a thread answers for the next call."""
    answer = b"v" + (4).to_bytes(4, "little") + b"true"

    def late():
        time.sleep(0.2)
        for fd in descriptors():
            if fd > 2:
                with suppress(OSError):
                    os.write(fd, len(answer).to_bytes(8, "little") + answer)

    threading.Thread(target=late).start()
    raise ValueError("no")


def reads(x):
    """x: paths; those of them that can be opened."""
    found = []
    for path in x:
        with suppress(OSError):
            found.append([path, sorted(os.listdir(path))[:5] if os.path.isdir(path) else Path(path).read_bytes()[:20]])
    return found


def writes(x):
    """x: paths of files and folders; those of them that it could change."""
    changed = []
    for path in x:
        place = os.path.join(path, "mine") if os.path.isdir(path) else path
        try:
            with open(place, "ab") as file:
                file.write(b"\nchanged\n")
            changed.append(path)
        except OSError:
            pass
        try:
            os.rename(path, path + ".moved")
            changed.append(path)
        except OSError:
            pass
    return changed


def looks_into_parent(x):
    """Whatever of its parent's memory it can get at."""
    pid, found = os.getppid(), []
    for name in ("mem", "environ", "maps", "fd/3", "root/etc", "cwd"):
        try:
            os.stat(f"/proc/{pid}/{name}/" if name == "cwd" else f"/proc/{pid}/{name}")
            if name in ("mem", "environ", "maps"):
                Path(f"/proc/{pid}/{name}").read_bytes()
            found.append(name)
        except OSError as error:
            if name == "mem" and error.errno == 5:
                found.append("mem")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, pid, None, None) == 0:  # PTRACE_ATTACH
        found.append("ptrace")
    return found


def connects(x):
    """x: a port."""
    with socket.socket() as client:
        client.settimeout(2.0)
        try:
            client.connect(("127.0.0.1", x))
        except OSError as error:
            return type(error).__name__
    return "connected"


def serves_itself(x):
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())
    return True


def imports_reference(x):
    import importlib

    return importlib.import_module("tiny_llm_ref").__file__


def sees_processes(x):
    """Process ids that it can see."""
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def starts_python(x):
    return subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True, check=True).stdout


def environment(x):
    return dict(os.environ)


def hunts(x):
    """x: {"mark", "files", "backwards"}. Where the secret is found: in files, its environment, or a grader's process,
    which is one with `mark` in its command line."""
    secret = x["backwards"][::-1].encode()
    found = [path for path in x["files"] if secret in _content(path)]
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        command = _content(f"/proc/{name}/cmdline")
        if x["mark"].encode() in command:
            found += [f"a grader's {part}" for part in _readable(f"/proc/{name}", secret)]
        if secret in command + _content(f"/proc/{name}/environ"):
            found.append("a process")
    return found + [name for name, value in os.environ.items() if secret.decode() in value]


def _content(path):
    with suppress(OSError):
        return Path(path).read_bytes()
    return b""


def _readable(process, secret):
    """What can be read of a process although it should not: any of it would do."""
    for name in ("environ", "maps", "smaps", "auxv", "stack"):
        if _content(f"{process}/{name}"):
            yield name
    with suppress(OSError):
        os.close(os.open(f"{process}/mem", os.O_RDONLY))
        yield "memory"
    with suppress(OSError):
        os.listdir(f"{process}/fd")
        yield "descriptors"
