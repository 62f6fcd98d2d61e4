"""Tests of prompts."""
