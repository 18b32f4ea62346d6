"""table3.md: the rows that were trained beside the figures of the paper."""

from typing import NamedTuple

from benchmarks.trials.outcome import Outcome, commits_sentence, empty_sentence, machines, mark
from benchmarks.trials.table3_rows import ROWS, Row, overrides_of
from train.config import RunConfig

HEAD = (
    "| | N | d_model | d_ff | h | d_k | P_drop | epsilon_ls | PPL | BLEU | parameters | train seconds | paper: PPL "
    "| BLEU | parameters |"
)

NOTE = """
Each row is the row of Table 3 in proportion: what the paper changes by a factor against its base model, the row changes
by that factor against the row (base) of this table (layers are rounded). A cell is empty if it has the value of the
base. All rows have the same pairs, tokenizer, steps, schedule and seed. PPL (perplexity per piece, without label
smoothing, with its 95 per cent interval, if the row was trained since there is one) and BLEU (raw text, cased, with the
95 per cent interval of 1,000 resamples) are of the validation set, which also chose between the last and the averaged
weights. Train seconds are those of the steps: compilation included,
validations and checkpoints not; compare them on one machine only, which the letter names if there are several. Each row
was trained once. The paper's figures are of newstest2013, after 100,000 steps on 4.5 million pairs (300,000 for big).
"""
NOISE = 0.5  # BLEU, by which another seed moves a score on Multi30k: 0.3 to 0.5


def table(base: RunConfig, outcomes: dict[str, Outcome], command: str) -> str:
    """Return table3.md. Rows without an outcome are left out."""
    norm = base.transformer_config(base.tokenizer.vocab_size).norm
    lines = [
        "# Table 3, scaled",
        "",
        f"`{command}` on {machines(outcomes.values())}: {base.training.steps:,} steps of "
        f"{base.training.tokens_per_batch:,} target positions, {norm}-norm, seed "
        f"{base.training.seed}; {len(outcomes)} of {len(ROWS)} rows trained.",
        "",
        HEAD,
        "|---|" + "---:|" * (HEAD.count("|") - 2),
    ]
    lines += [
        table_row(row, base, outcomes[row.name], mark(outcomes[row.name], outcomes.values()))
        for row in ROWS
        if row.name in outcomes
    ]
    if found := next(iter(outcomes.values()), None):
        lines += ["", f"BLEU: {found.score('BLEU')['signature']}"]
    for sentence in filter(None, (empty_sentence(outcomes), commits_sentence(outcomes))):
        lines += ["", sentence]
    lines += ["", *agreement(outcomes), NOTE.strip()]
    return "\n".join(lines) + "\n"


def table_row(row: Row, base: RunConfig, outcome: Outcome, machine: str = "") -> str:
    """One line of the table; `machine` is the mark of the machine that trained it."""
    own = base.transformer_config(base.tokenizer.vocab_size)
    changed = dict(setting.split("=") for setting in overrides_of(row, own))
    is_base = row.name == "base"

    def cell(key: str, value: object) -> str:
        return str(value) if is_base else changed.get(key, "")

    cells = [
        f"({row.group}) {row.varied}" if row.group else row.name,
        cell("model.encoder_layers", own.encoder_layers),
        cell("model.d_model", own.d_model),
        cell("model.d_ff", own.d_ff),
        cell("model.num_heads", own.num_heads),
        cell("model.key_dim", own.d_k),
        cell("training.dropout", own.dropout),
        cell("training.label_smoothing", own.label_smoothing),
        outcome.perplexity_text(),
        outcome.bleu(),
        f"{outcome.parameters:,}",
        f"{outcome.train_seconds:,.0f}{machine}",
        f"{row.perplexity:.2f}",
        f"{row.bleu}",
        f"{row.millions} million" if row.millions else "",
    ]
    return "| " + " | ".join(cells) + " |"


def agreement(outcomes: dict[str, Outcome]) -> list[str]:
    """Which rows go the paper's way: better or worse than base, by perplexity and by BLEU, and how many of them."""
    if "base" not in outcomes or len(outcomes) < 2:
        return []
    signs = {row.name: signs_of(row, outcomes) for row in ROWS[1:] if row.name in outcomes}
    lines = [
        "Against base, better (+) or worse (-), here and in the paper. A difference of BLEU here is = if it is at most "
        f"{NOISE}, within the noise: another seed moves BLEU on this corpus by 0.3 to 0.5. How far one moves PPL has "
        "not been measured, so any difference of it has a sign.",
        "",
        "| | PPL | paper | BLEU | paper |",
        "|---|:---:|:---:|:---:|:---:|",
    ]
    lines += [f"| {name} | {' | '.join(found)} |" for name, found in signs.items()]
    by_perplexity = sum(found.perplexity == found.paper_perplexity for found in signs.values())
    clear = [found for found in signs.values() if found.bleu != "="]
    by_bleu = sum(found.bleu == found.paper_bleu for found in clear)
    counts = (
        f"Of {len(signs)} rows, {by_perplexity} go the paper's way by PPL; by BLEU {by_bleu} do, "
        f"{len(clear) - by_bleu} do not, and {len(signs) - len(clear)} are within the noise."
    )
    return [*lines, "", counts, ""]


class Signs(NamedTuple):
    """How a row stands against base."""

    perplexity: str
    paper_perplexity: str
    bleu: str
    paper_bleu: str


def signs_of(row: Row, outcomes: dict[str, Outcome]) -> Signs:
    """The signs of a row that was trained."""
    found, ours, paper = outcomes[row.name], outcomes["base"], ROWS[0]
    return Signs(
        sign(ours.perplexity - found.perplexity),
        sign(paper.perplexity - row.perplexity),
        sign(bleu_of(found) - bleu_of(ours), NOISE),
        sign(row.bleu - paper.bleu),
    )


def bleu_of(outcome: Outcome) -> float:
    """BLEU of raw text; 0 if it is undefined."""
    return outcome.score("BLEU")["value"] or 0.0


def sign(gain: float, limit: float = 0.0) -> str:
    """What a gain over base is called: "=" if it is at most `limit`, up or down, in hundredths as the table has it."""
    return "=" if round(abs(gain), 2) <= limit else "+" if gain > 0 else "-"
