"""Cases about the serving engine: a model that is a hash, its oracle, random workloads, and what must come out.

Works with either package, through its public names only.
"""
