"""The learner's loop: what is done, what is next, and a watch that tests every save."""
