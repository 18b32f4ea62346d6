"""`keras-transformer multi30k` puts Multi30k's files into a folder; what is not Multi30k is refused."""

import functools
import gzip
import hashlib
import http.server
import pathlib
import re
import threading

import pytest

from tests.support.commands import assert_one_sentence, invoke
from tests.support.places import CONFIGS, MULTI30K_CONFIGS, ROOT
from train.config.run import load_config
from train.data import multi30k
from train.data.multi30k import CAPTION_DOWNLOADS, DOWNLOADS, SUMS, app

TEXTS = {"train.en.gz": b"A dog runs.\n" * 500, "train.de.gz": b"Ein Hund rennt.\n" * 500, "val.en.gz": b"A cat.\n"}


CAPTIONS = {
    "train.1.en.gz": b"A dog  runs.\n A cat on a mat.\r\nA cat on a mat.\nTwo words.\nno capital.\nNo end here\n",
    "train.2.en.gz": b"A cat on a mat.\n\nThree new words!\n" + b"Word " * 50 + b"end.\n" + b"Long " * 49 + b"end?\n",
    "train.1.de.gz": "Ein Hund rennt.\nEine Katze schl\u00e4ft.\n".encode(),
}
NEW_CAPTIONS = {  # sentences of 3 to 50 words, once, in their order, no line of TEXTS
    "captions.en": b"A cat on a mat.\nThree new words!\n" + b"Long " * 49 + b"end?\n",
    "captions.de": "Eine Katze schl\u00e4ft.\n".encode(),
}


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the folder `directory`; some names are trouble, as the server's `trouble` tells: name -> kind."""

    def do_GET(self):
        name = self.path.removeprefix("/")
        self.server.asked.append(name)
        kind = self.server.trouble.get(name)
        if kind == "busy once":
            del self.server.trouble[name]
            self.send_error(503)
        elif kind == "breaks off":
            content = (pathlib.Path(self.directory) / name).read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2])
        else:
            super().do_GET()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def origin(tmp_path, monkeypatch):
    """A folder with three small files, which stand for Multi30k's."""
    folder = tmp_path / "origin"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_bytes(gzip.compress(text))
    for name, texts in [("SUMS", TEXTS), ("CAPTION_SUMS", CAPTIONS)]:
        monkeypatch.setattr(multi30k, name, {key: hashlib.sha256(text).hexdigest() for key, text in texts.items()})
    return folder


@pytest.fixture
def server(origin):
    """A running HTTP server of that folder, with `url`, `trouble` and `asked`, the names in the order of requests."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=origin)) as server:
        server.trouble, server.asked = {}, []
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield server
        server.shutdown()


def fetch(place, folder):
    return invoke(app, "--from", place, "--to", folder)


def texts_in(folder):
    contents = {path: path.read_bytes() for path in folder.iterdir()}
    return {path.name: gzip.decompress(text) if path.suffix == ".gz" else text for path, text in contents.items()}


@pytest.mark.parametrize("slash", ["", "/"])
def test_every_file_is_downloaded(server, tmp_path, slash):
    result = fetch(server.url + slash, tmp_path / "here" / "data")
    assert result.exit_code == 0, result.output
    assert texts_in(tmp_path / "here" / "data") == TEXTS
    assert server.asked == list(TEXTS)


def test_every_file_is_copied_from_a_folder(origin, tmp_path):
    assert fetch(origin, tmp_path / "data").exit_code == 0
    assert texts_in(tmp_path / "data") == TEXTS


def test_captions_that_are_sentences_and_no_line_of_the_pairs_are_kept_once(origin, tmp_path):
    for name, text in CAPTIONS.items():
        (origin / name).write_bytes(gzip.compress(text))
    result = invoke(app, "--from", origin, "--to", tmp_path / "data", "--captions")
    assert result.exit_code == 0, result.output
    assert texts_in(tmp_path / "data") == TEXTS | CAPTIONS | NEW_CAPTIONS


def test_captions_that_a_folder_lacks_are_asked_for_in_a_sentence(origin, tmp_path):
    result = invoke(app, "--from", origin, "--to", tmp_path / "data", "--captions")
    assert_one_sentence(result, "train.1.en.gz", "--from must be a folder with all files")
    assert texts_in(tmp_path / "data") == TEXTS


def test_the_folder_beside_the_checkout_is_taken_unless_another_place_is_given(origin, tmp_path, monkeypatch):
    monkeypatch.setattr(multi30k, "BESIDE", origin)
    assert invoke(app, "--to", tmp_path / "data").exit_code == 0
    assert texts_in(tmp_path / "data") == TEXTS
    assert_one_sentence(fetch(tmp_path / "empty", tmp_path / "other"), "empty")


def test_without_a_folder_beside_the_checkout_the_repository_is_asked(server, tmp_path, monkeypatch):
    monkeypatch.setattr(multi30k, "BESIDE", tmp_path / "nowhere")
    monkeypatch.setattr(multi30k, "DOWNLOADS", server.url)
    assert invoke(app, "--to", tmp_path / "data").exit_code == 0
    assert server.asked == list(TEXTS)
    of_task = r"https://raw\.githubusercontent\.com/multi30k/dataset/\w{40}/data/task(\d)/raw"
    assert [re.fullmatch(of_task, place)[1] for place in (DOWNLOADS, CAPTION_DOWNLOADS)] == ["1", "2"]


def test_a_second_start_downloads_only_what_is_missing_or_damaged(server, tmp_path):
    fetch(server.url, tmp_path / "data")
    server.asked.clear()
    (tmp_path / "data" / "train.de.gz").unlink()
    (tmp_path / "data" / "val.en.gz").write_bytes(b"half a file")
    assert fetch(server.url, tmp_path / "data").exit_code == 0
    assert server.asked == ["train.de.gz", "val.en.gz"]
    assert texts_in(tmp_path / "data") == TEXTS


def test_a_busy_server_is_asked_again(server, tmp_path):
    server.trouble["train.de.gz"] = "busy once"
    assert fetch(server.url, tmp_path / "data").exit_code == 0
    assert server.asked == ["train.en.gz", "train.de.gz", "train.de.gz", "val.en.gz"]


def assert_refused(result, folder, *parts):
    """One sentence with these parts; the file before the bad one is kept, and nothing of the bad one."""
    assert_one_sentence(result, "train.de.gz", *parts)
    assert {name: TEXTS[name] for name in ["train.en.gz"]} == texts_in(folder)


@pytest.mark.parametrize("way", ["server", "folder"])
@pytest.mark.parametrize(
    ("content", "part"),
    [
        (gzip.compress(b"Another text.\n", mtime=0), hashlib.sha256(b"Another text.\n").hexdigest()),
        (gzip.compress(TEXTS["train.de.gz"], mtime=0)[:-12], "not a complete gzip file"),
        (b"<html>Please log in</html>", "not a complete gzip file"),
    ],
    ids=["another text", "truncated", "no gzip"],
)
def test_what_is_not_the_file_is_refused(server, origin, tmp_path, way, content, part):
    (origin / "train.de.gz").write_bytes(content)
    result = fetch(server.url if way == "server" else origin, tmp_path / "data")
    assert_refused(result, tmp_path / "data", part)


def test_a_file_that_the_server_does_not_have_is_a_sentence(server, origin, tmp_path):
    (origin / "train.de.gz").unlink()
    assert_refused(fetch(server.url, tmp_path / "data"), tmp_path / "data", server.url, "404", "FROM=")


@pytest.mark.slow
def test_a_server_that_cannot_be_reached_is_a_sentence(server, tmp_path):
    server.shutdown()
    server.server_close()
    assert_one_sentence(fetch(server.url, tmp_path / "data"), server.url, "Connection refused", "FROM=")


def test_the_configurations_read_files_that_it_puts_there_or_that_their_first_lines_say_how_to_make():
    config_of = {pathlib.PurePath(load_config(path).run_folder): path.relative_to(ROOT) for path in CONFIGS}
    named = set()
    for path in MULTI30K_CONFIGS:
        config, text = load_config(path), path.read_text(encoding="utf-8")
        files = set(config.data.paths())
        made = {file for file in files if file.parts[0] == "runs"}
        if "_recipe.sh has all commands" not in text:  # tests/project/test_recipe_scripts.py
            distil = "#   keras-transformer distil"
            assert all(f"{distil} {file.parent} " in text and f"--output {file} " in text for file in made)
            assert all(f"#   keras-transformer train {config_of[file.parent]}" in text for file in made)
        named |= files - made
    assert named == {pathlib.PurePath("data/multi30k", name) for name in (*SUMS, "captions.en", "captions.de")}
