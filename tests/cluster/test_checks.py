"""Before Spark starts: Java and the master."""

import socket

import pytest

from cluster.__main__ import app
from cluster.errors import ClusterError
from cluster.session import check_java, check_master, java_version
from tests.support.commands import assert_one_sentence, invoke
from tests.support.processes import free_ports


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime', 17),
        ('Picked up JAVA_TOOL_OPTIONS: -Da=1\nopenjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ("The program 'java' is unknown", None),
    ],
)
def test_the_version_of_java(answer, version):
    assert java_version(answer) == version


@pytest.mark.parametrize(("answer", "reason"), [('version "11.0.2"', "is Java 11"), ("none", "gives no version")])
def test_an_old_java_is_named(tmp_path, monkeypatch, answer, reason):
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ClusterError, match="does not start: Permission denied"):
        check_java()
    program.chmod(0o755)
    with pytest.raises(ClusterError, match=f"needs Java 17 or newer, and {program} {reason}"):
        check_java()


def test_the_oldest_java_that_spark_takes_will_do(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check_java()


def test_no_java_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ClusterError, match="needs Java, which is not installed"):
        check_java()


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*,4]", "k8s://https://10.0.0.1:6443", "yarn"])
def test_masters_that_are_left_to_spark(master):
    check_master(master)


def test_a_master_that_does_not_answer_is_named():
    (port,) = free_ports(1)
    with pytest.raises(ClusterError, match="nothing answers within 5 seconds"):
        check_master(f"spark://127.0.0.1:{port}")


def test_of_several_masters_one_must_answer():
    (silent,) = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_master(f"spark://127.0.0.1:{silent},127.0.0.1:{server.getsockname()[1]}")


def test_the_commands_say_so_before_anything_is_started(tmp_path, monkeypatch):
    (tmp_path / "saved_model.pb").touch()
    (tmp_path / "in.txt").write_text("a")
    paths = ["--from", tmp_path / "in.txt", "--to", tmp_path / "out"]
    (port,) = free_ports(1)
    monkeypatch.setattr("cluster.session.check_java", lambda: None)
    master = f"spark://127.0.0.1:{port}"
    silent = invoke(app, "translate", tmp_path, *paths, "--master", master)
    assert_one_sentence(silent, f"--master is {master}, where nothing answers")
    nothing = invoke(app, "translate", tmp_path / "no", *paths)
    assert_one_sentence(nothing, "no does not exist")
    for options, reason in (
        ([], "No rule is named"),
        (["--languages", "en"], "--languages is en; it must be the codes of two languages"),
        (["--languages", "en,"], "it must be the codes of two languages"),
        (["--source-script", "LATEIN"], "no script 'LATEIN'"),
        (["--length-ratio", "1"], "--length-ratio is 1; it must be above 1."),
        (["--length-ratio", "nan"], "--length-ratio is nan; it must be above 1."),
    ):
        assert_one_sentence(invoke(app, "clean", *paths, *options), reason)
    monkeypatch.undo()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert_one_sentence(invoke(app, "translate", tmp_path, *paths), "JAVA_HOME is", "Install Java 17 or 21")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("master", "reason"),
    [
        ("http://127.0.0.1:8080", "it must be spark://HOST:PORT"),
        ("local[2]x", "it must be spark://HOST:PORT"),
        ("spark://127.0.0.1", "it must be HOST:PORT"),
    ],
)
def test_an_address_that_is_none_is_refused(master, reason):
    with pytest.raises(ClusterError, match=reason):
        check_master(master)
