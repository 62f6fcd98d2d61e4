"""What has to be fast, measured by one command: python -m tests.benchmarks."""
