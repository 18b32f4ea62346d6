"""The precision in which a machine trains where nobody says one, and what is logged of it."""

import pytest
import tensorflow as tf

from keras_transformer.ground import machine
from train.config.run import check_config
from train.config.training import TrainingConfig
from train.cost import preflight
from train.record.opened_run import run_to_read
from train.workers import hardware
from train.workers.hardware import precision_here, product_flops, xla_multiplies
from train.workers.tf_config import ONLY_WORKER, Worker

AMX, AVX2 = "flags : avx2 avx512f avx512_bf16 amx_bf16\n", "flags : sse4_2 avx2 fma\n"
HALF = TrainingConfig(precision="mixed_bfloat16")


@pytest.fixture
def on(monkeypatch):
    """A function that sets the processor and the GPUs of this machine."""

    def this(cpuinfo=AMX, gpus=(), times=4.0):
        of_xla = {("float32", True): 100e9, ("bfloat16", False): times * 100e9}  # on a CPU, XLA has no fast bfloat16
        monkeypatch.setattr(hardware, "matrix_flops", lambda dtype, xla: of_xla[dtype, xla])
        monkeypatch.setattr(machine, "cpuinfo", lambda: cpuinfo)
        monkeypatch.setattr(tf.config, "list_physical_devices", {"GPU": list(gpus)}.get)

    return this


def asked(**changes):
    return check_config({"run_folder": "x", "data": {"source": "numbers"}} | changes, "x.toml")


@pytest.mark.parametrize(
    ("device", "changes", "worker", "expected"),
    [
        ({}, {}, ONLY_WORKER, "mixed_bfloat16"),
        ({"times": 0.7}, {}, ONLY_WORKER, "float32"),  # AVX-512 BF16 without AMX
        ({"cpuinfo": AVX2}, {}, ONLY_WORKER, "float32"),
        ({"cpuinfo": ""}, {}, ONLY_WORKER, "float32"),  # a system that does not say
        ({"gpus": ["GPU:0"]}, {}, ONLY_WORKER, "float32"),
        ({}, {}, Worker(0, 2), "float32"),
        ({}, {"model": {"kind": "recurrent"}}, ONLY_WORKER, "float32"),
        ({}, {"training": {"lora_rank": 4}}, ONLY_WORKER, "float32"),
    ],
    ids=["AMX", "slow", "AVX2", "unknown", "GPU", "two workers", "recurrent", "adapters"],
)
def test_bfloat16_is_chosen_only_where_it_was_measured_to_pay(on, device, changes, worker, expected):
    on(**device)
    assert precision_here(asked(**changes), worker) == expected


def test_a_new_run_has_the_precision_that_this_machine_gains_by(tmp_path):
    with run_to_read(asked(run_folder=str(tmp_path / "run")), ONLY_WORKER) as opened:
        gains = machine.has_bfloat16_products() and hardware.bfloat16_gain(xla=True) >= hardware.WORTH_ROUNDING
        assert opened.config.training.precision == ("mixed_bfloat16" if gains else "float32")


def test_xla_multiplies_everything_but_bfloat16_on_a_processor(on):
    on()
    assert [xla_multiplies(training) for training in (TrainingConfig(precision="float32"), HALF)] == [True, False]
    on(gpus=["GPU:0"])
    assert xla_multiplies(HALF)


@pytest.mark.parametrize(
    ("cpuinfo", "precision", "times", "said"),
    [
        (AMX, "float32", 4.0, []),
        (AMX, "mixed_bfloat16", 4.0, ["4.0 times as fast as in float32"]),
        (AMX, "mixed_bfloat16", 1.1, ['1.1 times as fast as in float32: set training.precision = "float32"']),
        (AVX2, "mixed_bfloat16", 4.0, ['no instructions for bfloat16 products: set training.precision = "float32"']),
        (AMX, "mixed_float16", 4.0, ['in float16 no faster than in float32: set training.precision = "float32"']),
    ],
)
def test_what_bfloat16_gains_is_measured_and_said(on, cpuinfo, precision, times, said):
    on(cpuinfo, times=times)
    lines = list(preflight.precision_lines(TrainingConfig(precision=precision)))
    assert len(lines) == len(said) and all(part in line for part, line in zip(said, lines, strict=True))


def test_the_time_of_a_run_is_estimated_from_products_as_its_steps_have_them(on):
    on()
    found = [product_flops(TrainingConfig(precision=name)) for name in ("float32", "mixed_bfloat16")]
    assert found == [100e9, 400e9]
