"""Models that Marian trained, as run folders: from Marian's own files, or from Hugging Face's MarianMT."""
