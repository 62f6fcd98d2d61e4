"""Template tags and filters of the web pages."""
