"""Trees that are scored: of the sentences of a treebank."""

import dataclasses
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, Self

from keras_transformer.inspection.bleu import Scores
from keras_transformer.inspection.samples import Sample
from keras_transformer.parsing.linear import penn_tree, repaired, symbols_of
from keras_transformer.pieces.tokenizer import Tokenizer

from ..config.data import DataSection
from ..data.corpus import CorpusError, Split
from ..data.files import lines_of
from ..data.prepare import PreparedData, load_corpus
from ..data.spread import spread
from ..data.trees import Tree, read_trees
from .brackets import ValidatedTrees, bracketing_scores
from .breakdown import recorded
from .card import OutputScores, TimedTranslations
from .parsing_card import ParsingCard, parsing_card
from .scored import Opponent, Scored, Use
from .significance import DEFAULT_TEST
from .tree_comparison import compare_trees


@dataclasses.dataclass(frozen=True)
class ScoredTrees(Scored):
    """Sentences and their trees; outputs are lines of brackets. training_trees: those that a model is trained on."""

    quality = "F1"
    use = Use(
        does="parses single sentences, with words and punctuation divided by spaces as in the treebank,",
        done="parsed",
        risk=": a tree may be wrong and look right.",
    )

    trees: Sequence[Tree]
    training_trees: Sequence[Tree]

    @classmethod
    def of_run(
        cls,
        data: DataSection | None,
        files: tuple[pathlib.Path, pathlib.Path] | None = None,
        is_tokenised: bool = False,
    ) -> Self:
        corpus = load_corpus(recorded(data))
        split = corpus.test or corpus.validation
        return cls(split.name, list(split), split.trees, corpus.train.trees)

    @classmethod
    def of_split(cls, split: Split, config: DataSection, data: PreparedData) -> Self:
        return cls(split.name, list(split), split.trees, data.corpus.train.trees)

    @classmethod
    def validation(cls, split: Split, count: int) -> Callable[[Scores, Sequence[Sample]], OutputScores]:
        trees = spread(split.trees, count)

        def scores_of(text_scores: Scores, samples: Sequence[Sample]) -> ValidatedTrees:
            return ValidatedTrees(bracketing_scores(trees, [sample.translation for sample in samples]), text_scores)

        return scores_of

    @staticmethod
    def settings(is_constrained: bool) -> dict[str, Any]:
        return {"constrained": is_constrained}

    def read(self, path: pathlib.Path) -> list[str]:
        trees = list(read_trees("\n".join(lines_of(path)), str(path)))
        if len(trees) != len(self.trees):
            raise CorpusError(
                f"--against {path} has {len(trees):,} trees, but there are {len(self.trees):,} sentences."
            )
        for number, (theirs, tree) in enumerate(zip(trees, self.trees, strict=True), 1):
            if len(theirs.words) != len(tree.words):
                raise CorpusError(
                    f"--against {path}: tree {number:,} has {len(theirs.words)} words and its sentence "
                    f"{len(tree.words)}: give the trees in the order of the sentences."
                )
        return [tree.pair[1] for tree in trees]

    def written(self, outputs: Sequence[str]) -> Sequence[str]:
        """The outputs as trees of the Penn format, repaired, with the treebank's words and tags: what EVALB reads."""
        return [
            penn_tree(repaired(symbols_of(output), len(tree.words)), tree.words, tree.tags)
            for tree, output in zip(self.trees, outputs, strict=True)
        ]

    def score(
        self,
        timed: TimedTranslations,
        tokenizer: Tokenizer,
        opponent: Opponent | None = None,
        paired_test: str = DEFAULT_TEST,
    ) -> ParsingCard:
        card = parsing_card(timed, self.trees, self.training_trees)
        if opponent is None:
            return card
        outputs = [sample.translation for sample in timed.samples]
        comparison = compare_trees(opponent.name, self.trees, outputs, opponent.outputs, paired_test)
        return dataclasses.replace(card, comparison=comparison)
