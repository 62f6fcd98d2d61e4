"""The audit log: who did what, on which object, when and from where."""
