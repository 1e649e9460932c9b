"""From text to tokens and back: generation, detokenisation, chat format, sampling."""
