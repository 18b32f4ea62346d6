"""table3.md: the rows that were trained beside the figures of the paper."""

from benchmarks.trials.table3_rows import ROWS, Row, overrides_of
from benchmarks.trials.training import Outcome
from keras_transformer.machine import processor_and_cores
from train.config import RunConfig

HEAD = (
    "| | N | d_model | d_ff | h | d_k | P_drop | epsilon_ls | PPL | BLEU | parameters | minutes | paper: PPL "
    "| BLEU | parameters |"
)

NOTE = """
Each row is the row of Table 3 in proportion: what the paper changes by a factor against its base model, the row changes
by that factor against the row (base) of this table (layers are rounded). A cell is empty if it has the value of the
base. All rows have the same pairs, tokenizer, steps, schedule and seed. PPL (perplexity per piece, without label
smoothing) and BLEU (raw text, cased, with the 95 per cent interval of 1,000 resamples) are of the validation set, which
also chose between the last and the averaged weights. Each row was trained once. Another seed moves BLEU on this corpus
by 0.3 to 0.5, so smaller differences mean nothing. The paper's figures are of newstest2013, after 100,000 steps on 4.5
million pairs (300,000 for big).
"""


def table(base: RunConfig, outcomes: dict[str, Outcome], command: str) -> str:
    """Return table3.md. Rows without an outcome are left out."""
    lines = [
        "# Table 3, scaled",
        "",
        f"`{command}` on {processor_and_cores()}: {base.training.steps:,} steps of {base.training.tokens_per_batch:,} "
        f"target positions, seed {base.training.seed}; {len(outcomes)} of {len(ROWS)} rows trained.",
        "",
        HEAD,
        "|---|" + "---:|" * (HEAD.count("|") - 2),
    ]
    lines += [table_row(row, base, outcomes[row.name]) for row in ROWS if row.name in outcomes]
    if found := next(iter(outcomes.values()), None):
        lines += ["", f"BLEU: {found.run.score('BLEU', 'raw text')['signature']}"]
    lines += ["", *agreement(outcomes), NOTE.strip()]
    return "\n".join(lines) + "\n"


def table_row(row: Row, base: RunConfig, outcome: Outcome) -> str:
    """One line of the table."""
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
        f"{outcome.perplexity:.2f}",
        outcome.bleu(),
        f"{outcome.parameters:,}",
        f"{outcome.run.minutes:.1f}",
        f"{row.perplexity:.2f}",
        f"{row.bleu}",
        f"{row.millions} million" if row.millions else "",
    ]
    return "| " + " | ".join(cells) + " |"


def agreement(outcomes: dict[str, Outcome]) -> list[str]:
    """Which rows go the paper's way: better or worse than base, by perplexity and by BLEU."""
    if "base" not in outcomes or len(outcomes) < 2:
        return []
    ours, paper = outcomes["base"], ROWS[0]
    lines = ["Against base, better (+) or worse (-), here and in the paper:", "", "| | PPL | paper | BLEU | paper |"]
    lines.append("|---|:---:|:---:|:---:|:---:|")
    for row in ROWS[1:]:
        if found := outcomes.get(row.name):
            signs = [
                sign(ours.perplexity - found.perplexity),
                sign(paper.perplexity - row.perplexity),
                sign(bleu_of(found) - bleu_of(ours)),
                sign(row.bleu - paper.bleu),
            ]
            lines.append(f"| {row.name} | " + " | ".join(signs) + " |")
    return [*lines, ""]


def bleu_of(outcome: Outcome) -> float:
    """BLEU of raw text; 0 if it is undefined."""
    return outcome.run.score("BLEU", "raw text")["value"] or 0.0


def sign(gain: float) -> str:
    """What a gain over base is called."""
    return "+" if gain > 0 else "-" if gain < 0 else "="
