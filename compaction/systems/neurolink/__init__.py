"""What NeuroLink offers to programs: calls that measure and compact, and plain functions."""
