"""Grading a class: a folder of submissions in, one result for each student and a summary of all out.

It finds whose each submission is and when it came, grades them in processes of their own, and adds up. How one
submission is graded, `course.grading` knows.
"""
