"""Import and export: sessions as JSON files, and messages of other systems."""
