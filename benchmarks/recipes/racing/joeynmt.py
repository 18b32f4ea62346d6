"""JoeyNMT 2.3 in the race: its commands `train` and `test`, in an environment of its own."""

import json
import pathlib
import signal
import subprocess

from benchmarks.errors import BenchmarkError
from benchmarks.multi30k import lines_of
from benchmarks.recipes.racing.racer import Contestant, Task
from keras_transformer.pieces.tokenizer import Tokenizer

CHECKPOINT_EVERY = 100  # steps; race.md has how many seconds that is
SPECIALS = ["<unk>", "<pad>", "<s>", "</s>"]  # JoeyNMT's ids 0 to 3
READ_TOKENS = "import sys, torch; print(torch.load(sys.argv[1], weights_only=False)['stats_state']['total_tokens'])"
NOTE = """JoeyNMT writes its checkpoints when it validates, so its validations are on its clock: 8 sentences each,
translated greedily. It has batches of {batch_tokens:,} tokens (--peer-batch), padding included, without length buckets
(it has none); in a trial on two cores of an AMD EPYC it trained on 1,330 target tokens/s in batches of 2,048, and on
about 1,000 in batches of 4,096. The epsilon of Adam is 1e-9 here and 1e-8 there, where no key sets it. It applies its
dropout to attention weights and inside the feed-forward network as well, as it is shipped: per token it may learn more
with others. It searches with the length penalty ((5 + length) / 6)^1.0."""


class JoeyNMT(Contestant):
    """It writes a checkpoint at each validation, which translates 8 sentences only, so as to take little of its time.

    batch_tokens: of a batch, padding included. On two cores of an AMD EPYC it trained on 1,330 target tokens/s in
    batches of 2,048, and on about 1,000 in batches of 4,096, of which it makes fewer updates. workers: its processes
    that read text; 0 for none, which was as fast.
    """

    name, label, stop_signal = "joeynmt", "JoeyNMT 2.3", signal.SIGINT
    length_normalization = "gnmt"
    batch_tokens, workers = 2048, 2

    def __init__(
        self,
        folder: pathlib.Path,
        task: Task,
        python: pathlib.Path,
        batch_tokens: int = batch_tokens,
        workers: int = workers,
    ):
        super().__init__(folder, task)
        self.python, self.batch_tokens, self.workers = python, batch_tokens, workers
        if not python.exists() or subprocess.run([python, "-c", "import joeynmt"], capture_output=True).returncode:
            raise BenchmarkError(f"{python} has no JoeyNMT: run `make race-peer`, or name its Python with --peer.")

    @property
    def note(self) -> str:
        return NOTE.format(batch_tokens=self.batch_tokens)

    def command(self) -> list[str]:
        """JoeyNMT refuses a folder that exists; so each start has one, beginning with the newest checkpoint."""
        newest = self.checkpoints()
        load = newest[max(newest)] if newest else None
        return [*self._joey("train", self.folder / f"part{self._parts() + 1}", load), "--skip-test"]

    def _parts(self) -> int:
        return len(list(self.folder.glob("part*")))

    def _joey(self, mode: str, model_folder: pathlib.Path, load: pathlib.Path | None) -> list[str]:
        config = self.folder / f"{mode}.yaml"  # JSON is YAML
        config.write_text(json.dumps(self.config(model_folder, load), indent=1), encoding="utf-8")
        return [str(self.python), "-m", "joeynmt", mode, str(config)]

    def config(self, model_folder: pathlib.Path, load: pathlib.Path | None) -> dict:
        """Return its configuration."""
        task = self.task
        vocabulary = self.folder / "vocabulary.txt"
        pieces = [piece for piece in Tokenizer(task.tokenizer).pieces() if piece not in SPECIALS]
        vocabulary.write_text("\n".join([*SPECIALS, *pieces]) + "\n", encoding="utf-8")
        side = {
            "max_length": 126,
            "lowercase": False,
            "normalize": False,
            "level": "bpe",
            "voc_file": str(vocabulary),
            "tokenizer_type": "sentencepiece",
            "tokenizer_cfg": {"model_file": str(task.tokenizer)},
        }
        stack = {
            "type": "transformer",
            "num_heads": task.num_heads,
            "embeddings": {"embedding_dim": task.d_model, "scale": True, "dropout": task.dropout},
            "hidden_size": task.d_model,
            "ff_size": task.d_ff,
            "dropout": task.dropout,
            "layer_norm": task.norm,
        }
        return {
            "name": "race",
            "joeynmt_version": "2.3.0",
            "model_dir": str(model_folder),
            "use_cuda": False,
            "fp16": False,
            "random_seed": 1,
            "num_workers": self.workers,
            "data": {
                "train": str(task.text / "train"),
                "dev": str(task.text / "val"),
                "dataset_type": "plain",
                "src": {"lang": task.languages[0], **side},
                "trg": {"lang": task.languages[1], **side},
                "sample_dev_subset": 8,
                "special_symbols": dict(
                    zip(
                        ("unk_token", "pad_token", "bos_token", "eos_token", "unk_id", "pad_id", "bos_id", "eos_id"),
                        (*SPECIALS, 0, 1, 2, 3),
                        strict=True,
                    )
                ),
            },
            "testing": {
                "batch_size": 64,
                "batch_type": "sentence",
                "max_output_length": 100,
                "eval_metrics": ["bleu"],
                "beam_size": task.beam_size,
                "beam_alpha": task.length_penalty,
                **({"load_model": str(load)} if load else {}),
            },
            "training": {
                "optimizer": "adam",
                "adam_betas": [0.9, 0.98],
                "scheduling": "noam",
                "learning_rate_factor": task.learning_rate_factor,
                "learning_rate_warmup": task.warmup_steps,
                "learning_rate_min": 0.0,
                "normalization": "tokens",
                "label_smoothing": task.label_smoothing,
                "batch_size": self.batch_tokens,
                "batch_type": "token",
                "epochs": 100_000,
                "validation_freq": CHECKPOINT_EVERY,
                "logging_freq": CHECKPOINT_EVERY,
                "keep_best_ckpts": -1,
                "early_stopping_metric": "bleu",
                "print_valid_sents": [0],
                "shuffle": True,
                "overwrite": False,
                **({"load_model": str(load)} if load else {}),
            },
            "model": {
                "initializer": "xavier_uniform",
                "embed_initializer": "xavier_uniform",
                "tied_embeddings": True,
                "tied_softmax": True,
                "encoder": {"num_layers": task.encoder_layers, **stack},
                "decoder": {"num_layers": task.decoder_layers, **stack},
            },
        }

    def checkpoints(self) -> dict[int, pathlib.Path]:
        return {int(path.stem): path for path in self.folder.glob("part*/*.ckpt") if path.stem.isdigit()}

    def tokens(self, checkpoint: pathlib.Path) -> int:
        return int(
            subprocess.run(
                [self.python, "-c", READ_TOKENS, checkpoint], capture_output=True, check=True, text=True
            ).stdout
        )

    def translate(self, checkpoint: pathlib.Path, split: str) -> list[str]:
        output = self.folder / "translations"
        command = [*self._joey("test", checkpoint.parent, checkpoint), "--output-path", str(output)]
        process = subprocess.run(command, capture_output=True, text=True)
        if process.returncode:
            last = process.stderr.strip().rpartition("\n")[2]
            raise BenchmarkError(f"`joeynmt test` ended with exit code {process.returncode}: {last or 'no message'}")
        written = output.with_name("translations.dev")
        lines = lines_of(written.read_text(encoding="utf-8"))
        written.unlink()
        return lines
