"""Measurements, run by hand: how fast, how faithful and how robust Chatcore is (README.md here)."""
