"""What an instructor hands out: the students' repository, the Gradescope autograder, the GitHub Classroom workflow.

`selection` says which files of this repository go where, and which do not and why; `student`, `gradescope` and
`workflow` make the rest; `place` writes. All of it is bytes in memory first, so the same input gives the same output.
"""
