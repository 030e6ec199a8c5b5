"""Several mechanisms as one."""
