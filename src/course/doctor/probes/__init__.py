"""One check each: `probe(full)` looks at one thing and returns a finding. Checks do not know each other."""
