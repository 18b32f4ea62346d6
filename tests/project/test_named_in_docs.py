"""Keys and arguments that the manual and the help of commands name exist: whoever writes them is not refused."""

import ast
import inspect
import re

import pytest

import keras_transformer as kt
from tests.support.places import ROOT
from train.config.run import SECTIONS

PAGES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")))}
SOURCES = [
    path for room in ("cluster", "export", "keras_transformer", "train") for path in ROOT.glob(f"{room}/**/*.py")
]
KEYS = {name: {key for kind in kinds for key in kind.model_fields} for name, kinds in SECTIONS.items()}
KEY = re.compile(rf"(?<![\w./])({'|'.join(KEYS)})\.([a-z_]+)(?![\w(/]|\.\w)")
NO_KEYS = {"md", "py", "json", "fit", "safetensors", "tflite", "npz", "yml", "bin", "spm", "keras", "parts_of_decoder"}
NO_KEYS |= {"compile", "quantize", "with_attention"}
CLASSES = [value for value in (getattr(kt, name) for name in dir(kt)) if inspect.isclass(value)]


def unknown_keys(text):
    return [found[0] for found in KEY.finditer(text) if found[2] not in KEYS[found[1]] | NO_KEYS]


def test_every_key_that_a_page_names_is_one_of_its_section():
    assert unknown_keys("list it in `tokenizer.tags`, and `training.steps`") == ["tokenizer.tags"]
    assert {name: unknown for name, text in PAGES.items() if (unknown := unknown_keys(text))} == {}


def test_every_key_that_help_or_a_message_names_is_one_of_its_section():
    """In the strings of commands; of a module, they hold paths too."""
    unknown = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                unknown |= {str(path.relative_to(ROOT)): keys} if (keys := unknown_keys(node.value)) else {}
    assert unknown == {}


def calls_in(page):
    """Calls with names of arguments: in blocks of Python, and between backquotes."""
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) + re.findall(r"`([^`\n]+\([^`\n]*\))`", page):
        try:
            tree = ast.parse(code)
        except SyntaxError:  # a formula, or another language
            continue
        yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.keywords)


def meant_by(call):
    """What of this library a call may mean: a name of kt, or a method of its classes."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if ast.unparse(call.func) in (name, f"kt.{name}") and hasattr(kt, name):
        return [getattr(kt, name)]
    return [getattr(each, name) for each in CLASSES if name in vars(each)]


def takes(function, names):
    parameters = inspect.signature(function).parameters
    return names <= parameters.keys() or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


CALLS = [(name, ast.unparse(call), call) for name, page in PAGES.items() for call in calls_in(page) if meant_by(call)]


@pytest.mark.parametrize(("page", "code", "call"), CALLS, ids=[code[:60] for _, code, _ in CALLS])
def test_every_argument_that_a_page_gives_is_one_of_its_function(page, code, call):
    names = {keyword.arg for keyword in call.keywords}
    assert any(takes(function, names) for function in meant_by(call))


def test_a_wrong_argument_would_be_found():
    [call] = calls_in('`save_run(outputs="trees")`')
    assert not any(takes(function, {"outputs"}) for function in meant_by(call)) and len(CALLS) > 5
