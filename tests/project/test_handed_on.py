"""An option that a function has is read, is handed on to what has it too, and is used by somebody."""

import ast
import collections
import functools

from keras_transformer import MODULE_OF
from tests.support.imports import MODULES

FUNCTION = ast.FunctionDef, ast.AsyncFunctionDef
CALLED_BY_OTHERS = {  # functions whose parameters are not ours to choose: those of a class, a protocol, a table
    "Keras": "build compute_mask compute_output_shape from_config gradient on_train_begin on_train_batch_begin "
    "on_train_batch_end on_epoch_end update_state make_train_function _maybe_symbolic_build first_bias orthogonal",
    "Python's parsers of HTML and XML": "handle_data handle_entityref handle_charref handle_comment handle_decl "
    "handle_pi unknown_decl check_encoding",
    "signals, logging and with": "end_at_once exit_process stop _make handleError __exit__",
    "TensorFlow's loops": "is_any_left is_left",
    "pydantic": "__get_pydantic_core_schema__",
    "the table of rules of cleaning": "is_identical has_other_numbers is_mostly_markup",
    "the table of formats": "html_parts text_parts srt_parts vtt_parts xliff_parts rendered",
    "the table of calls of gRPC": "metadata status reload refuse call",
    "the server's framework": "answer_error internal_error metrics startup",
    "backends": "has_fused_kernel",
    "Spark's and TFDS' callers": "news _train_parts",
}
FOREIGN = {name for names in CALLED_BY_OTHERS.values() for name in names.split()}
KEPT = {  # a call that leaves an option at its default although something of that name is at hand
    "Asked": {"forbidden", "phrases"},  # what is asked of most lines: nothing
    "EventFile": {"kept"},
    "Glossary": {"names", "terms"},  # what of another kind is protected
    "Inference": {"outputs", "search"},
    "Model": {"policy", "labels"},  # of one folder
    "PackedBatches": {"worker"},  # of several shards: each worker has its own
    "Policy": {"numbers"},
    "Record": {"version"},  # not known yet
    "RecurrentConfig": {"vocab_size", "dropout", "label_smoothing"},  # for its defaults
    "SearchOptions": {"shortlist"},
    "TokenizerConfig": {"model"},
    "Translation": {"ids"},  # of nothing
    "ok": {"advice"},  # of what is whole
    "Translator": {"shortlist"},  # the oracle of an export with one
    "TreebankFile": {"member"},
    "_pieces": {"path"},
    "join": {"seconds"},  # of str
    "list_of_lines": {"name"},
    "matrix_flops": {"seconds"},  # the result of the line
    "pieces_of_labels": {"leaves"},
    "read_curves": {"last_step"},
    "save_weights": {"dtype"},
    "scan": {"collected"},
    "serve": {"models", "port", "grpc_port"},  # uvicorn's
}
FOR_SCRIPTS_AND_TESTS = {  # options that only they give: a user in Python, or a law
    "AttentionBlock": {"attention_bias", "value_dim"},
    "AttentionHeads": {"use_bias", "value_dim"},
    "Block": {"activation", "dropout", "norm", "norm_epsilon"},
    "CRuntime": {"tensorflow", "tensorflow_text"},
    "Explainer": {"options", "precision", "shortlist"},  # as those of Scorer: given to `load`
    "ModelFolder": {"is_single"},
    "Models": {"file"},
    "Residual": {"dropout", "epsilon"},
    "SampleTranslations": {"shown"},
    "Scorer": {"batch_size", "coverage_penalty", "length_normalization", "length_penalty", "precision"},
    "ServingClient": {"attempts"},
    "Split": {"shards"},
    "TokenMean": {"name"},
    "ask": {"signature_name"},
    "choice": {"group"},
    "commit": {"checkout"},
    "largest_differences": {"count"},
    "learned_lexicon": {"iterations"},
    "local_clients": {"rows"},
    "matrix_flops": {"seconds", "size"},
    "padded_batches": {"length_step"},
    "reliability": {"bins"},
    "translate_document": {"language", "prefix", "protect"},
    "wait_for_others": {"patience", "pause"},
    "warn_of_unused_gpu": {"driver"},
}


def parameters_of(function):
    """The names of its parameters by position, and those that have a default."""
    arguments = function.args
    by_position = [each.arg for each in arguments.posonlyargs + arguments.args]
    optional = by_position[len(by_position) - len(arguments.defaults) :] if arguments.defaults else []
    optional += [
        each.arg
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    ]
    return [name for name in by_position if name not in ("self", "cls")], optional


def every_parameter(function):
    arguments = function.args
    starred = [each.arg for each in (arguments.vararg, arguments.kwarg) if each]
    return [*parameters_of(function)[0], *(each.arg for each in arguments.kwonlyargs), *starred]


def names_in(nodes, context):
    found = (inner for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name))
    return {name.id for name in found if isinstance(name.ctx, context)}


def is_abstract(function):
    return all(
        isinstance(each, ast.Raise | ast.Pass) or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        for each in function.body
    )


def functions():
    for module, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, FUNCTION):
                yield module, node


@functools.cache
def methods():
    classes = (node for tree in MODULES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {each for node in classes for each in node.body if isinstance(each, FUNCTION)}


def test_every_parameter_is_read():
    """By this function or, if several classes have a method of this name, by one of them."""
    read, unread = collections.defaultdict(set), {}
    for module, function in functions():
        names = names_in(function.body, ast.Load)
        for name in every_parameter(function):
            if name in names:
                read[function.name] |= {name} if function in methods() else set()
            elif not is_abstract(function) and not name.startswith("_") and function.name not in FOREIGN:
                unread[function.name, name] = f"{module}, line {function.lineno}"
    assert {key: place for key, place in unread.items() if key[1] not in read[key[0]]} == {}, (
        "read it, take it away or, if others choose the parameters, add the function to CALLED_BY_OTHERS"
    )


@functools.cache
def signatures(with_fields=True):
    """From the name of functions or classes to the parameters (by position, optional) of each that has the name.

    with_fields: also of a class that has fields in place of `__init__`.
    """
    found = collections.defaultdict(list)
    for tree in MODULES.values():
        for node in ast.walk(tree):
            if isinstance(node, FUNCTION):
                found[node.name].append(parameters_of(node))
            elif isinstance(node, ast.ClassDef):
                starts = [each for each in node.body if isinstance(each, FUNCTION) and each.name == "__init__"]
                fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
                if starts:
                    found[node.name].append(parameters_of(starts[0]))
                elif fields and with_fields:
                    optional = [each.target.id for each in fields if each.value is not None]
                    found[node.name].append(([each.target.id for each in fields], optional))
    return found


def name_called(node):
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def given(call):
    """The name of what is called, how many arguments it has by position, and the names of the others; None: unknown."""
    name, arguments = name_called(call.func), call.args
    if name == "partial" and arguments:  # which gives the rest later
        return name_called(arguments[0]), 0, None
    is_open = any(each.arg is None for each in call.keywords) or any(
        isinstance(each, ast.Starred) for each in arguments
    )
    return name, len(arguments), None if is_open else {each.arg for each in call.keywords}


@functools.cache
def calls():
    """Each call with its module and the names of what is at hand there: parameters, variables, attributes of self."""

    def walk(node, at_hand):
        for child in ast.iter_child_nodes(node):
            inner = at_hand
            if isinstance(child, FUNCTION):
                inner = at_hand | {*every_parameter(child), *names_in([child], ast.Store)}
            elif isinstance(child, ast.ClassDef):
                own = {each.attr for each in ast.walk(child) if isinstance(each, ast.Attribute) and is_self(each.value)}
                inner = at_hand | own | {each.target.id for each in child.body if isinstance(each, ast.AnnAssign)}
            elif isinstance(child, ast.Call):
                yield child, at_hand
            yield from walk(child, inner)

    return [(module, *found) for module, tree in MODULES.items() for found in walk(tree, frozenset())]


def is_self(node):
    return isinstance(node, ast.Name) and node.id == "self"


def test_an_option_that_is_at_hand_is_handed_on():
    """If f(options) calls g, which has an option of the same name, then it gives it, or KEPT says why not."""
    forgotten = {}
    for module, call, at_hand in calls():
        name, count, names = given(call)
        if names is not None and name in signatures():
            options = set.intersection(*(set(optional) for _, optional in signatures()[name]))
            names = names.union(*(by_position[:count] for by_position, _ in signatures()[name]))
            if missing := (options & at_hand) - names - KEPT.get(name, set()):
                forgotten[f"{module}, line {call.lineno}: {name}"] = missing
    assert forgotten == {}, "hand it on, or add it to KEPT with the reason"


def test_every_option_is_used_by_somebody():
    """A parameter with a default is given by a call, unless it is a user's: of a command, or of a public name."""
    used, counts, open_calls = collections.defaultdict(set), collections.Counter(), set()
    for _, call, _ in calls():
        name, count, names = given(call)
        used[name] |= names or set()
        counts[name] = max(counts[name], count)
        open_calls |= {name} if names is None else set()
    users = {*MODULE_OF, *FOREIGN, *open_calls, *commands()}
    unused = {}
    for name, ((by_position, optional), *others) in signatures(with_fields=False).items():
        if name not in users and not others:
            if left := set(optional) - used[name] - set(by_position[: counts[name]]):
                unused[name] = left
    assert unused == FOR_SCRIPTS_AND_TESTS, (
        "let somebody give it, take it away, or say in FOR_SCRIPTS_AND_TESTS who does"
    )


def commands():
    """The functions that are commands of the program."""
    return {node.name for _, node in functions() if any("command" in ast.unparse(each) for each in node.decorator_list)}


# names that mean several things, or the same thing with a reason for another default
SEVERAL_DEFAULTS = set(
    "attributes best_metric confidence count decoder_layers default dropout dtype encoder_layers input_feeding inputs "
    "keep kept key label_smoothing language languages leaves model most n_best name normalization options outputs "
    "overrides paired_test placeholders positions prefix prog_name required rows seconds seed shards skipped "
    "source_language step tags target_language terms threads undefined xla".split()
)


def defaults_in(node):
    """The name and the default of each option that a function or a class has; those of DEFAULTS are looked up there."""
    if isinstance(node, FUNCTION):
        arguments = node.args
        by_position = arguments.posonlyargs + arguments.args
        yield from zip(by_position[len(by_position) - len(arguments.defaults) :], arguments.defaults, strict=True)
        yield from zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    elif isinstance(node, ast.ClassDef):
        fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
        yield from ((ast.arg(each.target.id), each.value) for each in fields if isinstance(each.value, ast.Constant))


def test_an_option_has_the_same_default_wherever_it_is():
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for module, tree in MODULES.items():
        for node in ast.walk(tree):
            for option, default in defaults_in(node):
                if default is not None and not ast.unparse(default).startswith("DEFAULTS."):
                    found[option.arg][ast.unparse(default)].append(f"{module}.{node.name}")
    several = {name: dict(defaults) for name, defaults in found.items() if len(defaults) > 1}
    assert {name: several[name] for name in several.keys() - SEVERAL_DEFAULTS} == {}, (
        "give it the default that it has elsewhere, another name, or a place in SEVERAL_DEFAULTS"
    )
    assert SEVERAL_DEFAULTS <= several.keys(), "no longer needed there"
