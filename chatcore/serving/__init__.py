"""The processes behind `chatcore serve`: what they are, and how they are kept running."""
