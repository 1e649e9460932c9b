"""A serving engine: many requests share one model, one memory for keys and values, and one clock of steps."""
