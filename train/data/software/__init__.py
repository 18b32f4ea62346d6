"""The text of software as a corpus: packages, pages of help, catalogues, and which of it is for which split."""
