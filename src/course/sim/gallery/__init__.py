"""Complaints of users of real systems, each as a scenario: with a policy that fails, and with one that does not."""
