"""Table 1, measured: what is counted in a graph, exponents, path lengths, and the file that comes of it."""

import json
import math

import numpy as np
import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.paper.layer_kinds.claims import CLAIMS, MEASURED, STACKED
from benchmarks.paper.layer_kinds.fit import exponent
from benchmarks.paper.layer_kinds.graph import count, loop_steps
from benchmarks.paper.layer_kinds.report import in_d, in_n, markdown
from benchmarks.result_files import RESULTS
from tests.support.processes import run_without_tensorflow

jax = pytest.importorskip("jax", reason="jax is not installed: pip install -r requirements-peers.txt")


def counted(function, *shapes):
    return count(jax.make_jaxpr(function)(*(np.ones(shape, "float32") for shape in shapes)))


def test_a_product_is_two_operations_per_element_and_summand():
    assert counted(lambda a, b: a @ b, (3, 4), (4, 5)) == (2 * 3 * 4 * 5, [1])
    batched = counted(lambda a, b: jax.numpy.einsum("bij,bkj->bik", a, b), (7, 3, 4), (7, 5, 4))
    assert batched == (7 * 2 * 3 * 4 * 5, [1])


def test_products_that_do_not_wait_for_each_other_are_one_step_and_those_that_do_are_several():
    side_by_side = counted(lambda a: (a @ a) + (a @ a), (2, 2))
    assert (side_by_side.flops, side_by_side.sequential) == (2 * 16, 1)
    in_turn = counted(lambda a: jax.numpy.tanh((a @ a) * 2.0) @ a, (2, 2))
    assert (in_turn.flops, in_turn.sequential) == (2 * 16, 2)


def test_the_chain_of_a_product_is_the_longer_one_of_its_factors_and_itself():
    assert counted(lambda a: (a @ a) @ (a @ a), (2, 2)).sequential == 2
    assert counted(lambda a: ((a @ a) @ a) @ (a @ a), (2, 2)).sequential == 3


def test_a_loop_counts_as_often_as_it_runs():
    def loop(state, inputs):
        step = lambda state, item: ((state @ item), state.sum())  # noqa: E731
        return jax.lax.scan(step, state, inputs)

    found = counted(loop, (2, 2), (9, 2, 2))
    assert found.flops == 9 * 16
    assert found.chains == [9, 8]  # the last sum is of the state after eight products
    assert loop_steps(jax.make_jaxpr(loop)(np.ones((2, 2)), np.ones((9, 2, 2))).jaxpr) == 9


def test_a_loop_over_items_that_do_not_wait_is_one_step():
    found = counted(lambda items: jax.lax.map(lambda item: item @ item, items), (9, 2, 2))
    assert (found.flops, found.sequential) == (9 * 16, 1)


def test_a_function_within_a_function_is_counted_and_a_loop_without_a_number_is_refused():
    assert counted(jax.jit(lambda a: jax.jit(lambda b: b @ b)(a) @ a), (2, 2)) == (32, [2])
    with pytest.raises(BenchmarkError):
        counted(lambda a: jax.lax.while_loop(lambda b: b.sum() < 9, lambda b: b @ b, a), (2, 2))


def test_the_exponent_of_a_power_is_found_with_its_error():
    assert exponent([1, 2, 4, 8], [3, 12, 48, 192]) == pytest.approx((2.0, 0.0, 4), abs=1e-9)
    # log2 y = 0, 1, 0: a flat line, with residuals -1/3, 2/3, -1/3; s.e. sqrt((6/9 / 1) / 2)
    found = exponent([1, 2, 4], [1, 2, 1])
    assert found == pytest.approx((0.0, math.sqrt(1 / 3), 3), abs=1e-9)
    assert str(found) == "0.00 ± 0.58" and str(exponent([1, 2], [1, 2])) == "1.00"


SCRIPT = """
import json, sys, types
from benchmarks.paper import table1
from benchmarks.paper.layer_kinds import timing
timing.Work = lambda *_: types.SimpleNamespace(seconds=[0.5], is_capped=False, turn=lambda: None)  # compiles nothing
found = table1.measure_all(table1.Extent((16, 64), (16,)), rounds=1, cap=10.0)
from benchmarks.paper.layer_kinds.kinds import Sizes
from benchmarks.paper.layer_kinds.path import layers_needed
found["long path"] = layers_needed("convolutional", 512, Sizes())
print(json.dumps(found), file=open(sys.argv[1], "w"))
print("tensorflow" in sys.modules)
"""


def test_work_takes_turns_unless_one_takes_longer_than_the_cap():
    from benchmarks.paper.layer_kinds.timing import SHORTEST, Work

    work = Work(lambda a: a @ a, (np.ones((4, 4), "float32"),), cap=60.0)
    work.turn()
    work.turn()
    assert len(work.seconds) == 2 and not work.is_capped and 1 < work.repeats <= SHORTEST / 1e-6
    slow = Work(lambda a: a @ a, (np.ones((4, 4), "float32"),), cap=0.0)
    slow.turn()
    assert len(slow.seconds) == 1 and slow.is_capped


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """What table1.json holds of short sentences and narrow layers; its times are made up."""
    path = tmp_path_factory.mktemp("table1") / "table1.json"
    run_without_tensorflow("jax", SCRIPT, path)
    return json.loads(path.read_text(encoding="utf-8"))


def cell(measured, kind, n=64, d=16):
    return next(cell for cell in measured["cells"] if (cell["kind"], cell["n"], cell["d"]) == (kind, n, d))


@pytest.mark.release
def test_operations_are_those_of_the_formulas(measured):
    n, d = 64, 16
    assert cell(measured, "self_attention")["flops_forward"] == 8 * n * d**2 + 4 * n**2 * d
    assert cell(measured, "masked")["flops_forward"] == 8 * n * d**2 + 4 * n**2 * d
    assert cell(measured, "convolutional")["flops_forward"] == 2 * 3 * n * d**2
    assert cell(measured, "recurrent")["flops_forward"] == 12 * n * d**2
    blocks = math.ceil(n / 17)
    assert cell(measured, "restricted")["flops_forward"] == 8 * n * d**2 + 4 * blocks * 17 * 33 * d
    for kind in MEASURED:  # the backward pass multiplies twice as much
        assert cell(measured, kind)["flops_training"] == 3 * cell(measured, kind)["flops_forward"]


@pytest.mark.release
def test_only_the_recurrent_layer_waits_for_every_word(measured):
    sequential = {kind: [cell(measured, kind, n)["sequential"] for n in (16, 64)] for kind in MEASURED}
    assert sequential == {
        "self_attention": [4, 4], "masked": [4, 4], "restricted": [4, 4], "convolutional": [1, 1],
        "recurrent": [16, 64],
    }  # fmt: skip


@pytest.mark.release
def test_path_lengths_are_those_of_the_reach_of_a_layer(measured):
    found = {(each["kind"], each["n"]): (each["layers"], each["steps"], each["length"]) for each in measured["paths"]}
    assert measured["long path"] == 511  # though nearly all of the gradient stays near the middle
    for n in (16, 64):
        assert found["self_attention", n] == (1, 1, 1)
        assert found["recurrent", n] == (1, n, n)
        assert found["convolutional", n] == (n - 1, 1, n - 1)
        assert found["dilated", n] == (round(math.log2(n)), 1, round(math.log2(n)))
        layers = math.ceil((n - 1) / 8)
        assert found["restricted", n] == (layers, 1, layers)


@pytest.mark.release
def test_the_file_has_every_layer_beside_the_papers_row(measured):
    text = markdown(measured)
    assert all(claim.name.format(**measured["sizes"]) in text for claim in (*MEASURED.values(), *STACKED.values()))
    assert all(f"O({claim.complexity})" in text for claim in CLAIMS.values())
    assert measured["command"] in text and "| 64 |" in text
    assert in_n(measured, "recurrent", 16, "flops_forward").value == pytest.approx(1.0)
    # 8 n d^2 + 4 n^2 d at d = 16: 393,216 at n = 64, eight times the 49,152 at n = 16
    assert in_n(measured, "self_attention", 16, "flops_forward").value == pytest.approx(1.5)


def test_the_committed_file_is_what_the_report_makes_of_the_committed_numbers():
    found = json.loads((RESULTS / "table1.json").read_text(encoding="utf-8"))
    text = markdown(found)
    assert (RESULTS / "table1.md").read_text(encoding="utf-8") == text
    [summary] = [line for line in text.splitlines() if line.startswith("| convolutional") and "O(k · n · d²)" in line]
    assert "| O(log_k(n)) | 2,047; 11 |" in summary  # as Table 1 prints it: contiguous, dilated
    [contiguous] = [line for line in text.splitlines() if line.startswith("| convolutional") and "| O(n / k) |" in line]
    [dilated] = [line for line in text.splitlines() if "dilated" in line and "| O(log_k(n)) |" in line]
    assert "2,047" in contiguous and "| 11 |" in dilated


def test_the_exponent_in_d_is_that_of_the_longest_sentence():
    cells = [{"kind": "recurrent", "n": n, "d": d, "flops_forward": n * d ** (n // 4)} for n in (4, 8) for d in (2, 4)]
    assert in_d({"cells": cells, "lengths": [4, 8]}, "recurrent", "flops_forward").value == pytest.approx(2.0)
