"""Where things are that tests read: the checkout, and Multi30k if this machine has it."""

import pathlib

ROOT = pathlib.Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "configs").rglob("*.toml"))
MULTI30K_CONFIGS = [
    path for path in CONFIGS if path.name == "multi30k.toml" or path.parent.name in ("multi30k", "paper")
]
CORPORA = [ROOT / "data/multi30k", ROOT.parent / "shared/data/multi30k"]
MULTI30K = next(filter(pathlib.Path.is_dir, CORPORA), None)
TOKENISED_MULTI30K = next((path for path in CORPORA if (path / "val.lc.norm.tok.de.gz").exists()), None)
TREEBANK = next(
    filter(
        pathlib.Path.is_file,
        [folder / "data/penn_treebank_sample.zip" for folder in (ROOT, ROOT.parent / "shared")],
    ),
    None,
)
