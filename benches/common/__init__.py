"""What several benchmarks share. Files in this folder are no benchmarks of their own."""
