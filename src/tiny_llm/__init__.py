"""The reference solution of the course: a Qwen3 model and what serves it."""
