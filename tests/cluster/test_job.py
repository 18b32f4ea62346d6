"""On a real cluster, a master and two workers: nothing lost, nothing twice, whatever is killed."""

import json
import os
import pathlib
import signal
import subprocess

import pytest

from export.graph.exported import ExportedTranslator
from tests.support.exports import write_version
from tests.support.processes import end, python, wait_until
from tests.support.runs import SENTENCES, random_run
from tests.support.spark import spark_cluster, start_cluster_command

pytestmark = pytest.mark.release
LINES = [f"{SENTENCES[number % len(SENTENCES)]} {number % 7}" if number % 10 else "" for number in range(3000)]


@pytest.fixture(scope="module")
def cluster():
    with spark_cluster(workers=2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    run = random_run(folder / "run")
    write_version(run, folder / "versions" / "1", names=("serving_default", "translate", "score"))
    return folder / "versions"


@pytest.fixture(scope="module")
def expected(export):
    return [translation.text for translation in ExportedTranslator(export).translate(LINES)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder of two files: the last line of the first has no end, and some of the second end in CR LF."""
    folder = tmp_path_factory.mktemp("corpus")
    first, second = LINES[:1000], LINES[1000:]
    (folder / "1.txt").write_bytes("\n".join(first).encode())
    ends = ["\r\n" if number % 3 else "\n" for number in range(len(second))]
    (folder / "2.txt").write_bytes("".join(map("".join, zip(second, ends, strict=True))).encode())
    return folder


def parts_in(folder):
    return sorted(pathlib.Path(folder).glob("part-*"))


def lines_in(folder):
    return "".join(path.read_text(encoding="utf-8") for path in parts_in(folder)).split("\n")[:-1]


def translating(cluster, export, corpus, folder, *more, part_bytes=4000, command="translate", **settings):
    options = "--from", corpus, "--to", folder, "--part-bytes", part_bytes, *more
    return start_cluster_command(cluster, f"{folder}.log", command, export, *options, **settings)


def finished(process, folder):
    """Wait for a command, which must succeed. Returns what it printed."""
    end([process])
    log = pathlib.Path(f"{folder}.log").read_text(encoding="utf-8")
    assert process.returncode == 0, log
    return log


def test_lines_are_translated_as_by_the_export_in_their_order(cluster, export, corpus, expected, tmp_path):
    log = finished(translating(cluster, export, corpus, tmp_path / "out"), tmp_path / "out")
    assert lines_in(tmp_path / "out") == expected
    assert len(parts_in(tmp_path / "out")) > 10 and (tmp_path / "out/_SUCCESS").exists()
    assert f"{len(LINES):,} lines, 0 of them with an error" in log and "WARN" not in log
    assert not (tmp_path / "out/_unfinished").exists()


def executors(cluster):
    """The processes of Java in which the workers of this cluster compute: they run in a folder of their worker."""
    found = subprocess.run(["pgrep", "-f", "CoarseGrainedExecutorBackend"], capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split() if str(cluster.folder) in os.path.realpath(f"/proc/{pid}/cwd")]


def test_whatever_is_killed_nothing_is_lost_or_done_twice(cluster, export, corpus, expected, tmp_path):
    """The driver, by SIGKILL; the driver, by SIGTERM; an executor."""
    out = tmp_path / "out"

    def translating_until_attempt_has_parts(number):
        driver = translating(cluster, export, corpus, out, part_bytes=2000)
        wait_until(lambda: any(path.stat().st_size for path in parts_in(out / "_unfinished" / number)), [driver])
        return driver

    killed = translating_until_attempt_has_parts("1")
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    first = {path.name: path.stat().st_ino for path in parts_in(out / "_unfinished/1")}
    stopped = translating_until_attempt_has_parts("2")
    stopped.send_signal(signal.SIGTERM)
    assert end([stopped]) == [75]
    driver = translating_until_attempt_has_parts("3")
    os.kill(executors(cluster)[0], signal.SIGKILL)
    log = finished(driver, out)
    assert lines_in(out) == expected
    assert "out keeps the parts that are finished: run the same command again" in log
    finished_parts = [int(line.split()[3]) for line in log.splitlines() if line.endswith("of them finished")]
    assert finished_parts[0] == 0 < len(first) <= finished_parts[1] < finished_parts[2] < len(parts_in(out))
    assert {name: (out / name).stat().st_ino for name in first} == first  # the same files, only renamed


def test_a_line_that_cannot_be_translated_has_its_error_in_its_row(cluster, export, expected, tmp_path):
    lines = [json.dumps({"id": number, "text": text}).encode() for number, text in enumerate(LINES[:40])]
    lines[7], lines[9], lines[11] = b"{", b'{"id": 9, "text": "K\xfcche"}', b'{"id": 11}'
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines))
    log = finished(translating(cluster, export, tmp_path / "in.jsonl", tmp_path / "out"), tmp_path / "out")
    rows = list(map(json.loads, lines_in(tmp_path / "out")))
    assert [number for number, row in enumerate(rows) if row["error"]] == [7, 9, 11] and len(rows) == 40
    assert [row["translation"] for row in rows if not row["error"]] == [
        text for number, text in enumerate(expected[:40]) if number not in (7, 9, 11)
    ]
    assert "40 lines, 3 of them with an error" in log


def test_tables_keep_their_columns_and_get_more(cluster, export, tmp_path):
    pairs = [json.dumps({"text": text, "translation": f"{text} x", "n": [number]}) for number, text in enumerate(LINES)]
    (tmp_path / "in.jsonl").write_text("\n".join(pairs[:60]), encoding="utf-8")
    script = tmp_path / "tables.py"
    script.write_text(SCRIPT.format(folder=tmp_path), encoding="utf-8")
    assert python(script, "write").returncode == 0
    finished(
        translating(cluster, export, tmp_path / "in.parquet", tmp_path / "scored", command="score"), tmp_path / "scored"
    )
    rows = json.loads(python(script, "read").stdout)
    assert sorted(row["n"] for row in rows) == [[number] for number in range(60)]
    assert all(
        row["error"] is None and row["log_probability"] <= 0 and row["translation"].endswith(" x") for row in rows
    )


SCRIPT = """
import json, sys
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
if sys.argv[1] == "write":
    session.read.json("{folder}/in.jsonl").repartition(3).write.parquet("{folder}/in.parquet")
else:
    print(json.dumps([row.asDict() for row in session.read.parquet("{folder}/scored").collect()]))
"""


@pytest.mark.parametrize(
    ("options", "settings", "reason"),
    [
        (["--top-k", 3], {}, "refuses these options: top_k needs a temperature"),
        ([], {"PYSPARK_PYTHON": "/no/such/python"}, "A worker has no program /no/such/python"),
    ],
)
def test_what_a_worker_cannot_do_is_one_sentence_before_anything_is_translated(
    cluster, export, corpus, tmp_path, options, settings, reason
):
    out = tmp_path / "out"
    process = translating(cluster, export, corpus, out, *options, **settings)
    assert end([process]) == [1]
    (line,) = pathlib.Path(f"{out}.log").read_text(encoding="utf-8").splitlines()
    assert line.startswith("Error: ") and reason in line
    assert not out.exists()
