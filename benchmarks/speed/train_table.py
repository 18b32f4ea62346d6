"""The results of the training-speed benchmark: medians, ratios and their spread, as JSON and as a table."""

import json
import os
import pathlib
from collections.abc import Iterator
from statistics import median
from typing import Any, NamedTuple

from benchmarks.result_files import write_result
from benchmarks.speed.contestants.workload import Workload
from keras_transformer.ground.machine import package_versions, processor, processor_cores
from train.cost.cost import training_flops

PACKAGES = "tensorflow", "keras", "keras-hub", "torch", "numpy"
OWN = {"ours": "this project", "ours_bfloat16": "this project, mixed_bfloat16"}
PEERS = {
    "torch_eager": "`torch.nn.Transformer`, eager",
    "torch_compile": "`torch.nn.Transformer`, `torch.compile`",
    "torch_compile_bfloat16": "`torch.nn.Transformer`, `torch.compile`, `torch.autocast` to bfloat16",
    "keras_hub": "keras-hub layers, `fit` as shipped",
    "torch_eager_paper_dropout": "`torch.nn.Transformer`, eager, dropout where the paper has it",
    "torch_compile_paper_dropout": "`torch.nn.Transformer`, `torch.compile`, dropout where the paper has it",
}
NOTES = """\
Every contestant trains the same post-norm model from the same weights on the same batch. Every position of that batch
is a real token. The loss is label-smoothed (0.1) cross-entropy, averaged over target tokens; before training, all
contestants find the same loss. Dropout is as configured, and the optimizer is Adam with the paper's warm-up. All
compute in float32 with one tied embedding matrix, padding masks and causal masks. No contestant may use a GPU.
`--contestants` knows `ours_bfloat16` and `torch_compile_bfloat16` as well, which multiply in bfloat16 and whose losses
are therefore not compared.

PyTorch and keras-hub run as they are shipped. They have biases in their attention projections (the paper has none),
hence more parameters. They also apply dropout to the attention weights, and PyTorch inside the feed-forward network.
`--contestants` knows `torch_eager_paper_dropout` and `torch_compile_paper_dropout` as well, which apply dropout only
where the paper does (to embeddings and to the output of sublayers) and then have a faster attention.

Each contestant has a process of its own, which keeps the memory that it frees. They take turns, round after round. A
number is the median of its rounds; the least and the most stand in brackets. The first step of a turn is not timed,
since it is slower after a wait. Other work on the machine slows PyTorch more than XLA, because PyTorch's threads wait
for each other after every product; the load stands above.

`gemm_peak` is the float32 product of two 2048 x 2048 matrices through XLA; our share of it counts model FLOPs
(`train/cost/cost.py`: forward pass times three, matrix products alone). "At most" is the ratio that a step would
reach if it did only these products, at this speed.

`real_data_step_time` is a ratio of step times: on batches that are packed during training, from a synthetic corpus of
29,000 pairs with lengths like Multi30k's, divided by the same on one such batch that is repeated."""


class Timings(NamedTuple):
    """What was measured for one size. `seconds`: duration of a step, one number per round, by lane."""

    work: dict[str, float]  # of one step, by lane: target tokens, or FLOPs
    seconds: dict[str, list[float]]
    parameters: dict[str, int]
    loss: dict[str, float]
    idle_share: dict[str, float]  # share of a core that a contestant used while it waited


def summary(
    timings: dict[str, Timings], workloads: dict[str, Workload], rounds: int, command: str, load: float | None
) -> dict[str, Any]:
    """All results, ready for JSON. `timings` and `workloads` are by size.

    `load`: the system's load average of the minute before the benchmark, None if the system has none.

    Most parts have keys "size/lane". `ratios`: our target tokens per second divided by theirs, both medians over
    rounds; "size/gemm_peak": our model FLOPs per second divided by those of the matrix product;
    "size/real_data_step_time": see NOTES. `spreads`: the least and the most of the same ratio, taken round by round.
    `limits`: the ratio that a step would reach if it did only its matrix products, at the measured peak.
    """
    results = {
        "ratios": {},
        "spreads": {},
        "limits": {},
        "tokens_per_second": {},
        "gemm_gflops": {},
        "model_gflops": {},
        "parameters": {},
        "starting_loss": {},
        "per_round": {},
        "idle_core_share": {},
        "versions": package_versions(PACKAGES),
        "processor": processor(),
        "cores": processor_cores(),
        "command": command,
        "rounds": rounds,
        "load_before": load,
    }
    for size, timing in timings.items():
        rates = {lane: [timing.work[lane] / one for one in seconds] for lane, seconds in timing.seconds.items()}
        peak = rates.pop("gemm_peak", None)
        results["per_round"] |= keyed(size, rates)
        results["tokens_per_second"] |= keyed(size, {lane: median(rate) for lane, rate in rates.items()})
        results["parameters"] |= keyed(size, timing.parameters)
        results["starting_loss"] |= keyed(size, timing.loss)
        results["idle_core_share"] |= keyed(size, timing.idle_share)
        if peak:
            results["gemm_gflops"][size] = median(peak) / 1e9
            fastest = median(peak) / flops_per_token(workloads[size])  # target tokens/s
            results["limits"] |= {f"{size}/{lane}": fastest / median(rates[lane]) for lane in PEERS if lane in rates}
        if "ours" not in rates:
            continue
        flops = [rate * flops_per_token(workloads[size]) for rate in rates["ours"]]
        results["model_gflops"][size] = median(flops) / 1e9
        pairs = {lane: (rates["ours"], rates[lane]) for lane in ("ours_bfloat16", *PEERS) if lane in rates}
        pairs |= {"gemm_peak": (flops, peak)} if peak else {}
        pairs["real_data_step_time"] = timing.seconds["ours_packed_real"], timing.seconds["ours_packed_constant"]
        for name, (ours, theirs) in pairs.items():
            by_round = [one / other for one, other in zip(ours, theirs, strict=True)]
            results["ratios"][f"{size}/{name}"] = median(ours) / median(theirs)
            results["spreads"][f"{size}/{name}"] = [min(by_round), max(by_round)]
    return results


def keyed(size: str, values: dict[str, Any]) -> dict[str, Any]:
    return {f"{size}/{name}": value for name, value in values.items()}


def flops_per_token(workload: Workload) -> float:
    """Training FLOPs per target token of the workload's batch."""
    return training_flops(workload.config, workload.length, workload.length) / workload.length


def as_markdown(results: dict[str, Any]) -> str:
    """The machine, a table per size, and what the numbers mean."""
    return "\n".join(["# Training speed", "", *heading(results), *tables(results), NOTES, ""])


def heading(results: dict[str, Any]) -> Iterator[str]:
    machine = f"{results['processor']}, {results['cores']} cores"
    yield f"`{results['command'].strip()}` on {machine}; rounds: {results['rounds']}."
    yield ", ".join(f"{package} {version}" for package, version in results["versions"].items()) + "."
    if results["load_before"] is not None:
        yield f"Load of the machine in the minute before: {results['load_before']:.2f}."
    yield f"A waiting contestant used at most {max(results['idle_core_share'].values()):.1%} of a core."
    yield ""


def tables(results: dict[str, Any]) -> Iterator[str]:
    sizes = dict.fromkeys(key.split("/")[0] for key in (*results["tokens_per_second"], *results["gemm_gflops"]))
    for size in sizes:
        yield from (f"## {size}", "", "| | parameters | starting loss | target tokens/s | ours : theirs | at most |")
        yield "|---|---:|---:|---:|---:|---:|"
        for name, title in {**OWN, **PEERS}.items():
            key = f"{size}/{name}"
            if key in results["tokens_per_second"]:
                rate, by_round = results["tokens_per_second"][key], results["per_round"][key]
                limit = f"{results['limits'][key]:.2f}" if key in results["limits"] else ""
                loss = f"{results['starting_loss'][key]:.5f}" if key in results["starting_loss"] else ""
                yield (
                    f"| {title} | {results['parameters'][key]:,} | {loss} | {rate:,.0f} "
                    f"({min(by_round):,.0f} to {max(by_round):,.0f}) | {ratio(results, key)} | {limit} |"
                )
        yield ""
        yield from (f"- {sentence}" for sentence in sentences(results, size))
        yield ""


def ratio(results: dict[str, Any], key: str) -> str:
    """The ratio and its spread, or nothing if that contestant was not measured."""
    if key not in results["ratios"]:
        return ""
    least, most = results["spreads"][key]
    return f"**{results['ratios'][key]:.2f}** ({least:.2f} to {most:.2f})"


def sentences(results: dict[str, Any], size: str) -> Iterator[str]:
    if size in results["gemm_gflops"]:
        yield f"matrix product: {results['gemm_gflops'][size]:.0f} GFLOP/s"
    if size in results["model_gflops"]:
        peak = f"{size}/gemm_peak"
        share = f": {ratio(results, peak)} of the matrix product" if peak in results["ratios"] else ""
        yield f"this project: {results['model_gflops'][size]:.0f} GFLOP/s of model work{share}"
        real = f"{size}/real_data_step_time"
        yield f"a step with real data over a step with a constant batch: {ratio(results, real)}"


def write_results(results: dict[str, Any], folder: str | os.PathLike) -> None:
    """Write train_speed.md and train_speed.json into `folder`."""
    folder = pathlib.Path(folder)
    write_result(folder / "train_speed.md", as_markdown(results))
    write_result(folder / "train_speed.json", json.dumps(results) + "\n")
