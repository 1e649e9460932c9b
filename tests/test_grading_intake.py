"""Of a submission only the learner's files are taken, however it is packed; what is odd is said."""

import gzip
import io
import lzma
import os
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import SmallCourse

from course.curriculum import Curriculum, load
from course.grading import archive, intake, source
from course.grading.intake import Intake, collect
from course.grading.layout import find_layouts
from course.grading.source import Unreadable, revision
from course.grading.text import clean, one_line
from course.grading.tree import about, plant

BASICS, MORE = "model/basics.py", "model/more.py"
WORK = {BASICS: b"first = 1\n", MORE: b"third = 3\n"}


@pytest.fixture
def curriculum(small_course: SmallCourse) -> Curriculum:
    return load(small_course.root / "curriculum")


def folder(root: Path, files: dict[str, bytes], below: str = "") -> Path:
    for name, content in files.items():
        path = root / below / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return path


def tarred(path: Path, files: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as file:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return path


def below(prefix: str) -> dict[str, bytes]:
    return {f"{prefix}{name}": content for name, content in WORK.items()}


LAYOUTS = ("src/tiny_llm/", "tiny_llm/", "", "alice-main/src/tiny_llm/", "a/b/tiny_llm/", "homework/")


@pytest.mark.parametrize("prefix", LAYOUTS)
@pytest.mark.parametrize("pack", ["folder", "zip", "tar", "tar.gz"])
def test_every_usual_layout_is_understood(tmp_path: Path, curriculum: Curriculum, prefix: str, pack: str):
    files = below(prefix)
    submission = {
        "folder": lambda: folder(tmp_path / "work", files),
        "zip": lambda: zipped(tmp_path / "work.zip", files),
        "tar": lambda: tarred(tmp_path / "work.tar", files, "w"),
        "tar.gz": lambda: tarred(tmp_path / "work.tar.gz", files),
    }[pack]()
    assert collect(submission, curriculum).files == WORK


KERNEL = "extensions/src/qmv.cpp"


@pytest.mark.parametrize(
    ("package", "extension"), [("", ""), ("tiny_llm/", ""), ("src/tiny_llm/", "src/"), (None, "src/")]
)
def test_the_extension_is_found_beside_or_alone(package: str | None, extension: str):
    places = [f"{package}{name}" for name in WORK if package is not None] + [f"{extension}{KERNEL}"]
    layout = find_layouts(places, [*WORK, KERNEL])[0]
    assert {layout.place(name) for name in [*WORK, KERNEL]} >= set(places)


def test_an_archive_alone_in_a_folder_is_opened(tmp_path: Path, curriculum: Curriculum):
    (tmp_path / "alice").mkdir()
    zipped(tmp_path / "alice" / "work.zip", below("tiny_llm/"))
    assert collect(tmp_path / "alice", curriculum).files == WORK


def test_the_checkout_counts_and_not_the_reference_or_a_copy_beside_it(tmp_path: Path, curriculum: Curriculum):
    folder(tmp_path, {BASICS: b"wrong", MORE: b"wrong"}, "src/tiny_llm_ref")
    folder(tmp_path, {BASICS: b"old", MORE: b"old"}, "backup/2026/tiny_llm")
    folder(tmp_path, {BASICS: b"saved"}, ".course/saved/tiny_llm")
    folder(tmp_path, WORK, "src/tiny_llm")
    taken = collect(tmp_path, curriculum)
    assert taken.files == WORK
    assert taken.notes == ("taken from src/tiny_llm/; not looked at: backup/2026/tiny_llm/",)


def test_the_reference_alone_is_no_submission(tmp_path: Path, curriculum: Curriculum):
    folder(tmp_path, WORK, "src/tiny_llm_ref")
    with pytest.raises(Unreadable, match="none of the course's task files is in it"):
        collect(tmp_path, curriculum)


def test_missing_files_are_named(tmp_path: Path, curriculum: Curriculum):
    taken = collect(folder(tmp_path, {BASICS: b""}, "tiny_llm"), curriculum)
    assert taken.files == {BASICS: b""}
    assert taken.missing == (MORE,)
    note = "not in the submission, so the starter's: `model/more.py`"
    assert about(taken, WORK, curriculum, curriculum.days) == [note]
    assert about(taken, WORK, curriculum, curriculum.days[:1]) == []


def test_code_beside_the_task_files_is_named_and_not_taken(tmp_path: Path, curriculum: Curriculum):
    own = {"model/helpers.py": b"x", "__init__.py": b"import os", "model/__init__.py": b"", "notes.txt": b"x"}
    taken = collect(folder(tmp_path, WORK | own, "src/tiny_llm"), curriculum)
    assert taken.files == WORK
    starter = WORK | {"__init__.py": b"", "model/__init__.py": b""}
    assert about(taken, starter, curriculum, curriculum.days) == [
        "given code is graded as the course gives it, not as changed here: `__init__.py`",
        "not graded, as the course knows no such files: `model/helpers.py`: "
        "put the code into the course's own files, or ask your instructor",
    ]
    allowed = collect(tmp_path, curriculum, ["model/helpers.py"])
    assert allowed.files == {**WORK, "model/helpers.py": b"x"}


SETTINGS = ("conftest.py", "pytest.ini", "pyproject.toml", "sitecustomize.py", "evil.pth", "setup.cfg", "tox.ini")


def test_settings_are_never_taken_but_named(tmp_path: Path, curriculum: Curriculum):
    evil = dict.fromkeys(SETTINGS, b"raise SystemExit")
    taken = collect(folder(tmp_path, WORK | evil, "src/tiny_llm"), curriculum, [])
    assert taken.files == WORK
    assert "settings of a submission are not used: src/tiny_llm/conftest.py" in taken.notes[0]
    assert "and 2 more" in taken.notes[0]
    assert not taken.others


def test_links_are_not_followed(tmp_path: Path, curriculum: Curriculum):
    secret = tmp_path / "secret"
    secret.write_text("the seeds")
    work = folder(tmp_path / "work", {MORE: b""}, "src/tiny_llm")
    (work / "src/tiny_llm" / BASICS).symlink_to(secret)
    (work / "src/tiny_llm/scale").symlink_to("/etc")
    taken = collect(work, curriculum)
    assert taken.files == {MORE: b""}
    assert taken.notes[0] == (
        "symbolic links are not followed; the starter's files are used: "
        "src/tiny_llm/model/basics.py, src/tiny_llm/scale"
    )


def test_a_link_in_place_of_the_package_is_told(tmp_path: Path, curriculum: Curriculum):
    folder(tmp_path / "other", WORK)
    (tmp_path / "work/src").mkdir(parents=True)
    (tmp_path / "work/src/tiny_llm").symlink_to(tmp_path / "other")
    with pytest.raises(Unreadable, match=r"symbolic links are not followed: src/tiny_llm\)"):
        collect(tmp_path / "work", curriculum)


def test_links_in_archives_are_not_followed(tmp_path: Path, curriculum: Curriculum):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        link = zipfile.ZipInfo(f"tiny_llm/{BASICS}")
        link.external_attr = 0o120777 << 16
        file.writestr(link, "/etc/passwd")
        file.writestr(f"tiny_llm/{MORE}", b"")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as file:
        for kind, name in ((tarfile.SYMTYPE, BASICS), (tarfile.LNKTYPE, "model/hard.py")):
            member = tarfile.TarInfo(f"tiny_llm/{name}")
            member.type, member.linkname = kind, "/etc/passwd"
            file.addfile(member)
        file.addfile(tarfile.TarInfo(f"tiny_llm/{MORE}"))
    for name in ("a.zip", "a.tar.gz"):
        taken = collect(tmp_path / name, curriculum)
        assert taken.files == {MORE: b""}
        assert "symbolic links are not followed" in taken.notes[0]


def test_pipes_devices_and_unreadable_files_are_passed_over(tmp_path: Path, curriculum: Curriculum):
    folder(tmp_path, {MORE: b""}, "tiny_llm")
    os.mkfifo(tmp_path / "tiny_llm" / BASICS)
    taken = collect(tmp_path, curriculum)
    assert taken.files == {MORE: b""}
    assert "tiny_llm/model/basics.py is a pipe, a socket or a device: the starter's file is used" in taken.notes


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (b"#" * (2 << 20), "is larger than 1 MiB: the starter's file is used"),
        ("x = 'ü'".encode("latin-1"), "is not UTF-8 text at byte 5"),
        ("x = 1".encode("utf-16"), "is UTF-16 text: save it as UTF-8"),
        (b"x = 1\0", "holds bytes of value 0"),
    ],
)
def test_odd_files_are_noted(tmp_path: Path, curriculum: Curriculum, content: bytes, note: str):
    taken = collect(folder(tmp_path, {BASICS: content, MORE: b""}, "tiny_llm"), curriculum)
    assert any(text.startswith(f"tiny_llm/model/basics.py {note}") for text in taken.notes), taken.notes


def test_names_from_strangers_steer_no_terminal(tmp_path: Path, curriculum: Curriculum):
    names = ("model/\x1b[2Jevil.py", "model/a\nb.py", "model/\u202egpj.py", os.fsdecode(b"model/\xff.py"))
    taken = collect(folder(tmp_path, WORK | dict.fromkeys(names, b""), "tiny_llm"), curriculum)
    (note,) = about(taken, WORK, curriculum, curriculum.days)
    assert note.isprintable()
    note.encode()
    assert clean("\x1b]0;title\x07a\x1b[31mb\x9b\ud800") == "ab\ufffd\ufffd"
    assert one_line("a\nb\tc") == "a b c"
    assert clean("x" * 50, 10) == "xxxxxxxxxx ... (cut)"


ESCAPES = ("../evil.py", "/tmp/evil.py", "a/../../evil.py", "..\\evil.py", "C:\\evil.py", "a\0b.py")


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_names_that_lead_out_of_an_archive_are_no_files(
    tmp_path: Path, curriculum: Curriculum, pack: Callable[[Path, dict[str, bytes]], Path]
):
    evil = {f"{name}{MORE}" if name.endswith("/") else name: b"" for name in ESCAPES if "\0" not in name}
    evil |= {f"../tiny_llm/{BASICS}": b"evil", f"/tiny_llm/{BASICS}": b"evil"}
    taken = collect(pack(tmp_path / "archive", below("tiny_llm/") | evil), curriculum)
    assert taken.files == WORK
    assert not list(tmp_path.rglob("evil.py"))


def test_zip_bombs_cost_what_is_read(tmp_path: Path, curriculum: Curriculum):
    bomb = zipped(tmp_path / "bomb.zip", below("tiny_llm/") | {f"tiny_llm/{BASICS}": bytes(64 << 20)})
    taken = collect(bomb, curriculum)
    assert list(taken.files) == [MORE]
    assert "is larger than 1 MiB" in taken.notes[0]


def test_tar_bombs_end_at_a_limit(tmp_path: Path, curriculum: Curriculum, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archive, "MOST_BYTES", 8 << 20)
    bomb = tarred(tmp_path / "bomb.tar.gz", {"zeros.bin": bytes(16 << 20)} | below("tiny_llm/"))
    with pytest.raises(Unreadable, match="holds more than 8 MiB"):
        collect(bomb, curriculum)


PACKED = [(zipfile.ZIP_BZIP2, "bzip2"), (zipfile.ZIP_LZMA, "lzma")]


@pytest.mark.parametrize(("method", "kind"), PACKED)
def test_zip_members_whose_unpacking_has_no_bound_are_not_unpacked(
    tmp_path: Path, curriculum: Curriculum, method: int, kind: str
):
    with zipfile.ZipFile(tmp_path / "work.zip", "w") as file:
        file.writestr(f"tiny_llm/{BASICS}", bytes(8 << 20), method)
        file.writestr(f"tiny_llm/{MORE}", b"")
    tracemalloc.start()
    taken = collect(tmp_path / "work.zip", curriculum)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken.files == {MORE: b""}
    assert f"cannot be read (it is packed with {kind}: zip it with ordinary compression, deflate)" in taken.notes[0]
    assert peak < 4 << 20


def test_encrypted_zip_members_are_noted(tmp_path: Path, curriculum: Curriculum):
    path = zipped(tmp_path / "work.zip", below("tiny_llm/"))
    data = bytearray(path.read_bytes())
    for at in (data.index(b"PK\x03\x04") + 6, data.index(b"PK\x01\x02") + 8):
        data[at] |= 1
    path.write_bytes(data)
    taken = collect(path, curriculum)
    assert list(taken.files) == [MORE]
    assert "cannot be read (it is encrypted: zip it without a password)" in taken.notes[0]


@pytest.mark.parametrize(("mode", "kind"), [("w:bz2", "bzip2"), ("w:xz", "xz")])
def test_tar_files_other_than_gzip_are_refused_with_the_fix(
    tmp_path: Path, curriculum: Curriculum, mode: str, kind: str
):
    path = tarred(tmp_path / "work.tar.gz", below("tiny_llm/"), mode)
    with pytest.raises(Unreadable, match=f"is packed with {kind}, .* submit a folder, .zip or .tar.gz"):
        collect(path, curriculum)


def test_much_code_beside_the_task_files_is_not_kept(
    tmp_path: Path, curriculum: Curriculum, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(intake, "MOST_OTHERS", 2 << 20)
    own = {f"tiny_llm/own{n}.py": bytes(1 << 20) for n in range(5)}
    taken = collect(zipped(tmp_path / "work.zip", below("tiny_llm/") | own), curriculum)
    assert [len(content) >> 20 for content in taken.others.values()] == [1, 1, 0, 0, 0]


def header(kind: bytes, content: bytes) -> bytes:
    member = tarfile.TarInfo("header")
    member.type, member.size = kind, len(content)
    return member.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % 512)


SHORT = header(tarfile.XHDTYPE, b"10 a=bbbb\n" * 6000)
HEADERS = [
    (header(tarfile.GNUTYPE_LONGNAME, b"a/" * 40_000), "names or attributes"),
    (header(tarfile.GNUTYPE_LONGLINK, b"a/" * 40_000), "names or attributes"),
    (header(tarfile.XHDTYPE, b"10 a=bbbb\n" * 8000), "names or attributes"),
    (header(tarfile.SOLARIS_XHDTYPE, b"10 a=bbbb\n" * 8000), "names or attributes"),
    ((SHORT + header(tarfile.REGTYPE, b"")) * 150, "names or attributes"),
    (header(tarfile.XGLTYPE, b"10 a=bbbb\n" * 200), "attributes of all files"),
    (header(tarfile.XHDTYPE, b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"), "sparse"),
    (header(tarfile.GNUTYPE_SPARSE, b""), "sparse"),
]


@pytest.mark.parametrize(("start", "reason"), HEADERS)
def test_tar_headers_are_bounded(tmp_path: Path, curriculum: Curriculum, start: bytes, reason: str):
    with gzip.open(tmp_path / "work.tar.gz", "wb") as file:
        file.write(start + header(tarfile.REGTYPE, b"") + bytes(1024))
    with pytest.raises(Unreadable, match=reason):
        collect(tmp_path / "work.tar.gz", curriculum)


def test_usual_tar_headers_are_read(tmp_path: Path, curriculum: Curriculum):
    long = "x" * 90 + "/" + "y" * 90 + "/é/tiny_llm/"
    for format in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        with tarfile.open(tmp_path / "a.tar.gz", "w:gz", format=format, pax_headers={"comment": "0" * 40}) as file:
            for name, content in below(long).items():
                member = tarfile.TarInfo(name)
                member.size, member.mtime = len(content), 1.5
                file.addfile(member, io.BytesIO(content))
        assert collect(tmp_path / "a.tar.gz", curriculum).files == WORK


def test_gzip_of_many_pieces_ends(tmp_path: Path, curriculum: Curriculum, monkeypatch: pytest.MonkeyPatch):
    path = tarred(tmp_path / "work.tar.gz", below("tiny_llm/"))
    path.write_bytes(gzip.compress(b"") * 1000 + path.read_bytes())
    assert collect(path, curriculum).files == WORK
    monkeypatch.setattr(archive, "_MOST_READS", 1000)
    with pytest.raises(Unreadable, match="too many pieces"):
        collect(path, curriculum)


@pytest.mark.parametrize("error", [MemoryError(), IndexError("x"), struct.error("x"), lzma.LZMAError("x"), KeyError()])
def test_whatever_an_archive_raises_is_told_in_a_line(
    tmp_path: Path, curriculum: Curriculum, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    def broken(*_: object) -> None:
        raise error

    path = zipped(tmp_path / "work.zip", below("tiny_llm/"))
    with monkeypatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "open", broken)
        assert f"cannot be read ({type(error).__name__}" in collect(path, curriculum).notes[0]
    with monkeypatch.context() as patch:
        patch.setattr(zipfile, "ZipFile", broken)
        with pytest.raises(Unreadable, match=r"the archive cannot be read \(" + type(error).__name__):
            collect(path, curriculum)


def test_what_is_told_of_an_error_steers_no_terminal(
    tmp_path: Path, curriculum: Curriculum, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: object) -> None:
        raise ValueError("a\x1b[2J\n\udcff")

    path = zipped(tmp_path / "work.zip", WORK)
    monkeypatch.setattr(zipfile, "ZipFile", broken)
    with pytest.raises(Unreadable, match="ValueError: a \ufffd"):
        collect(path, curriculum)


def test_a_member_without_a_name_is_no_file(tmp_path: Path, curriculum: Curriculum):
    path = zipped(tmp_path / "work.zip", below("tiny_llm/") | {"nameless": b"", "folder/": b""})
    path.write_bytes(path.read_bytes().replace(b"nameless", bytes(8)))
    assert collect(path, curriculum).files == WORK


def test_a_zip_that_lies_about_sizes_is_read_no_further(tmp_path: Path, curriculum: Curriculum):
    path = zipped(tmp_path / "lie.zip", below("tiny_llm/") | {f"tiny_llm/{BASICS}": bytes(4 << 20)})
    data = path.read_bytes().replace(struct.pack("<I", 4 << 20), struct.pack("<I", 10))
    path.write_bytes(data)
    assert MORE in collect(path, curriculum).files


@pytest.mark.parametrize("pack", [folder, zipped, tarred])
def test_too_many_files_are_refused(
    tmp_path: Path, curriculum: Curriculum, monkeypatch: pytest.MonkeyPatch, pack: Callable[..., Path]
):
    monkeypatch.setattr(source, "MOST_ENTRIES", 10)
    monkeypatch.setattr(archive, "MOST_ENTRIES", 10)
    with pytest.raises(Unreadable, match="more than 10 files: submit src/tiny_llm and src/extensions only"):
        collect(pack(tmp_path / "many", below("tiny_llm/") | {f"f{i}.txt": b"" for i in range(20)}), curriculum)


def test_a_zip_with_a_huge_directory_is_refused_before_it_is_read(
    tmp_path: Path, curriculum: Curriculum, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(archive, "MOST_ENTRIES", 10)
    monkeypatch.setattr(zipfile, "ZipFile", None)
    path = tmp_path / "many.zip"
    path.write_bytes(b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 5, 5, 48 * 11, 0, 0))
    with pytest.raises(Unreadable, match="the archive holds more than 10 files"):
        archive.Zip(path)


def test_the_directory_of_a_large_zip_is_bounded_too(
    tmp_path: Path, curriculum: Curriculum, monkeypatch: pytest.MonkeyPatch
):
    path = zipped(tmp_path / "work.zip", below("tiny_llm/") | {f"f{n}": b"" for n in range(40)})
    data, end = path.read_bytes()[:-22], path.read_bytes()[-22:]
    size, start = struct.unpack_from("<II", end, 12)
    large = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 42, 42, size, start)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, len(data), 1)
    path.write_bytes(data + large + locator + end[:12] + struct.pack("<I", 10) + end[16:])
    assert collect(path, curriculum).files == WORK
    monkeypatch.setattr(archive, "MOST_ENTRIES", 10)
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(Unreadable, match="holds more than 10 files"):
        archive.Zip(path)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut off", b"\x1f\x8b\x08 cut off"])
def test_broken_archives_are_told(tmp_path: Path, curriculum: Curriculum, content: bytes):
    path = tmp_path / "work.zip"
    path.write_bytes(content)
    with pytest.raises(Unreadable, match=r"the archive cannot be read .*: submit a folder, .zip or .tar.gz"):
        collect(path, curriculum)


def test_every_cut_of_an_archive_is_told(tmp_path: Path, curriculum: Curriculum):
    for pack, name in ((zipped, "a.zip"), (tarred, "a.tar.gz")):
        whole = pack(tmp_path / name, below("tiny_llm/")).read_bytes()
        for length in range(0, len(whole), 17):
            (tmp_path / "cut").write_bytes(whole[:length])
            with suppress(Unreadable):
                assert isinstance(collect(tmp_path / "cut", curriculum), Intake)


def test_a_submission_that_is_not_there(tmp_path: Path, curriculum: Curriculum):
    with pytest.raises(Unreadable, match="there is no such file or folder"):
        collect(tmp_path / "nobody", curriculum)
    with pytest.raises(Unreadable, match="it is no file and no folder"):
        collect(Path("/dev/null"), curriculum)


def test_deep_and_looping_folders_end(tmp_path: Path, curriculum: Curriculum):
    folder(tmp_path, WORK, "tiny_llm")
    (tmp_path / "tiny_llm/loop").symlink_to(tmp_path)
    (tmp_path / Path(*["d"] * 60)).mkdir(parents=True)
    assert collect(tmp_path, curriculum).files == WORK


def test_the_commit_of_a_checkout_is_read_without_git(tmp_path: Path, curriculum: Curriculum):
    commit = "0123456789abcdef0123456789abcdef01234567"
    folder(tmp_path, WORK, "src/tiny_llm")
    folder(tmp_path, {"HEAD": b"ref: refs/heads/main\n", "refs/heads/main": commit.encode()}, ".git")
    assert collect(tmp_path, curriculum).revision == commit
    (tmp_path / ".git/refs/heads/main").unlink()
    folder(tmp_path, {"packed-refs": f"# pack\n{commit} refs/heads/main\n".encode()}, ".git")
    assert revision(tmp_path) == commit
    for head in (b"ref: refs/../../../etc/passwd", b"nonsense", b"\xff"):
        folder(tmp_path, {"HEAD": head}, ".git")
        assert revision(tmp_path) == ""


def test_the_planted_tree_is_the_starter_with_the_files_in_it(tmp_path: Path):
    starter = {BASICS: b"stub", MORE: b"stub", "extensions/src/a.cpp": b"c"}
    plant(tmp_path / "tree", starter, {BASICS: b"mine"})
    found = {p.relative_to(tmp_path / "tree").as_posix(): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert found == {f"tiny_llm/{BASICS}": b"mine", f"tiny_llm/{MORE}": b"stub", "extensions/src/a.cpp": b"c"}
    assert all(path.stat().st_mode & 0o005 for path in (tmp_path / "tree").rglob("*"))
