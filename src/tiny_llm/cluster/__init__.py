"""A cluster of engines: time, work, routing, transfers, planning. The same objects run simulated and for real."""
