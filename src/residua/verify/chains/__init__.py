"""Chains of records: their structure, heads and steps."""
