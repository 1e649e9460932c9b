"""Rosters as people's programs write them, whose each entry is, and exports of platforms."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from course.classroom.entry import Entry, find_entries
from course.classroom.export import read_export
from course.classroom.handed import Moment, Times
from course.classroom.match import Ambiguous, owners
from course.classroom.plan import folder_name, make_plan
from course.classroom.sheet import read_sheet, write_sheet
from course.classroom.student import Student, read_roster
from course.errors import CourseError

UMLAUTS = "id,name\n7,Jörg Müller\n8,Zoë Ærø\n"


@pytest.mark.parametrize(
    "content",
    [
        UMLAUTS.encode(),
        b"\xef\xbb\xbf" + UMLAUTS.encode(),
        UMLAUTS.encode("cp1252"),
        UMLAUTS.encode("utf-16"),
        UMLAUTS.replace(",", ";").encode(),
        UMLAUTS.replace(",", "\t").encode(),
        b"sep=;\r\n" + UMLAUTS.replace(",", ";").replace("\n", "\r\n").encode(),
        'Student ID ; "Full Name"\r\n"7"; "Jörg Müller" \r\n;;\r\n\r\n8;Zoë Ærø;;\r\n'.encode(),
        'name,SID,note\nJörg Müller,7,"one, two\nthree"\nZoë Ærø,8,\n'.encode(),
        "Last Name,First Name,E-mail,ID number\nMüller,Jörg,,7\nÆrø,Zoë,,8\n".encode(),
        "Student,ID,SIS User ID\n    Points Possible,,\nJörg Müller,,7\nZoë Ærø,,8\n".encode(),
        "id,name\n7,Jo\u0308rg Mu\u0308ller\n8,Zoë Ærø\n".encode(),
    ],
)
def test_a_roster_is_read_however_it_was_saved(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "my roster.csv"
    path.write_bytes(content)
    assert [(student.id, student.name) for student in read_roster(path)] == [("7", "Jörg Müller"), ("8", "Zoë Ærø")]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "holds no row"),
        (b"id,name\n", "holds no row"),
        (b"first,second\n1,2\n", r"lacks the columns id and name \(it has first, second\)"),
        (b"email,name\na@b,A\n", r"lacks the column id \(it has email, name\)"),
        (b"id,email\n1,a@b\n", r"lacks the column name \(it has id, email\)"),
        (b"id,name\n1,Lovelace, Ada\n", r"row 2 \(1 ...\) has 3 cells for 2 columns: write .quotes. around"),
        (b'id,name\n1,A\n2,"B\n3,C\n', r'row 3: a quote \("\) is opened and not closed'),
        (b'id,name\n1,A\n2,"B\n3,"C"\n4,D\n', 'row 3 has a line break after "B": close the quote'),
        (b"id,name\n1,A\n2,B\n1,C\n", "the id 1 twice"),
        (b"id,name,email\n,,\n,,x\n,,\n", ""),
        (b"id,name,github,folder\n1,A,a,\n,,,f\n", "row 3 has neither id nor name"),
        (b"id,name,free days\n1,A,two\n", "free days 'two'"),
        (b"\xff\xfe\x00", "is not text"),
    ],
)
def test_a_roster_that_cannot_be_meant_is_refused_in_one_line(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "roster.csv"
    path.write_bytes(content)
    if not text:
        assert [student.id for student in read_roster(path)] == ["x"]
        return
    with pytest.raises(CourseError, match=text) as refused:
        read_roster(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_table_that_is_written_is_read_back_and_holds_no_formula(tmp_path: Path) -> None:
    write_sheet(tmp_path / "x.csv", ["name", "points"], [["=HYPERLINK(1)", -1.5], ['Müller, "Jörg"', 2]])
    rows = read_sheet(tmp_path / "x.csv")
    assert rows == [{"name": "'=HYPERLINK(1)", "points": "-1.5"}, {"name": 'Müller, "Jörg"', "points": "2"}]


ROSTER = [
    Student("100123", "Jörg Müller", "jmueller@uni.example", github="joerg-m"),
    Student("100124", "Ann Lee", "lee@uni.example", github="lee"),
    Student("100125", "Ann Lee Smith", "als@uni.example", github="ann-lee"),
    Student("12", "Noël O'Brien", folder="the odd one"),
    Student("100127", "Eva Weiß", group="Team Blue"),
    Student("100128", "Max Weiß", group="team-blue"),
]


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("100123", ["100123"]),
        ("100124_Ann_Lee", ["100124"]),
        ("Jörg Müller_4711_assignsubmission_file_", ["100123"]),
        ("Mueller Joerg_4711_assignsubmission_file_", ["100123"]),
        ("Ann Lee Smith_4712_assignsubmission_file_", ["100125"]),
        ("Ann Lee_4713_assignsubmission_file_", ["100124"]),
        ("muellerjoerg_4711_99_my work", ["100123"]),
        ("mullerjorg_LATE_4711_99_work-1", ["100123"]),
        ("week-1-joerg-m", ["100123"]),
        ("week-1-ann-lee", ["100125"]),
        ("week-1-lee", ["100124"]),
        ("Week-1-JOERG-M", ["100123"]),
        ("week-12-unknown", []),
        ("12_work", ["12"]),
        ("the odd one", ["12"]),
        ("The Odd One", ["12"]),
        ("o'brien noël", ["12"]),
        ("jmueller", ["100123"]),
        ("als@uni.example", ["100125"]),
        ("week-1-team-blue", ["100127", "100128"]),
        ("x100123x", []),
        ("Jörg", []),
    ],
)
def test_an_entry_finds_its_student(name: str, ids: list[str]) -> None:
    assert [student.id for student in owners(Entry(name, Path(name)), ROSTER, ())] == ids


def test_an_entry_that_fits_two_students_is_given_to_none() -> None:
    twins = [Student("1", "Kim Park"), Student("2", "Kim Park")]
    with pytest.raises(Ambiguous, match="Kim Park or Kim Park"):
        owners(Entry("Kim Park_33_assignsubmission_file_", Path("x")), twins, ())
    plan = make_plan([Entry("Kim Park_33_assignsubmission_file_", Path("x"))], twins, {}, Times({}, {}))
    assert [student.id for student in plan.absent] == ["1", "2"]
    assert [submission.listed for submission in plan.submissions] == [False]
    assert "may be of Kim Park or Kim Park" in plan.notes[0]


EXPORT = """
---
submission_11:
  :submitters:
  - :name: Jörg Müller
    :sid: '100123'
    :email: jmueller@uni.example
  :created_at: 2026-10-05 21:58:59.123456789 Z
  :score: 3.0
  :results: !ruby/hash:ActiveSupport::HashWithIndifferentAccess
    tests: [{name: x, status: !ruby/symbol failed}]
submission_12:
  :submitters:
  - :name: Eva Weiß
    :sid:
    :email: eva@uni.example
  - :name: Someone Else
    :sid: '9'
    :email: s@uni.example
  :created_at: 2026-10-06 08:00:00 +0200
"""


def test_a_gradescope_export_says_who_and_when(tmp_path: Path) -> None:
    (tmp_path / "submission_metadata.yml").write_text(EXPORT, encoding="utf-8")
    for name in ("submission_11", "submission_12"):
        (tmp_path / name).mkdir()
    export = read_export(tmp_path)
    assert export["submission_11"].when == datetime(2026, 10, 5, 21, 58, 59, 123456, tzinfo=UTC)
    assert export["submission_12"].when == datetime(2026, 10, 6, 6, tzinfo=UTC)
    entries, others = find_entries(tmp_path)
    assert others == []
    times = Times({}, {name: handed.when for name, handed in export.items() if handed.when})

    plan = make_plan(entries, None, export, times)
    names = [[student.name for student in submission.students] for submission in plan.submissions]
    assert names == [["Jörg Müller"], ["Eva Weiß", "Someone Else"]]
    assert plan.submissions[0].moment == Moment(datetime(2026, 10, 5, 21, 58, 59, 123456, tzinfo=UTC), "Gradescope")
    roster = [Student("77", "Müller, Jörg", "JMueller@uni.example"), Student("9", "S. Else"), Student("3", "Absent")]
    plan = make_plan(entries, roster, export, times)
    assert [[student.id for student in s.students] for s in plan.submissions] == [["77"], ["9"]]
    assert [student.id for student in plan.absent] == ["3"]


@pytest.mark.parametrize("text", ["- 1\n", "a: [", "a: &a [*a, *b]", "\x00"])
def test_a_broken_export_is_a_mistake_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "submission_metadata.yml").write_text(text)
    with pytest.raises(CourseError, match=r"submission_metadata\.yml") as refused:
        read_export(tmp_path)
    assert "\n" not in str(refused.value)


def test_entries_are_folders_and_archives_and_the_rest_is_named(tmp_path: Path) -> None:
    for name in ("ada", ".git", "__MACOSX", "Bob_3_assignsubmission_file_", "Bob_3_assignsubmission_onlinetext_"):
        (tmp_path / name).mkdir()
    for name in ("b.zip", "c.TAR.GZ", "d.tgz", "solution.rar", "grades.csv", ".DS_Store"):
        (tmp_path / name).write_text("")
    (tmp_path / "e\x1b[31m\u202e").mkdir()
    (tmp_path / "link").symlink_to("/etc")
    entries, others = find_entries(tmp_path)
    assert [entry.name for entry in entries] == ["Bob_3_assignsubmission_file_", "ada", "b", "c", "d", "e"]
    assert others == ["Bob_3_assignsubmission_onlinetext_", "link", "solution.rar"]


def test_of_two_entries_of_a_student_the_later_counts(tmp_path: Path) -> None:
    listed = {"a_100123": datetime(2026, 10, 1, tzinfo=UTC), "b_100123": datetime(2026, 10, 3, tzinfo=UTC)}
    entries = [Entry(name, tmp_path / name) for name in ("a_100123", "b_100123", "c_100123")]
    plan = make_plan(entries, ROSTER[:1], {}, Times(listed, {}))
    assert [submission.entry.name for submission in plan.submissions] == ["b_100123"]
    assert plan.notes == [
        "Jörg Müller handed in twice: b_100123 counts, a_100123 came before",
        "Jörg Müller handed in twice: b_100123 counts, c_100123 came before",
    ]


def test_a_folder_of_the_roster_that_is_not_there_is_named(tmp_path: Path) -> None:
    roster = [Student("1", "Ada", folder="Adas Work"), Student("2", "Ben", folder="bens-wrok"), Student("3", "Cem")]
    plan = make_plan([Entry(n, tmp_path / n) for n in ("adas work", "bens-work")], roster, {}, Times({}, {}))
    assert plan.notes == [
        "not in the roster: bens-work: give the student a column folder with this name in it",
        "the roster's folder bens-wrok of Ben is not among the submissions",
    ]


def test_results_of_different_students_never_share_a_folder() -> None:
    names = ["ada", "Jörg Müller", "../../etc", "a/b", "a:b", ".hidden", "x" * 300, "x" * 301, "", " "]
    folders = [folder_name(name) for name in names]
    assert len({folder.casefold() for folder in folders}) == len(names)
    assert folders[:2] == names[:2]
    assert all(0 < len(folder) < 100 and not folder.startswith(".") and "/" not in folder for folder in folders)
    plan = make_plan([Entry("Ada", Path("Ada")), Entry("ada", Path("ada"))], None, {}, Times({}, {}))
    assert len({submission.key.casefold() for submission in plan.submissions}) == 2
