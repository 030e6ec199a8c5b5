"""Answers under a budget: SQL over a protected table, noise drawn safely, charged exactly."""
