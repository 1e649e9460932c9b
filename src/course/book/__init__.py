"""The book's machinery: preprocessors, figures, build and lints. It knows Markdown and the registry, not what a chapter says."""
