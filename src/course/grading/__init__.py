"""Grading: from a submission, a folder or an archive that nobody has looked at, to a grade and its files.

`desk` is the whole way; `intake` takes the learner's files, `runner` runs the tests, `score` gives the points, and
`formats` writes them down. What code may do while it runs is `course.boundary`'s matter."""
