"""Commands called within this process, and what they must print."""

from typer.testing import CliRunner

from tests.support.processes import python


def invoke(app, *arguments, stdin=None):
    """Typer's result of calling a command with `arguments`, and with `stdin`, str or bytes, as its input."""
    return CliRunner().invoke(app, list(map(str, arguments)), input=stdin)


def assert_one_sentence(result, *parts):
    """The command printed one sentence that contains `parts`, wrote nothing to stdout and exited with code 1."""
    assert result.exit_code == 1, result.output
    assert result.stdout == "" and isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("Error: ") and result.stderr.endswith("\n") and result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    for part in parts:
        assert str(part) in result.stderr


HELP = """
import atexit, runpy, sys
sys.argv = ["command", *sys.argv[1:], "--help"]
atexit.register(lambda: print("imported:", {"tensorflow", "keras"} & set(sys.modules)))
runpy.run_module(MODULE, run_name="__main__", alter_sys=True)
"""


def help_of(module, *subcommand):
    """What `python -m module subcommand --help` prints, and last the slow packages that it imported for that."""
    process = python("-c", HELP.replace("MODULE", repr(module)), *subcommand)
    assert process.returncode == 0, process.stderr
    return process.stdout
