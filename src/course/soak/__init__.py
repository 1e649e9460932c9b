"""Long random tests of the serving engine: schedules on the hash model, and clients of a real server."""
