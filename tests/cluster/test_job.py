"""On a real cluster, a master and two workers: nothing lost, nothing twice, whatever is killed."""

import functools
import json
import os
import pathlib
import signal
import subprocess

import pytest

from cluster.duplicates import MarkedRows
from cluster.errors import ClusterError
from cluster.formats import LOST, TabLines, TextLines
from cluster.job import Request, check_lines, job_of, parts_of
from cluster.part import Job
from cluster.storage import StoredFile
from cluster.works import Clean, Translate
from export.__main__ import app as export_app
from export.litert.write import write_model
from keras_transformer.lite.translator import LiteTranslator
from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.translator import Translator
from tests.support.commands import invoke
from tests.support.exports import OPTIONS, write_version
from tests.support.m2m import m2m_folder
from tests.support.processes import end, wait_until
from tests.support.runs import SENTENCES, random_run
from tests.support.spark import spark_cluster, start_cluster_command
from tests.support.t5 import MADLAD, STRONG, T5, t5_folder

LINES = [f"{SENTENCES[number % len(SENTENCES)]} {number % 7}" if number % 10 else "" for number in range(3000)]


@pytest.fixture(scope="module")
def cluster():
    with spark_cluster(workers=2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """A folder with one run as a SavedModel, in versions/1, and as a LiteRT model, which starts sooner, in lite."""
    folder = tmp_path_factory.mktemp("export")
    run, names = random_run(folder / "run"), ("serving_default", "translate", "score")
    translator = write_version(run, folder / "versions" / "1", max_source_tokens=30, names=names)
    write_model(load_run(run)[0], translator, folder / "lite", "model", None)
    return folder


@pytest.fixture(scope="module")
def export(exports):
    return exports / "versions"


@pytest.fixture(scope="module")
def expected(exports):
    lines = sorted(set(LINES))
    translations = LiteTranslator(exports / "lite", threads=1).translate(lines)
    text_of = {line: translation.text for line, translation in zip(lines, translations, strict=True)}
    return [text_of[line] for line in LINES]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder of two files: the last line of the first has no end, and some of the second end in CR LF."""
    folder = tmp_path_factory.mktemp("corpus")
    first, second = LINES[:1000], LINES[1000:]
    (folder / "1.txt").write_bytes("\n".join(first).encode())
    ends = ["\r\n" if number % 3 else "\n" for number in range(len(second))]
    (folder / "3.txt").touch()
    for name in ("_SUCCESS", ".1.txt.crc"):  # are no text
        (folder / name).write_text("a\n")
    (folder / "2.txt").write_bytes("".join(map("".join, zip(second, ends, strict=True))).encode())
    return folder


def stored(*sizes):
    return [StoredFile(f"file:/{size}", size, 0) for size in sizes]


def test_parts_have_the_bytes_that_were_asked_for_and_all_cores_end_together():
    for size in (1, 100_000, 5_000_000, 3 * 10**9):
        for cores in (1, 2, 7):
            parts = parts_of(stored(size // 2, size - size // 2), 2**20, cores)
            assert parts % cores == 0 and parts >= size / 2**20
            assert parts <= cores * max(4, size / 2**20 / cores + 1)
    assert parts_of(stored(1), 2**20, 3) == 3
    assert parts_of(stored(2**20), 2**20, 2) == 8  # 128 KiB each, and none waits long for the last one


def test_a_work_that_asks_for_duplicates_gets_a_mark_beside_each_line():
    clean = Request(Clean((("duplicates", True),)), "tsv", ["1", "2"], 8)
    assert job_of(clean, TabLines((1, 2)), None) == Job(clean.work, MarkedRows(TabLines((1, 2))), 8, "")
    other = clean._replace(work=Clean((("identical", True),)))
    assert job_of(other, TabLines((1, 2)), None).format == TabLines((1, 2))


def test_a_job_names_the_engine_of_its_export(tmp_path):
    request = Request(Translate(), "text", ["text"], 8)
    assert job_of(request, TextLines(), tmp_path).engine == "graph"
    (tmp_path / "litert.json").touch()
    assert job_of(request, TextLines(), tmp_path).engine == "lite"


class ReadParts:
    """A corpus whose parts have these lines."""

    format = TextLines()

    def __init__(self, *lines):
        self.lines = lines

    def read(self, paths):
        return self

    def map(self, function):
        return ReadParts(*map(function, self.lines))

    def fold(self, zero, function):
        return functools.reduce(function, self.lines, zero)


def test_parts_that_lack_lines_are_not_published(caplog):
    caplog.set_level("INFO")
    check_lines(ReadParts("one", LOST, "three"), 3, {})
    assert "3 lines, 1 of them with an error" in caplog.text
    with pytest.raises(ClusterError, match="The input has 4 lines and the parts have 3: a part is damaged"):
        check_lines(ReadParts("one", LOST, "three"), 4, {})


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


def test_whatever_is_killed_nothing_is_lost_or_done_twice(cluster, exports, corpus, expected, tmp_path):
    """The driver, by SIGKILL; the driver, by SIGTERM; an executor; a worker, whose executor ends with it."""
    out = tmp_path / "out"

    def translating_until_attempt_has_parts(number):
        driver = translating(cluster, exports / "lite", corpus, out, part_bytes=1000)
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
    cluster.processes[-1].kill()
    log = finished(driver, out)
    cluster.start_worker("another")
    assert lines_in(out) == expected
    assert "out keeps the parts that are finished: run the same command again" in log
    finished_parts = [int(line.split()[3]) for line in log.splitlines() if line.endswith("of them finished")]
    assert finished_parts[0] == 0 < len(first) <= finished_parts[1] < finished_parts[2] < len(parts_in(out))
    assert {name: (out / name).stat().st_ino for name in first} == first  # the same files, only renamed


def test_a_hundred_thousand_pairs_keep_their_order_and_the_second_of_equals_is_found(cluster, tmp_path):
    pairs = [f"{number % 70_000}\t{number * 7 % 70_000}" for number in range(100_000)]
    (tmp_path / "in.tsv").write_text("\n".join(pairs), encoding="utf-8")
    options = "--from", tmp_path / "in.tsv", "--to", tmp_path / "out", "--duplicates"
    finished(start_cluster_command(cluster, tmp_path / "out.log", "clean", *options), tmp_path / "out")
    assert lines_in(tmp_path / "out") == [
        f"{pair}\t{'' if number < 70_000 else 'repeated'}\t" for number, pair in enumerate(pairs)
    ]
    assert len(parts_in(tmp_path / "out")) == 8


def test_a_full_disk_and_a_damaged_part_are_one_sentence_after_which_the_command_goes_on(cluster, tmp_path):
    disk, out, log = tmp_path / "disk", tmp_path / "disk" / "out", tmp_path / "log"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("no small disk can be mounted here")
    pairs = [f"{number}\t{number % 2 * number}" for number in range(20_000)]
    (tmp_path / "in.tsv").write_text("\n".join(pairs), encoding="utf-8")

    def ended():
        log.unlink(missing_ok=True)
        options = "--from", tmp_path / "in.tsv", "--to", out, "--part-bytes", 8000, "--identical"
        codes = end([start_cluster_command(cluster, log, "clean", *options)])
        return codes, log.read_text(encoding="utf-8")

    try:
        codes, text = ended()
        assert codes == [1] and "No space left on device" in text and "Traceback" not in text, text
        damaged = max(parts_in(out / "_unfinished" / "1"), key=lambda path: path.stat().st_size)
        damaged.write_bytes(damaged.read_bytes()[:-1])
        subprocess.run(["mount", "-o", "remount,size=10m", disk], check=True)
        codes, text = ended()
        assert codes == [1] and damaged.name in text and "remove it and run the same command" in text, text
        damaged.unlink()
        codes, text = ended()
        assert codes == [0] and "20,000 lines, 0 of them with an error" in text, text
        reasons = ["identical" if number % 2 or not number else "" for number in range(20_000)]
        assert lines_in(out) == [f"{pair}\t{reason}\t" for pair, reason in zip(pairs, reasons, strict=True)]
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_line_that_cannot_be_translated_has_its_error_in_its_row(cluster, exports, expected, tmp_path):
    lines = [json.dumps({"id": number, "text": text}).encode() for number, text in enumerate(LINES[:40])]
    lines[7], lines[9], lines[11] = b"{", b'{"id": 9, "text": "K\xfcche"}', b'{"id": 11}'
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines))
    log = finished(translating(cluster, exports / "lite", tmp_path / "in.jsonl", tmp_path / "out"), tmp_path / "out")
    rows = list(map(json.loads, lines_in(tmp_path / "out")))
    assert [number for number, row in enumerate(rows) if row["error"]] == [7, 9, 11] and len(rows) == 40
    assert [row["translation"] for row in rows if not row["error"]] == [
        text for number, text in enumerate(expected[:40]) if number not in (7, 9, 11)
    ]
    assert "40 lines, 3 of them with an error" in log


def test_a_litert_model_of_several_languages_writes_the_one_that_is_asked(cluster, tmp_path):
    write_run(import_folder(m2m_folder(tmp_path / "m2m")), tmp_path / "run")
    languages = RunFolder(tmp_path / "run").inference().languages.by_default("en", "de")
    translator = Translator.load(tmp_path / "run", OPTIONS, max_source_tokens=30, languages=languages)
    write_model(load_run(tmp_path / "run")[0], translator, tmp_path / "lite", "model", None)
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in LINES[:40]), encoding="utf-8")
    options = "--source-language", "eng", "--target-language", "fr"
    finished(translating(cluster, tmp_path / "lite", tmp_path / "in.txt", tmp_path / "out", *options), tmp_path / "out")
    engine = LiteTranslator(tmp_path / "lite", threads=1)
    french = [one.text for one in engine.translate(LINES[:40], source_language="en", target_language="fr")]
    assert lines_in(tmp_path / "out") == french != [one.text for one in engine.translate(LINES[:40])]


FRENCH = {MADLAD: "<2fr> ", T5: "translate English to French: "}


@pytest.mark.parametrize(
    ("kind", "format", "longest"),
    [(MADLAD, "litert", 30), pytest.param(T5, "saved_model", 60, marks=pytest.mark.nightly)],
)
def test_a_model_that_is_told_its_target_in_its_source_writes_the_language_that_is_asked(
    cluster, kind, format, longest, tmp_path
):
    """A line that begins with the tag, two pieces, or the words of the task already is not told twice."""
    write_run(import_folder(t5_folder(tmp_path / "there", kind, STRONG)), tmp_path / "run", SENTENCES[:3])
    how = "--max-source-tokens", longest, "--extra-length", 12, "--target-language", "de", "--no-check"
    how += ("--signature", "serving_default", "--signature", "translate") if format == "saved_model" else ()
    exported = invoke(export_app, tmp_path / "run", "--to", tmp_path / "export", "--format", format, *how)
    assert exported.exit_code == 0, exported.output
    lines = LINES[:40]
    told = [f"{FRENCH[kind]}{line}" for line in lines if line]
    options = SearchOptions(**RunFolder(tmp_path / "run").inference().search, extra_length=12)
    translator = Translator.load(tmp_path / "run", options, max_source_tokens=longest)
    french, german = ([one.text for one in translator.translate(lines, target_language=code)] for code in ("fr", "de"))
    assert french != german
    of_told = [text for text, line in zip(french, lines, strict=True) if line]
    for name, more, source, expected in (
        ("fr", ("--target-language", "fr"), lines + told, french + of_told),
        ("de", (), lines, german),
    ):
        (tmp_path / f"{name}.txt").write_text("".join(f"{line}\n" for line in source), encoding="utf-8")
        process = translating(cluster, tmp_path / "export", tmp_path / f"{name}.txt", tmp_path / name, *more)
        finished(process, tmp_path / name)
        assert lines_in(tmp_path / name) == expected


def test_tables_keep_their_columns_and_get_more(cluster, export, tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="tensorflow-datasets brings it")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"text": text, "translation": f"{text} x", "n": [number]} for number, text in enumerate(LINES[:60])]
    rows[7]["text"] = None
    (tmp_path / "in.parquet").mkdir()
    for first in range(0, 60, 20):
        table = arrow.Table.from_pylist(rows[first : first + 20])
        parquet.write_table(table, tmp_path / "in.parquet" / f"{first}.parquet")
    out = tmp_path / "scored"
    finished(translating(cluster, export, tmp_path / "in.parquet", out, command="score"), out)
    scored = sorted(parquet.read_table(out).to_pylist(), key=lambda row: row["n"])
    assert [{name: row[name] for name in ("text", "translation", "n")} for row in scored] == rows
    assert all((row["error"] is None) == (row["n"] != [7]) for row in scored)
    assert all(row["log_probability"] <= 0 for row in scored if row["n"] != [7])


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
