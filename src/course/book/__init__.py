"""The book's machinery: preprocessors, figures, build and lints. It knows Markdown, not what a chapter says."""
