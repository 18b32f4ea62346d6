"""Lexical shortlists: the few pieces with which a sentence may be translated (Jean et al. 2015)."""
