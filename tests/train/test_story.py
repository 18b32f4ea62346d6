"""The story of a run (train/run.py), told by stand-ins that note their calls: checks first, then what is written."""

import os
import types
from unittest import mock

import pytest

import train.__main__
import train.run
from keras_transformer.inference import TEXT
from keras_transformer.run_folder import RunFolder
from tests.support.commands import invoke
from tests.support.places import ROOT
from tests.support.runs import write_config

CHECKS = {name for name in vars(train.run) if name.startswith("check_")}
WRITES = [  # in this order: each relies on those before it, or a process that is killed between them does
    "record_training_text", "record_part", "write_configuration", "keep_check_lines", "load_start_weights", "fit",
    "select_weights", "write_projector", "write_report", "record_final_scores",
]  # fmt: skip


@pytest.fixture
def told(monkeypatch):
    """A function that calls `run` or `dry_run` and returns the names of what it called, and its result.

    Its attributes are of the last call: `config`, `calls` (from each name to its arguments), `made` (to its result).
    """

    def tell(function, is_chief=True, finds=False, outputs=TEXT):
        names, config = [], mock.MagicMock()
        tell.config, tell.calls = config, {}
        config.training.find_micro_batches, config.data.outputs = finds, outputs
        config.with_tokenizer.return_value = config.model_copy.return_value = config
        workers = mock.MagicMock(is_chief=is_chief)
        workers.only_chief = lambda function, *arguments: function(*arguments) if is_chief else None
        workers.wait = lambda: names.append("wait")
        cluster = mock.MagicMock(worker=types.SimpleNamespace(is_chief=is_chief, count=2))
        results = {
            "Workers": workers, "read_cluster": cluster, "with_found_micro_batches": config,
            "find_micro_batches": (config.training, mock.MagicMock()), "own_shards": [mock.MagicMock()],
            "choose_strategy": mock.MagicMock(num_replicas_in_sync=1),
        }  # fmt: skip

        tell.made = results | {name: mock.MagicMock(name=name) for name in vars(train.run) if name not in results}

        def stand_in(name):
            def call(*arguments, **named):
                names.append(name)
                tell.calls[name] = (*arguments, *named.values())
                return tell.made[name]

            return call

        with monkeypatch.context() as patch:
            for name, value in vars(train.run).items():
                if isinstance(value, types.FunctionType | type) and value.__module__ != train.run.__name__:
                    patch.setattr(train.run, name, stand_in(name))
            return names, function(config)

    return tell


@pytest.mark.parametrize("is_chief", [True, False])
@pytest.mark.parametrize("finds", [True, False])
def test_every_check_comes_before_the_first_thing_that_is_written(told, is_chief, finds):
    names, folder = told(train.run.run, is_chief, finds)
    first = min(names.index(name) for name in WRITES if name in names)
    assert CHECKS - {"check_frozen"} <= set(names[:first])  # `compiled` freezes, before the first step
    assert (folder is not None) is is_chief
    assert (names.count("find_micro_batches"), names.count("report_preflight")) == (finds, is_chief)


@pytest.mark.parametrize("is_chief", [True, False])
def test_the_chief_writes_everything_in_order_and_all_workers_wait_for_its_report(told, is_chief):
    names, _ = told(train.run.run, is_chief)
    assert [name for name in names if name in WRITES] == (WRITES if is_chief else ["fit"])
    assert names[-1] == "wait" and ("compiled" in names) and names.index("build") < names.index("fit")


def test_each_part_of_the_story_gets_what_the_parts_before_it_have_made(told):
    told(train.run.run)
    config, made, workers = told.config, told.made, told.made["Workers"]
    worker, folder, data = made["read_cluster"].worker, made["run_folder_of"].__enter__(), made["prepare_data"]
    corpus, tokenizer, transformer = made["load_corpus"], made["share_tokenizer"], made["build"]
    model_config, training, selection = config.transformer_config(), config.training, made["select_weights"]
    assert told.calls == {
        "check_idle_keys": (training,), "read_cluster": (os.environ.get("TF_CONFIG"),), "log_as": (worker,),
        "run_folder_of": (config.run_folder, worker), "report_lost_workers": (made["read_cluster"],),
        "with_found_micro_batches": (folder, config, worker), "check_unchanged": (folder, config),
        "check_start": (folder, config, worker), "choose_strategy": (made["read_cluster"],),
        "Workers": (made["choose_strategy"], worker), "check_same_on_all_workers": (config, workers),
        "check_division": (training, config.data.shards, workers.replicas, workers.worker),
        "load_corpus": (config.data,), "share_tokenizer": (config.effective_tokenizer, corpus, folder, workers),
        "prepare_data": (corpus, tokenizer, training, config.cache_path, workers.worker, config.data),
        "check_same_text_on_all_workers": (data, workers), "where_it_stands": (folder, training),
        "record_training_text": (folder, data, made["where_it_stands"], workers.worker), "commit": (),
        "record_part": (folder, training, made["commit"], made["check_unchanged"]),
        "write_configuration": (folder, config, model_config),
        "keep_check_lines": (data.corpus.validation, folder.check_lines),
        "report_preflight": (training, data, model_config, workers.replicas),
        "build": (model_config, training, workers.strategy),
        "load_start_weights": (training, folder, transformer, tokenizer),
        "compiled": (transformer, training, workers.strategy),
        "Validator": (transformer, data, config.translation, training.xla, training.positions_at_once()),
        "inspections_of": (training, transformer, tokenizer, made["Validator"]),
        "fit": (config, folder, data.batches, made["compiled"], made["Validator"], workers, made["inspections_of"]),
        "report_is_missing": (folder,), "interrupted_by_signals": (made["report_is_missing"],),
        "select_weights": (folder, training, transformer, made["Validator"]),
        "write_projector": (folder.tensorboard, transformer, data.tokenizer.pieces()),
        "write_report": (config, folder, data, made["fit"], selection, workers.describe()),
        "record_final_scores": (
            folder, config, made["fit"].step, made["write_report"].scores, selection.kept.validation.loss
        ),
    }  # fmt: skip
    training.positions_at_once.assert_any_call(workers.replicas)
    config.with_tokenizer.assert_any_call(tokenizer.vocab_size, tokenizer.normalization)
    config.transformer_config.assert_any_call(tokenizer.vocab_size)


def test_micro_batches_are_found_for_the_model_that_is_trained(told):
    told(train.run.run, finds=True)
    config, made, data = told.config, told.made, told.made["prepare_data"]
    *arguments, compile_for = told.calls["find_micro_batches"]
    model_config, strategy = made["build"].model_config, made["Workers"].strategy
    assert arguments == [config.training, model_config, data.batches, strategy]
    assert compile_for("training") is made["compiled"] and told.calls["compiled"] == (
        made["build"],
        "training",
        strategy,
    )
    assert told.calls["write_configuration"] == (made["run_folder_of"].__enter__(), config, model_config)
    config.model_copy.assert_called_with(update={"training": config.training})
    assert told.calls["fit"][3] is made["find_micro_batches"][1]


def test_each_part_of_a_dry_run_gets_what_the_parts_before_it_have_made(told):
    told(train.run.dry_run)
    config, made, training = told.config, told.made, told.config.training
    worker, folder, data = made["read_cluster"].worker, made["run_folder_to_read"].__enter__(), made["prepare_data"]
    corpus, tokenizer, model_config = made["load_corpus"], made["tokenizer_on_trial"], config.transformer_config()
    assert told.calls == {
        "check_idle_keys": (training,), "read_cluster": (os.environ.get("TF_CONFIG"),), "choose_strategy": (),
        "run_folder_to_read": (config.run_folder, worker), "with_found_micro_batches": (folder, config, worker),
        "check_unchanged": (folder, config), "check_division": (training, config.data.shards, 2, worker),
        "check_start": (folder, config, worker), "load_corpus": (config.data,),
        "tokenizer_on_trial": (config.effective_tokenizer, corpus, folder, worker),
        "prepare_data": (corpus, tokenizer, training, config.cache_path, worker, config.data),
        "where_it_stands": (folder, training), "record_of_text": (folder, data, made["where_it_stands"], worker),
        "check_frozen": (model_config, training.frozen), "report_preflight": (training, data, model_config, 2),
        "own_shards": (corpus.train, worker), "proposal_lines": (made["own_shards"][0], config.data),
    }  # fmt: skip


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--set", "training.steps=7"]])
@pytest.mark.parametrize("is_chief", [True, False])
def test_the_command_trains_or_only_looks_and_the_chief_prints_its_folder(monkeypatch, tmp_path, options, is_chief):
    called, folder = [], RunFolder(tmp_path / "run") if is_chief else None
    monkeypatch.setattr(train.run, "run", lambda config: called.append(("run", config.training.steps)) or folder)
    monkeypatch.setattr(train.run, "dry_run", lambda config: called.append(("dry_run", config.training.steps)))
    result = invoke(train.__main__.app, write_config(tmp_path), *options)
    is_dry = "--dry-run" in options
    assert called == [("dry_run" if is_dry else "run", 7 if "--set" in options else 5)] and result.exit_code == 0
    assert result.stdout == ("" if is_dry or not is_chief else f"{tmp_path / 'run'}\n")


def test_the_number_of_micro_batches_that_was_found_is_recorded_before_the_first_step(told):
    names, _ = told(train.run.run, finds=True)
    assert "write_configuration" in names[names.index("find_micro_batches") : names.index("fit")]


def test_a_dry_run_makes_every_check_of_one_worker_and_writes_nothing(told):
    names, result = told(train.run.dry_run)
    assert {name for name in CHECKS if "on_all_workers" not in name} <= set(names)
    assert not {*WRITES, "share_tokenizer"} & set(names) and result is None
    assert {"record_of_text", "report_preflight"} <= set(names)  # of which the first refuses another text


def test_rules_of_cleaning_are_proposed_for_text_alone(told):
    for outputs in (TEXT, "trees"):
        names, _ = told(train.run.dry_run, outputs=outputs)
        assert ("proposal_lines" in names) is (outputs == TEXT)


def test_everything_that_training_logs_goes_to_the_log_that_commands_show():
    lines = [line for path in (ROOT / "train").rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    assert {line for line in lines if line.startswith("log = ")} == {'log = logging.getLogger("train")'}
