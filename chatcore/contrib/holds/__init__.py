"""Legal holds: of a user who is on one, nothing is deleted and no word is overwritten."""
