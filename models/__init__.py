"""The embedded model: a small Qwen3 for a closed world, with the scripts that write its corpus, train it and measure it."""
