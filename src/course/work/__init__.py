"""The learner's files: the untouched starter, saved copies, the source of a task, checkpoints, merges."""
