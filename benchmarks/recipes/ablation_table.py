"""What each technique of a recipe is worth, as a table with a paired test."""

from benchmarks.trials.outcome import Outcome, commits_sentence, machines, mark
from keras_transformer.inspection.bleu import lower_bleu, raw_bleu
from train.config.run import RunConfig
from train.data.prepare import load_test_split
from train.scoring.significance import differences

NOTE = """
Every row has the same updates and seed, and is scored on the validation set, which also chose between the candidate
weights (the last, the averaged, and so on). A row with other training text, or other keys of [tokenizer], has a
tokenizer of its own: its perplexity, which is per token, cannot be compared with that of the others. The difference is
to the whole recipe; its p-value is that of sacreBLEU's paired bootstrap, 1,000 resamples, about half of a two-sided
one. Each row was trained once: the test knows the sentences' chance, not that of the seed, which moves BLEU on
Multi30k by up to 1. Training minutes are those of the steps, without validations; a row that changes only which
weights are kept has the training of the whole recipe.
"""

SHORTENED = """
The recipe itself has {full:,} updates. With fewer, a model has seen its text less often: what keeps it from learning
the text by heart, such as dropout, is worth more in the recipe than here, and what makes it learn faster may be worth
less.
"""


def table(
    recipe: RunConfig, outcomes: dict[str, Outcome], changes: dict[str, str], command: str, full: int | None = None
) -> str:
    """Return the table. `outcomes` and `changes` by the name of the trial; the first is the whole recipe.

    full: the updates of the recipe if all rows have fewer.
    """
    whole = next(iter(outcomes.values()))
    references = [reference for _, reference in validation_pairs(recipe)]
    form = lower_bleu if recipe.tokenizer.lowercase else raw_bleu  # with and without capitals must be comparable
    measure = form(recipe.data.target_language)
    lines = [
        "# What the recipe is made of",
        "",
        f"`{command}` on {machines(outcomes.values())}: {recipe.training.steps:,} updates, seed "
        f"{recipe.training.seed}.",
        "",
        "| | BLEU on the validation set | difference | p-value | perplexity | training minutes |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, outcome in outcomes.items():
        change = p_value = ""
        if outcome is not whole:
            [difference] = differences(outcome.translations, whole.translations, references, [measure], "bootstrap")
            change, p_value = f"{difference.ours - difference.theirs:+.2f}", difference.verdict
        bleu = outcome.bleu(measure.form)
        cells = [changes[name] or "the whole recipe", bleu, change, p_value, f"{outcome.perplexity:.3f}"]
        cells.append(f"{outcome.train_seconds / 60:.0f}{mark(outcome, outcomes.values())}")
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", f"BLEU: {whole.score('BLEU', measure.form)['signature']}"]
    if sentence := commits_sentence(
        {changes[name] or "the whole recipe": outcome for name, outcome in outcomes.items()}
    ):
        lines += ["", sentence]
    note = NOTE + (SHORTENED.format(full=full) if full else "")
    return "\n".join([*lines, note.rstrip(), ""])


def validation_pairs(recipe: RunConfig) -> list[tuple[str, str]]:
    """The sentence pairs of data.validation."""
    return list(load_test_split(recipe.data.model_copy(update={"test": []})))
