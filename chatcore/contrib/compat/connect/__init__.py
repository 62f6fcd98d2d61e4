"""Connect a program: what stands in its settings, on a page and by the command `connect`."""
