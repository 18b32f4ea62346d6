"""The story of a run (train/run.py), told by stand-ins that note their calls: checks first, then what is written."""

import types
from unittest import mock

import pytest

import train.run
from keras_transformer.inference import TEXT
from tests.support.places import ROOT

CHECKS = {name for name in vars(train.run) if name.startswith("check_")}
WRITES = [  # in this order: each relies on those before it, or a process that is killed between them does
    "record_training_text", "record_part", "write_configuration", "keep_check_lines", "load_start_weights", "fit",
    "select_weights", "write_projector", "write_report", "record_final_scores",
]  # fmt: skip


@pytest.fixture
def told(monkeypatch):
    """A function that calls `run` or `dry_run` and returns the names of what it called, and its result."""

    def tell(function, is_chief=True, finds=False, outputs=TEXT):
        names = []
        config = mock.MagicMock()
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

        def stand_in(name):
            return lambda *arguments, **named: names.append(name) or results.get(name) or mock.MagicMock()

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
