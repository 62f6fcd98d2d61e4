"""The processes behind `chatcore serve`, kept running, and what a web process refuses at once."""
