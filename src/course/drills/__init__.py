"""Programs that go wrong on purpose, beside the ones that do not: drills of the book."""
