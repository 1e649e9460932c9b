"""The tool around the simulator: configuration in, tables, files and pictures out."""
