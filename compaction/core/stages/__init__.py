"""The stages of a pass: each makes a transcript smaller in one way. One file a stage."""
