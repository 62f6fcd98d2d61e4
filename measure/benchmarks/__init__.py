"""Measurements of what has to be fast: python -m measure.benchmarks."""
