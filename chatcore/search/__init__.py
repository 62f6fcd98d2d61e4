"""Full-text search over all messages, and the database index behind it."""
