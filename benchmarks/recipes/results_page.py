"""Write the tables of docs/results.md: `python -m benchmarks.recipes.results_page`.

Every number comes from the scores that training wrote beside each report: docs/results/RECIPE/RUN.json is the
scores.json of that run, RUN.md its report.md. docs/results/recipes.toml names the recipes and their runs.
"""

import json
import pathlib
import re
import tomllib
from statistics import mean, stdev
from typing import Any, NamedTuple

import typer

from keras_transformer.commands.console import exit_codes
from keras_transformer.ground.durations import duration
from keras_transformer.ground.errors import UserError
from keras_transformer.ground.files import write_atomically
from keras_transformer.inspection.markdown import table_of

DOCS = pathlib.Path(__file__).parents[2] / "docs"
SCORES = (
    ("BLEU", "raw text"),
    ("BLEU", "raw text, lower-cased"),
    ("BLEU", "tokenised, lower-cased"),
    ("chrF", "raw text"),
)
RUN_HEADS = (
    *("recipe", "seed", "BLEU", "BLEU, lower-cased", "BLEU, tokenised, lower-cased", "chrF"),
    *("updates", "time", "processor", "commit"),
)
RECIPE_HEADS = ("recipe", "languages", "what it is", "parameters", "how it is trained", "what is trained before it")
NO_BREAK = "\N{NO-BREAK SPACE}"
SECTION = re.compile(r"(<!-- table (\w+):[^>]*-->\n).*?(<!-- end of table -->)", re.DOTALL)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class ResultsError(UserError):
    """The scores of a run are missing, or lack something."""


class Run(NamedTuple):
    """What the table shows of one run."""

    name: str  # of its files in docs/results, such as "tiny/seed1"
    seed: int
    scores: dict[tuple[str, str], tuple[float, float]]  # name and form -> value and half of its interval
    parameters: int
    updates: int
    seconds: float
    processor: str
    commit: str

    def cells(self) -> list[str]:
        scores = [f"{value:.2f} ± {margin:.2f}" for value, margin in (self.scores[key] for key in SCORES)]
        cells = [*scores, f"{self.updates:,}", duration(self.seconds), self.processor, self.commit[:7]]
        return [f"[{self.seed}](results/{self.name}.md)", *(cell.replace(" ", NO_BREAK) for cell in cells)]


class Recipe(NamedTuple):
    """One recipe and all its runs; the fields are the keys of recipes.toml."""

    name: str
    pair: str
    what: str
    how: str
    runs: list[Run]
    before: str = ""

    def row(self) -> list[str]:
        """What the recipe is, and how it is trained: one row."""
        link = self.how.removeprefix("docs/") if self.how.startswith("docs/") else f"../{self.how}"
        how = f"[{pathlib.PurePath(self.how.partition('#')[0]).name}]({link})"
        return [f"**{self.name}**", self.pair, self.what, f"{self.runs[0].parameters:,}", how, self.before]

    def rows_of_runs(self) -> list[list[str]]:
        """One row per run, and the mean with the standard deviation if there are several."""
        rows = [run.cells() for run in self.runs]
        if len(rows) > 1:
            values = [[run.scores[key][0] for run in self.runs] for key in SCORES]
            means = [f"**{mean(scores):.2f}**{NO_BREAK}({stdev(scores):.2f})" for scores in values]
            rows.append([f"mean{NO_BREAK}(sd)", *means, *[""] * 4])
        return [[f"**{self.name}**" if number == 0 else "", *row] for number, row in enumerate(rows)]


def read_run(name: str, folder: pathlib.Path) -> Run:
    """Read docs/results/NAME.json, the scores.json of a run."""
    path = folder / f"{name}.json"
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        scores = {(score["name"], score["form"]): (score["value"], score["margin"]) for score in result["scores"]}
        training = result["training"]
        run = Run(
            name,
            training["seed"],
            {key: scores[key] for key in SCORES},
            result["parameters"],
            result["step"],
            training["seconds"],
            short_name(training["machine"]),
            training["commit"],
        )
    except (OSError, ValueError, KeyError) as error:
        raise ResultsError(f"{path} is no scores.json of a finished run: {error!r}.") from None
    return run


def short_name(machine: str) -> str:
    """ "Intel(R) Xeon(R) Processor, 2 cores" -> "Intel Xeon"."""
    return machine.partition(",")[0].replace("(R)", "").removesuffix(" Processor")


def read_recipes(folder: pathlib.Path) -> list[Recipe]:
    """Read recipes.toml and the scores of every run that it names."""
    entries: list[dict[str, Any]] = tomllib.loads((folder / "recipes.toml").read_text(encoding="utf-8"))["recipe"]
    return [Recipe(**{**entry, "runs": [read_run(name, folder) for name in entry["runs"]]}) for entry in entries]


def filled(page: str, recipes: list[Recipe]) -> str:
    """Return the page with its tables written anew: each between `<!-- table NAME: ... -->` and its end.

    "recipes" has the runs, "recipes_explained" a row per recipe.
    """
    tables = {
        "recipes": table_of(RUN_HEADS, [row for recipe in recipes for row in recipe.rows_of_runs()]),
        "recipes_explained": table_of(RECIPE_HEADS, [recipe.row() for recipe in recipes]),
    }
    return SECTION.sub(lambda match: f"{match[1]}{tables[match[2]]}\n{match[3]}", page)


@app.command()
def main() -> None:
    """Write the tables of docs/results.md anew from the scores of the runs."""
    with exit_codes():
        page = DOCS / "results.md"
        write_atomically(page, filled(page.read_text(encoding="utf-8"), read_recipes(DOCS / "results")))


if __name__ == "__main__":
    app()
