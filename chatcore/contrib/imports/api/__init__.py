"""The REST API of imports."""
