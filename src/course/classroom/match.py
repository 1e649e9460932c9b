"""Whose submission is it: finds the student of an entry by its name. The strongest sign decides, never a guess.

Signs, strongest first: what Gradescope says; the roster's `folder`; the id as a word of the name; the GitHub name or
group at its end (`assignment-name`); a short id in front; the e-mail address or the whole name as words of it."""

import re
import unicodedata
from collections.abc import Callable, Sequence

from course.classroom.entry import Entry
from course.classroom.student import Student

_SHORT = 4

Sign = Callable[[Entry, Student], int]
"""How many characters of the entry's name tell of the student; 0 for none."""


class Ambiguous(Exception):
    """An entry whose name means several students equally; the text names them."""


def owners(entry: Entry, roster: Sequence[Student], handed: Sequence[Student]) -> list[Student]:
    """The students of `roster` whose entry it is: one, a group, or none. `handed`: who Gradescope says."""
    if handed:
        named = [next((s for s in roster if _same_person(s, person)), None) for person in handed]
        if any(named):
            return [student for student in named if student]
    for sign in (_folder, _long_id, _github, _group, _short_id, _email, _name):
        strength = {student.id: sign(entry, student) for student in roster}
        best = max(strength.values(), default=0)
        found = [student for student in roster if best and strength[student.id] == best]
        if len(found) > 1 and sign is not _group:
            raise Ambiguous(" or ".join(student.name for student in found))
        if found:
            return found
    return []


def _same_person(student: Student, person: Student) -> bool:
    pairs = ((student.id, person.id), (student.email, person.email))
    if any(a and a.casefold() == b.casefold() for a, b in pairs):
        return True
    return not person.email and person.id == person.name and letters(student.name) == letters(person.name)


def _folder(entry: Entry, student: Student) -> int:
    wanted = student.folder.casefold()
    return len(wanted) if wanted and wanted in (entry.name.casefold(), entry.path.name.casefold()) else 0


def _github(entry: Entry, student: Student) -> int:
    return _ending(entry, student.github)


def _group(entry: Entry, student: Student) -> int:
    return _ending(entry, student.group)


def _ending(entry: Entry, word: str) -> int:
    name, word = _joined(entry.name), _joined(word)
    return len(word) if word and (name == word or name.endswith(f"-{word}")) else 0


def _long_id(entry: Entry, student: Student) -> int:
    return _word(entry, student.id) if len(student.id) >= _SHORT else 0


def _short_id(entry: Entry, student: Student) -> int:
    """Only in front, or all of it: in the middle it is likely to be something else ("week-1-...")."""
    return len(student.id) if re.match(rf"{re.escape(student.id)}(?![^\W_])", entry.name, re.IGNORECASE) else 0


def _email(entry: Entry, student: Student) -> int:
    local = student.email.partition("@")[0]
    return max(_word(entry, student.email), _word(entry, local) if len(local) >= _SHORT else 0)


def _word(entry: Entry, word: str) -> int:
    form = rf"(?<![^\W_]){re.escape(word)}(?![^\W_])"
    return len(word) if word and re.search(form, entry.name, re.IGNORECASE) else 0


def _name(entry: Entry, student: Student) -> int:
    """All words of the name, in any order, apart or written as one (Canvas: the last name first)."""
    spellings = {letters(student.name), letters(student.name.translate(_GERMAN))}
    there = entry.exported[0] if entry.exported else entry.name
    forms = {letters(there), letters(there.translate(_GERMAN))}
    for words in filter(None, spellings):
        joined = {"".join(words), "".join(words[-1:] + words[:-1])}
        for found in forms:
            if set(words) <= set(found) or joined & set(found):
                return sum(map(len, words))
    return 0


_GERMAN = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss", "ø": "oe", "å": "aa"}
)


def letters(name: str) -> tuple[str, ...]:
    """The words of a name in small letters, without accents."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    return tuple(re.findall(r"[^\W\d_]+", "".join(c for c in plain if not unicodedata.combining(c))))


def _joined(text: str) -> str:
    """As GitHub writes names of repositories."""
    return re.sub(r"[\s_.]+", "-", text.strip().casefold())
