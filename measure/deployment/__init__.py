"""The deployment, tried out by hand on one machine (docs/operating.md)."""
