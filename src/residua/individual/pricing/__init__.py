"""What a spend costs each subject: one kernel for every engine."""
