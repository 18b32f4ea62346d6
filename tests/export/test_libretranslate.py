"""LibreTranslate's API of the local server, asked as its clients ask."""

import json
import time

import pytest
import requests

from tests.support.languages import many, pair, write_models
from tests.support.servers import serving

ENGLISH, GERMAN = "A small dog runs across the green field.", "Ein kleiner Hund läuft über die grüne Wiese."


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """English to and from German; German to French; and one model of Finnish, Chinese in two scripts, and English."""
    nllb = ["fin_Latn", "eng_Latn", "zho_Hans", "zho_Hant"]
    written = {"en-de": pair("en", "de"), "de-en": pair("deu", "eng"), "de-fr": pair("de", "fr")}
    return write_models(tmp_path_factory.mktemp("models"), **written, nllb=many(nllb, nllb))


@pytest.fixture(scope="module")
def server(models):
    log = models.parent / "log"
    with serving(models, log_requests=log, log_text=True) as address:
        yield f"http://{address.host}:{address.port}"


def ask(server, path="translate", **body):
    return requests.post(f"{server}/{path}", json=body, timeout=60)


def test_a_text_is_translated_sentence_by_sentence_and_keeps_its_lines(server):
    found = ask(server, q="A dog.  Two cats.\n\n - The end.", source="en", target="de", format="text", api_key="")
    assert found.json() == {"translatedText": "To de: A dog.  To de: Two cats.\n\n - To de: The end."}
    assert found.headers["content-type"] == "application/json"


def test_what_looks_like_a_tag_of_a_language_is_text(server):
    """Languages are fields; these models have no tags."""
    for tag in ("<2xx>", "<2fr>", ">>xx<<", "__fr__", "fra_Latn"):
        assert ask(server, q=f"{tag} A dog.", source="en", target="de").json() == {
            "translatedText": f"To de: {tag} A dog."
        }
    body = {"input": "<2fr> A dog.", "source_language": "en", "target_language": "de"}
    assert ask(server, "v1/translations", **body).json()["text"] == "To de: <2fr> A dog."


def test_each_text_of_a_list_is_one(server):
    found = ask(server, q=["A dog.", "", "Two cats. Three."], source="en", target="de").json()
    assert found == {"translatedText": ["To de: A dog.", "", "To de: Two cats. To de: Three."]}


def test_tags_of_html_are_not_translated(server):
    html = '<p class="x">A <b>dog</b> &amp; cat.</p><script>run()</script><p>Two.<br>'
    found = ask(server, q=html, source="en", target="de", format="html").json()["translatedText"]
    assert (
        found.startswith('<p class="x">')
        and found.count("<b>") == found.count("</b>") == 1
        and found.endswith("</p><script>run()</script><p>To de: Two.<br>")
    )
    assert "&amp;" in found


@pytest.mark.parametrize("send", ["data", "files", "params"])
def test_a_form_asks_the_same(server, send):
    fields = {"q": "A dog.\r\nTwo cäts.", "source": "en", "target": "de"}
    of_form = {name: (None, value) for name, value in fields.items()} if send == "files" else fields
    headers = {"content-type": "application/x-www-form-urlencoded"} if send == "params" else {}
    found = requests.post(f"{server}/translate", **{send: of_form}, headers=headers, timeout=60)
    assert found.json() == {"translatedText": "To de: A dog.\nTo de: Two cäts."}, found.text


def test_two_models_translate_through_a_third_language_which_the_answer_names(server):
    found = ask(server, q="A dog. Two cats.", source="en", target="fr").json()
    assert found == {"translatedText": "To fr: To de: A dog. To fr: To de: Two cats.", "intermediateLanguage": "de"}
    assert ask(server, q="<i>Koira.</i>", source="fi", target="de", format="html").json() == {
        "translatedText": "<i>To de: To fin_Latn-eng_Latn: Koira.</i>",
        "intermediateLanguage": "en",
    }


def test_the_log_has_what_the_client_asked_once(server, models):
    ask(server, q=["Log this.", "And this."], source="en", target="fr")
    logged: list = []
    until = time.monotonic() + 30
    while not logged and time.monotonic() < until:
        lines = [json.loads(line) for line in (models.parent / "log").read_text().splitlines()]
        logged = [line for line in lines if "Log this." in str(line)]
    assert len(logged) == 1 and logged[0]["text"] == ["Log this.", "And this."] and logged[0]["rows"] == 2
    assert (logged[0]["entrypoint"], logged[0]["method"], logged[0]["model"]) == ("REST", "Predict", "de-fr")


@pytest.mark.parametrize(
    ("source", "target", "begin"),
    [
        ("EN", "deu", "To de: "),
        ("en-US", "de-AT", "To de: "),
        ("fi", "zh-Hans", "To fin_Latn-zho_Hans: "),
        ("fin_Latn", "zho_Hant", None),
        ("fi", "zt", "To fin_Latn-zho_Hant: "),
        ("de", "de", ""),
    ],
)
def test_a_code_means_the_language_however_it_is_written(server, source, target, begin):
    found = ask(server, q="A dog.", source=source, target=target)
    assert found.json()["translatedText"] == f"{'To fin_Latn-zho_Hant: ' if begin is None else begin}A dog.", found.text


def test_the_languages_are_those_of_all_models_with_what_each_can_become(server):
    found = {each["code"]: each for each in requests.get(f"{server}/languages", timeout=60).json()}
    assert list(found) == ["en", "de", "fi", "zh-Hans", "zh-Hant", "fr"]
    assert found["zh-Hant"]["name"] == "Chinese (Hant)" and found["de"]["name"] == "German"
    assert found["en"]["targets"] == ["de", "en", "fi", "fr", "zh-Hans", "zh-Hant"]
    assert found["fr"]["targets"] == ["fr"]


def test_every_pair_that_is_told_can_be_translated(server):
    for each in requests.get(f"{server}/languages", timeout=60).json():
        for target in each["targets"]:
            assert ask(server, q="x y", source=each["code"], target=target).status_code == 200, (each, target)


def test_the_source_language_is_detected_among_those_that_are_served(server):
    pytest.importorskip("py3langid", reason="needs the extra clean")
    found = ask(server, q=GERMAN, source="auto", target="en").json()
    assert found["translatedText"] == f"To eng: {GERMAN}" and found["detectedLanguage"]["language"] == "de"
    assert 50 < found["detectedLanguage"]["confidence"] <= 100
    found = ask(server, q=[ENGLISH, ENGLISH], source="auto", target="de").json()
    assert [each["language"] for each in found["detectedLanguage"]] == ["en", "en"]
    found = ask(server, "detect", q=ENGLISH).json()
    assert found[0]["language"] == "en" and {each["language"] for each in found} >= {"en", "de", "fi"}
    assert sum(each["confidence"] for each in found) == pytest.approx(100, abs=1)


def test_a_text_without_a_letter_comes_back_with_no_confidence(server):
    pytest.importorskip("py3langid", reason="needs the extra clean")
    found = ask(server, q="12 🙂", source="auto", target="de").json()
    assert found["translatedText"] == "12 🙂" and found["detectedLanguage"]["confidence"] == 0


def test_alternatives_are_other_translations(server):
    found = ask(server, q="A dog.", source="en", target="de", alternatives=2).json()
    assert found == {"translatedText": "To de: A dog.", "alternatives": ["To de2: A dog.", "To de3: A dog."]}
    found = ask(server, q=["A dog. B.", "C"], source="en", target="fr", alternatives="1").json()
    assert found["alternatives"] == [["To fr2: To de: A dog. To fr2: To de: B."], ["To fr2: To de: C"]]
    found = ask(server, q="A dog.", source="en", target="de", alternatives=3)
    assert found.status_code == 400 and "ask for at most 2" in found.json()["error"]


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"q": ""}, 400, "missing q"),
        ({"q": None}, 400, "missing q"),
        ({"q": []}, 400, "missing q"),
        ({"q": ["a", 1]}, 400, "q must be a text, or a list of texts"),
        ({"q": {"a": 1}}, 400, "q must be a text"),
        ({"q": "\ud800"}, 400, "half of a surrogate pair"),
        ({"source": ""}, 400, "missing source"),
        ({"source": 3}, 400, "source must be a text"),
        ({"target": None}, 400, "missing target"),
        ({"source": "sv"}, 400, "sv is not supported; this server has en, de, fi"),
        ({"target": "zh"}, 400, "zh is zh-Hans, zh-Hant here: name one of them"),
        ({"source": "fr"}, 400, "No model here translates fr to de; fr becomes nothing"),
        ({"format": "pdf"}, 400, "pdf format is not supported"),
        ({"alternatives": "x"}, 400, "alternatives parameter is not a number"),
        ({"alternatives": -1}, 400, "alternatives parameter is not a number"),
        ({"alternatives": True}, 400, "alternatives parameter is not a number"),
        ({"q": "x" * (1 << 18) + "y"}, 400, "it may have 262144"),
        ({"q": ["a"] * 1025}, 400, "1025 rows"),
        ({"q": "A dog. " * 1025}, 400, "1025 sentences"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_answered_is_refused_in_one_sentence(server, change, status, words):
    body = json.dumps({"q": "A dog.", "source": "en", "target": "de"} | change)
    found = requests.post(f"{server}/translate", body, headers={"content-type": "application/json"}, timeout=60)
    assert found.status_code == status and set(found.json()) == {"error"} and words in found.json()["error"]


@pytest.mark.parametrize(
    ("body", "kind", "status", "words"),
    [
        (b"[]", "application/json", 400, "Invalid JSON format"),
        (b"{", "application/json", 400, "JSON Parse error"),
        (b'{"q": "a", "q": "b"}', "application/json", 400, "the key 'q' twice"),
        (b"q=a", "text/plain", 415, "content-type is 'text/plain'"),
        (b"q=%ff", "application/x-www-form-urlencoded", 400, "not UTF-8"),
        (b"q=\xff", "application/x-www-form-urlencoded", 400, "not UTF-8"),
        (b"&a=" * 2001, "application/x-www-form-urlencoded", 400, "more than 2000 fields"),
        (b"--x\r\n\r\n", "multipart/form-data; boundary=x", 400, "does not end"),
        (b"--x--", "multipart/form-data", 400, "does not end"),
        (b"--x\r\na: b\r\n\r\nc\r\n--x--", "multipart/form-data; boundary=x", 400, "no name"),
        (b"--x\r\ncontent-disposition: form-data\r\n\r\nc\r\n--x--", "multipart/form-data; boundary=x", 400, "no name"),
        (b"--x\r\n" + b"a" * 9999 + b"\r\n\r\n\r\n--x--", "multipart/form-data; boundary=x", 400, "headers"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_damaged_body_is_refused_in_one_sentence(server, body, kind, status, words):
    found = requests.post(f"{server}/translate", body, headers={"content-type": kind}, timeout=60)
    assert found.status_code == status and words in found.json()["error"], found.text


FILES = {
    "a b.txt": ("A dog.\n\nTwo.\n", "To de: A dog.\n\nTo de: Two.\n"),
    "page.HTML": ("<p>A dog.</p>", "<p>To de: A dog.</p>"),
    "film.srt": (
        "1\n00:00:01,000 --> 00:00:02,000\nA dog.\n",
        "1\n00:00:01,000 --> 00:00:02,000\nTo de: A dog.\n",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_translated_and_can_be_fetched(server, name):
    content, expected = FILES[name]
    fields = {"source": "en", "target": "de"}
    found = requests.post(f"{server}/translate_file", fields, files={"file": (name, content)}, timeout=60).json()
    fetched = requests.get(found["translatedFileUrl"], timeout=60)
    assert found["translatedFileUrl"].startswith(f"{server}/download_file/") and fetched.text == expected
    assert fetched.headers["content-disposition"] == f'attachment; filename="{name.replace(" ", "_")}"'
    assert fetched.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "missing file"),
        ({"file": ("a.txt", b"")}, "empty file"),
        ({"file": ("a.pdf", b"PK")}, "file format not supported; a.pdf may end in .txt, .srt"),
        ({"file": ("a.docx", b"PK")}, "The text is damaged, or no document: File is not a zip file"),
        ({"file": ("a.txt.gz", b"\x1f")}, "file format not supported"),
        ({"file": ("a.jsonl", b"{}")}, "file format not supported"),
        ({"file": ("a.txt", b"\xff\xfe\xff")}, "not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(server, files, words):
    fields = {"source": "en", "target": "de"}
    found = requests.post(f"{server}/translate_file", fields, files=files or {"x": ("x", b"")}, timeout=60)
    assert found.status_code == 400 and words in found.json()["error"]


def test_a_file_that_is_not_there_is_404(server):
    assert requests.get(f"{server}/download_file/x.txt", timeout=60).status_code == 404
    assert requests.get(f"{server}/download_file/..%2f..%2fetc%2fpasswd", timeout=60).status_code == 404


def test_a_page_learns_what_it_may_ask(server):
    found = requests.get(f"{server}/frontend/settings", timeout=60).json()
    assert found["keyRequired"] is False and found["charLimit"] == 65536
    assert found["language"]["target"] == {"code": "de", "name": "German"}
    assert {".txt", ".html", ".srt", ".xlf"} <= set(found["supportedFilesFormat"])
    assert requests.get(f"{server}/health", timeout=60).json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "translate", 405), ("POST", "languages", 405), ("GET", "detect", 405)]
)
def test_another_method_is_refused(server, method, path, status):
    assert requests.request(method, f"{server}/{path}", timeout=60).status_code == status


@pytest.mark.parametrize(("told", "scheme"), [("https", "https"), ("http", "http"), ("gopher", "http")])
def test_the_link_to_a_file_has_the_scheme_by_which_a_proxy_was_asked(server, told, scheme):
    fields, file = {"source": "en", "target": "de"}, {"file": ("text.txt", "A dog.")}
    headers = {"X-Forwarded-Proto": told}
    found = requests.post(f"{server}/translate_file", fields, files=file, headers=headers, timeout=60).json()
    assert found["translatedFileUrl"].partition(":")[0] == scheme
