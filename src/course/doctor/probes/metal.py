"""What Metal kernels run on here: a GPU, or the course's emulator, which every graded kernel case needs anywhere."""

from course.doctor.finding import EMULATOR, Finding
from course.errors import CourseError
from course.paths import SRC

_FOLDER = SRC / "course" / "emulator"
_NAME = "_emulator"


def probe(full: bool) -> Finding:
    """The device, and whether the emulator's library is up to date."""
    import mlx.core as mx

    device = "a Metal GPU, and the emulator" if mx.metal.is_available() else "no Metal GPU here, so the emulator"
    state = _library(full)
    return state if state.stops else Finding(state.state, f"{device}: {state.found}", state.fixes)


def _library(full: bool) -> Finding:
    from course.build import ensure_built, is_stale

    try:
        stale = is_stale(_FOLDER / "native", _FOLDER, _NAME)
        if stale and full:
            ensure_built(_FOLDER / "native", _FOLDER, _NAME)
            return Finding.ok("built now")
        if stale:
            return Finding.ok("its library is built when it is first needed (a minute or more)")
        ensure_built(_FOLDER / "native", _FOLDER, _NAME)
    except (CourseError, OSError) as error:
        said = " ".join(str(error).split())[:300]
        return Finding.fail(f"the kernel emulator cannot be built: {said}", stops=(EMULATOR,), **_fixes())
    return Finding.ok("its library is up to date")


def _fixes() -> dict[str, str]:
    return {"debian": "apt install g++", "macos": "xcode-select --install"}
