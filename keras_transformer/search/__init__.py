"""Searching for translations: pure functions over one step of the decoder."""
