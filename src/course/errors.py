"""Errors that are a user's mistake, not a bug."""


class CourseError(Exception):
    """A mistake the user can mend: the text names the value, the limit and the fix. Shown without a traceback."""
