"""Checks of the machine and of this checkout, and what they mean for each week.

Works where packages are missing or broken: what is outside `probes/` imports the standard library alone.
"""
