"""Find out that a session must be compacted, or that what a run wrote holds no longer."""
