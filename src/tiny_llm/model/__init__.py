"""The Qwen3 model in plain array operations."""
