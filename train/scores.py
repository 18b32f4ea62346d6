"""BLEU and chrF with the signatures that make them comparable, and the share of exact translations."""

import dataclasses

import sacrebleu


@dataclasses.dataclass(frozen=True)
class Scores:
    """Scores of one set of translations, in per cent, each with the sacreBLEU signature that makes it comparable."""

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    exact: float  # share of translations that are the reference to the letter
    sentences: int

    def lines(self):
        return [
            f"BLEU {self.bleu:.2f}  {self.bleu_signature}",
            f"chrF {self.chrf:.2f}  {self.chrf_signature}",
            f"exact {self.exact:.2f} per cent of {self.sentences:,} sentences",
        ]


def score(translations, references, tokenised_language=None):
    """Score translations against one reference each.

    Raw text by default: cased, tokenised by sacreBLEU ("13a"). With `tokenised_language` ("de"), both sides are
    punctuation-normalised, tokenised as Moses does for that language and lower-cased before: what papers on Multi30k
    report. The two are not comparable.
    Raises ValueError if there is nothing to score, or not one reference a translation.
    """
    if len(translations) != len(references) or not translations:
        raise ValueError(f"{len(translations):,} translations and {len(references):,} references: it takes one each.")
    if tokenised_language:
        translations = tokenise(translations, tokenised_language)
        references = tokenise(references, tokenised_language)
        bleu = sacrebleu.metrics.BLEU(tokenize="none", lowercase=True, force=True)
    else:
        bleu = sacrebleu.metrics.BLEU()
    chrf = sacrebleu.metrics.CHRF()
    bleu_score = bleu.corpus_score(translations, [references])
    chrf_score = chrf.corpus_score(translations, [references])
    hits = sum(ours == theirs for ours, theirs in zip(translations, references, strict=True))
    return Scores(
        bleu=bleu_score.score,
        bleu_signature=str(bleu.get_signature()),
        chrf=chrf_score.score,
        chrf_signature=str(chrf.get_signature()),
        exact=100 * hits / len(references),
        sentences=len(references),
    )


def tokenise(lines, language):
    """Moses punctuation normalisation and tokenisation, then lower case."""
    import sacremoses

    normaliser, tokeniser = sacremoses.MosesPunctNormalizer(language), sacremoses.MosesTokenizer(language)
    return [
        tokeniser.tokenize(
            normaliser.normalize(line), return_str=True, escape=False, aggressive_dash_splits=True
        ).lower()
        for line in lines
    ]
