"""Marian in the race: its commands `train` and `decode`, of pymarian, in an environment of its own."""

import pathlib
import re
import signal
import subprocess
import zipfile

from benchmarks.errors import BenchmarkError
from benchmarks.multi30k import lines_of
from benchmarks.recipes.racing.racer import Contestant, Task

CHECKPOINT_EVERY = 100  # updates; race.md has how many seconds that is
RUN = "import sys, _pymarian; sys.exit(_pymarian.main(sys.argv[1:]))"
SUBLAYERS = {"pre": ("n", "da", "n"), "post": ("", "dan", "")}  # before and after each, and after the last, by norm
DISPLAYED = re.compile(r" Up\. (\d+) :.* after ([\d,]+)")  # of a line of its log: updates, and target tokens by then
THREADS = 2
NOTE = """Marian trains in float32, as it must on a CPU, and sorts sentences by length into batches of {tokens:,} target
tokens, which {threads} threads share. Its settings of Adam, clipping (none) and schedule are the same. It keeps no
running average of its weights, as this project keeps none in the race. It divides scores by the number of tokens, as
this project does in this race."""


class Marian(Contestant):
    """It goes on from its newest checkpoint by itself."""

    name, label, stop_signal = "marian", "Marian 1.12.42", signal.SIGTERM
    length_normalization = "tokens"

    def __init__(self, folder: pathlib.Path, task: Task, python: pathlib.Path):
        super().__init__(folder, task)
        self.python = python
        if not python.exists() or subprocess.run([python, "-c", "import pymarian"], capture_output=True).returncode:
            raise BenchmarkError(f"{python} has no pymarian: run `pip install pymarian` there, or name another Python.")

    @property
    def note(self) -> str:
        return NOTE.format(tokens=self.task.tokens_per_batch, threads=THREADS)

    @property
    def vocabulary(self) -> pathlib.Path:
        """The tokenizer under a name that Marian takes for one of SentencePiece."""
        path = self.folder / "vocabulary.spm"
        if not path.exists():
            path.write_bytes(self.task.tokenizer.read_bytes())
        return path

    def command(self) -> list[str]:
        options = [part for key, values in self.options().items() for part in (f"--{key}", *map(str, values))]
        return [str(self.python), "-c", RUN, "train", *options]

    def options(self) -> dict[str, list[object]]:
        """The options of `marian train`, each with its values."""
        task, (before, after, top) = self.task, SUBLAYERS[self.task.norm]
        return {
            "type": ["transformer"],
            "model": [self.folder / "model.npz"],
            "train-sets": [task.text / f"train.{language}" for language in task.languages],
            "vocabs": [self.vocabulary, self.vocabulary],
            "tied-embeddings-all": [],
            "dim-emb": [task.d_model],
            "transformer-dim-ffn": [task.d_ff],
            "transformer-ffn-activation": ["relu"],
            "transformer-heads": [task.num_heads],
            "enc-depth": [task.encoder_layers],
            "dec-depth": [task.decoder_layers],
            "transformer-preprocess": [before],
            "transformer-postprocess": [after],
            "transformer-postprocess-top": [top],
            "transformer-dropout": [task.dropout],
            "label-smoothing": [task.label_smoothing],
            "cost-type": ["ce-mean-words"],
            "learn-rate": [task.peak_rate],
            "lr-warmup": [task.warmup_steps],
            "lr-decay-inv-sqrt": [task.warmup_steps],
            "optimizer-params": [0.9, 0.98, 1e-9],
            "clip-norm": [0],
            "mini-batch": [10_000],
            "mini-batch-words": [task.tokens_per_batch],
            "max-length": [126],
            "cpu-threads": [THREADS],
            "sync-sgd": [],
            "workspace": [2_000],
            "after-epochs": [100_000],
            "save-freq": [f"{CHECKPOINT_EVERY}u"],
            "disp-freq": [f"{CHECKPOINT_EVERY}u"],
            "seed": [1],
        }

    def checkpoints(self) -> dict[int, pathlib.Path]:
        paths = self.folder.glob("model.iter*.npz")
        return {int(path.stem.removeprefix("model.iter")): path for path in paths if zipfile.is_zipfile(path)}

    def tokens(self, checkpoint: pathlib.Path) -> int:
        log = (self.folder / "log.txt").read_text(encoding="utf-8", errors="replace")
        displayed = {int(update): int(tokens.replace(",", "")) for update, tokens in DISPLAYED.findall(log)}
        return displayed[int(checkpoint.stem.removeprefix("model.iter"))]

    def translate(self, checkpoint: pathlib.Path, split: str) -> list[str]:
        task = self.task
        options = ["--models", checkpoint, "--vocabs", self.vocabulary, self.vocabulary, "--beam-size", task.beam_size]
        options += ["--normalize", task.length_penalty, "--cpu-threads", THREADS, "--max-length-factor", 3]
        options += ["--mini-batch", 32, "--maxi-batch", 100, "--maxi-batch-sort", "src", "--quiet"]
        source = "\n".join(task.lines(split, task.languages[0])) + "\n"
        command = [str(self.python), "-c", RUN, "decode", *map(str, options)]
        process = subprocess.run(command, input=source, capture_output=True, text=True)
        if process.returncode:
            last = process.stderr.strip().rpartition("\n")[2]
            raise BenchmarkError(f"`marian decode` ended with exit code {process.returncode}: {last or 'no message'}")
        return lines_of(process.stdout)
