"""The learner's solution of one task beside the reference's: values, time, memory, kernel counters.

Both run in processes of their own; this one imports neither. What is compared are the graded cases of the task.
"""
