"""BLEU and chrF with the signatures that make them comparable, and the share of exact translations."""

import dataclasses
import logging

import sacrebleu

log = logging.getLogger("train")


@dataclasses.dataclass(frozen=True)
class Scores:
    """Scores of one set of translations, in per cent, each with the sacreBLEU signature that makes it comparable."""

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    exact: float  # translations that equal their reference letter by letter, case included
    sentences: int

    def lines(self) -> list[str]:
        """One printed line per score."""
        return [
            f"BLEU {self.bleu:.2f}  {self.bleu_signature}",
            f"chrF {self.chrf:.2f}  {self.chrf_signature}",
            f"exact {self.exact:.2f} per cent of {self.sentences:,} sentences",
        ]


def score(translations: list[str], references: list[str], tokenised_language: str | None = None) -> Scores:
    """Score translations against one reference each.

    By default BLEU is of raw text: cased, tokenised by sacreBLEU ("13a"). With `tokenised_language` ("de") both sides
    are first normalised, tokenised by Moses' rules for that language and lower-cased, as in papers on Multi30k. The two
    numbers are not comparable. chrF and exact matches are always of raw text.
    Raises ValueError if there is nothing to score, or not one reference per translation.
    """
    if len(translations) != len(references) or not translations:
        raise ValueError(f"{len(translations):,} translations and {len(references):,} references: each needs one.")
    chrf = sacrebleu.metrics.CHRF()
    chrf_score = chrf.corpus_score(translations, [references])
    bleu, texts = sacrebleu.metrics.BLEU(), (translations, references)
    if tokenised_language:
        bleu = sacrebleu.metrics.BLEU(tokenize="none", lowercase=True, force=True)
        texts = [tokenise(lines, tokenised_language) for lines in texts]
    bleu_score = bleu.corpus_score(texts[0], [texts[1]])
    hits = sum(ours == theirs for ours, theirs in zip(translations, references, strict=True))
    return Scores(
        bleu=bleu_score.score,
        bleu_signature=str(bleu.get_signature()),
        chrf=chrf_score.score,
        chrf_signature=str(chrf.get_signature()),
        exact=100 * hits / len(references),
        sentences=len(references),
    )


def tokenise(lines: list[str], language: str) -> list[str]:
    """Moses punctuation normalisation and tokenisation, then lower case, as in Multi30k's *.lc.norm.tok.* files.

    Of its validation and test lines 99.9 per cent become exactly the same (tests/test_bleu.py). If Moses has no rules
    for a language, it splits abbreviations as in English and at every apostrophe, and a warning is logged.
    """
    import sacremoses

    if language not in sacremoses.corpus.NonbreakingPrefixes().available_langs.values():
        log.warning(
            "Moses has no rules for the language %r (data.target_language): its general rules are used", language
        )
    normaliser, tokeniser = sacremoses.MosesPunctNormalizer(language), sacremoses.MosesTokenizer(language)
    return [tokeniser.tokenize(normaliser.normalize(line), return_str=True, escape=True).lower() for line in lines]
