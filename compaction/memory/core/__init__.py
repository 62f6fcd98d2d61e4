"""What memory knows of texts: pure, without Django, clock and I/O."""
