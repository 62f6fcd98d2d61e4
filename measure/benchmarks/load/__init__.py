"""Many people at once: a web process under load, and the programs that load and watch it."""
