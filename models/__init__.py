"""The embedded model: a small Qwen3 for a closed world, and the scripts that write its corpus, train and measure it."""
