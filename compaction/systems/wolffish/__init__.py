"""Wolffish, as far as it differs from `oneclaw`."""
