"""What belongs to a session as a whole: changes, archive, deletion, verification, text limits."""
