"""Where in a submission the learner's package and extension are: found by the names of the course's task files.

A whole checkout, its `src`, the two folders, the inside of the package, each also below other folders."""

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from course.paths import is_extension

_PACKAGE, _EXTENSION = "tiny_llm/", "extensions/"
_NEVER = {"tiny_llm_ref", "extensions_ref", "mutants", "alternatives"}


class Layout(NamedTuple):
    """Prefixes, with a slash at the end or empty, of the files of the package and of those of the extension."""

    package: str
    extension: str

    def place(self, name: str) -> str:
        """Where the file that the registry calls `name` is in the submission."""
        return self.extension + name.removeprefix(_EXTENSION) if is_extension(name) else self.package + name

    def name(self, place: str) -> str | None:
        """How the registry would call the file at `place`; None for one elsewhere."""
        if place.startswith(self.extension):
            return _EXTENSION + place.removeprefix(self.extension)
        return place.removeprefix(self.package) if place.startswith(self.package) else None


def find_layouts(places: Iterable[str], names: Iterable[str]) -> list[Layout]:
    """All layouts in which a file that is named as one of `names` was found, the likeliest first.

    A package in a folder called tiny_llm comes before others, then the least deep, then the one with the most files.
    """
    wanted: dict[str, list[str]] = {}
    for name in names:
        wanted.setdefault(name.rpartition("/")[2], []).append(name)
    there = {place for place in places if not _NEVER.intersection(place.split("/"))}
    pairs = ((place, name) for place in there for name in wanted.get(place.rpartition("/")[2], ()))
    layouts = {layout for place, name in pairs if (layout := _layout(place, name))}
    found = {layout: [n for n in chain(*wanted.values()) if layout.place(n) in there] for layout in layouts}
    return sorted(layouts, key=lambda one: (not _is_named(one, found[one]), _depth(one), -len(found[one]), one))


def _layout(place: str, name: str) -> Layout | None:
    if place != name and not place.endswith(f"/{name}"):
        return None
    prefix = place.removesuffix(name)
    if not is_extension(name) and (prefix == _PACKAGE or prefix.endswith(f"/{_PACKAGE}")):
        return Layout(prefix, prefix.removesuffix(_PACKAGE) + _EXTENSION)
    if is_extension(name):
        return Layout(prefix + _PACKAGE, prefix + _EXTENSION)
    return Layout(prefix, prefix + _EXTENSION)


def _is_named(layout: Layout, found: Iterable[str]) -> bool:
    return layout.package.endswith(_PACKAGE) and not all(map(is_extension, found))


def _depth(layout: Layout) -> int:
    return layout.extension.count("/")
