"""What the tests of Week 4 stand on: a simulated network, processes on it, and random schedules of faults."""
