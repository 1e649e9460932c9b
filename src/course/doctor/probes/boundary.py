"""How strongly graders can hold a submission on this machine: of interest to instructors alone."""

from course.doctor.finding import Finding


def probe(full: bool) -> Finding:
    """The mode that graders would choose, and what it does not protect."""
    try:
        from course.boundary import choose, protections
    except ImportError:
        return Finding.ok("not part of this copy of the course")
    mode = choose(None)
    off = [protection.name for protection in protections(mode) if not protection.on]
    found = f"mode {mode}" + (f", without: {', '.join(off)}" if off else ", all protections")
    if off:
        return Finding.warn(f"{found} (matters to who grades others)", "grade in a container or as root on Linux")
    return Finding.ok(found)
