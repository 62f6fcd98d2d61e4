"""The REST face: one file a subject, over the same domain calls that every face makes."""
