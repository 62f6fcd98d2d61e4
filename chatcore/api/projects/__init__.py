"""Projects over REST: what they say, and their files."""
