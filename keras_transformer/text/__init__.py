"""Text as people have it: what must come through a translation, and terms that have a translation of their own."""
