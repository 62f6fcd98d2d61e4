"""Apps that can be absent, each whole in its folder (docs/apps.md)."""
