"""The story of a run: from a configuration to a run folder that can translate."""

import logging
import time

import keras

from keras_transformer.model import Transformer
from keras_transformer.tokenizer import Tokenizer, train_tokenizer
from train import callbacks
from train.batches import PackedBatches, encode_corpus, training_dataset
from train.checkpoints import Checkpoints
from train.corpus import load_corpus
from train.devices import choose_strategy
from train.metrics import MetricsLog
from train.optimizer import paper_optimizer
from train.run_folder import RunFolder
from train.trainer import TrainingModel

log = logging.getLogger("train")


def run(config):
    folder = RunFolder(config.run_folder)
    folder.config.write_text(config.to_toml(), encoding="utf-8")
    corpus = load_corpus(config.data)
    if not folder.tokenizer.exists():
        train_tokenizer((s for pair in corpus.train for s in pair), folder.tokenizer, config.tokenizer.vocab_size)
    tokenizer = Tokenizer(folder.tokenizer)
    training = config.training
    started = time.time()
    pairs = encode_corpus(corpus.train, tokenizer, training.row_length)
    batches = PackedBatches(pairs, training.tokens_per_batch, training.row_length, training.seed)
    log.info("encoded %d pairs in %.1f s; skipped %s; padding %.2f%%; %d steps an epoch", len(pairs), time.time() - started, dict(pairs.skipped), 100 * batches.padding, batches.steps_per_epoch)
    strategy = choose_strategy()
    with strategy.scope():
        keras.utils.set_random_seed(training.seed)
        model_config = config.model.resolve(tokenizer.vocab_size, training.dropout, training.label_smoothing)
        model_config.save(folder.model)
        transformer = Transformer(model_config)
        model = TrainingModel(transformer.input, transformer.output)
        model.prepare(paper_optimizer(model_config.d_model, training), training.seed, model_config.label_smoothing, training.xla)
    log.info("%d parameters", transformer.count_params())
    checkpoints = Checkpoints(folder.checkpoints, training.keep_checkpoints)
    progress = checkpoints.restore_latest(model, model.optimizer) or {"step": 0}
    first = progress["step"]
    metrics = MetricsLog(folder, first)
    model.fit(
        training_dataset(batches, first, training.steps),
        steps_per_epoch=training.steps - first,
        verbose=0,
        shuffle=False,
        callbacks=[
            callbacks.Progress(metrics, first, training.steps, training.log_every),
            callbacks.SaveCheckpoints(checkpoints, first, training.steps, training.checkpoint_every, lambda: {}),
        ],
    )
