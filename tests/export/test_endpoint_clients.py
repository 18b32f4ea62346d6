"""Clients that others wrote for LibreTranslate, and the requests of some more, against the local server."""

import json
import shutil
import subprocess

import pytest
import requests

from tests.support.languages import pair, write_models
from tests.support.peers import needs
from tests.support.servers import serving

KEY, EXTENSION = "key-0123456789abcdef", "chrome-extension://abcdefghijklmnopabcdefghijklmnop"
GERMAN = "Ein kleiner Hund läuft über die grüne Wiese."


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return write_models(tmp_path_factory.mktemp("models"), **{"en-de": pair("en", "de"), "de-en": pair("de", "en")})


@pytest.fixture(scope="module")
def server(models):
    """It asks for a key, and an extension of a browser may ask it."""
    file = models.parent / "keys"
    file.write_text(KEY)
    with serving(models, api_key_file=file, allow_origins=(EXTENSION,)) as address:
        yield f"http://{address.host}:{address.port}"


@pytest.fixture(scope="module")
def open_server(models):
    with serving(models) as address:
        yield f"http://{address.host}:{address.port}"


@needs("libretranslatepy")
def test_libretranslatepy(server):
    from libretranslatepy import LibreTranslateAPI

    client = LibreTranslateAPI(server, KEY)
    assert client.translate("A dog. Zwei & drei = 5.", "en", "de") == "To de: A dog. To de: Zwei & drei = 5."
    assert [each["code"] for each in client.languages()] == ["en", "de"]
    pytest.importorskip("py3langid", reason="needs the extra clean")
    assert client.detect(GERMAN)[0]["language"] == "de"
    assert client.translate(GERMAN, "auto", "en") == f"To en: {GERMAN}"


@needs("libretranslatepy")
def test_libretranslatepy_with_a_key_that_is_none(server):
    from urllib.error import HTTPError

    from libretranslatepy import LibreTranslateAPI

    for key, status in (("wrong", 403), (None, 400)):
        with pytest.raises(HTTPError) as error:
            LibreTranslateAPI(server, key).translate("A dog.", "en", "de")
        assert error.value.code == status
        assert LibreTranslateAPI(server, key).languages()


@needs("translatepy")
def test_translatepy(open_server):
    """It has the address of the public server in it, so its session turns requests to this one."""
    from translatepy.translators.libre import LibreTranslate

    class Here(requests.Session):
        def post(self, url, data=None, headers=None, **more):
            return super().post(url.replace("https://libretranslate.com", open_server), data, timeout=60)

    client = LibreTranslate(Here())
    assert client.translate("A dog.", "German", "English").result == "To de: A dog."
    pytest.importorskip("py3langid", reason="needs the extra clean")
    assert client.language(GERMAN).result.alpha2 == "de"
    assert client.translate(GERMAN, "English").result == f"To en: {GERMAN}"


@pytest.fixture(scope="module")
def npm_clients(tmp_path_factory):
    """A folder with two clients of npm's registry."""
    if not (npm := shutil.which("npm")):
        pytest.skip("needs npm")
    folder = tmp_path_factory.mktemp("npm")
    install = [npm, "install", "--silent", "libretranslate-ts@0.5.12", "libretranslate@1.0.1"]
    if subprocess.run(install, cwd=folder, check=False).returncode:
        pytest.skip("needs npm's registry")
    return folder


def answer_of(script, folder, *arguments):
    """Run a script of Node.js in a folder, and return what it prints as JSON."""
    program = ["node", "--input-type=commonjs", "--eval", script, *arguments]
    done = subprocess.run(program, cwd=folder, check=True, capture_output=True, text=True, timeout=120)
    return json.loads(done.stdout)


@pytest.mark.release
def test_libretranslate_ts_of_npm(npm_clients, server):
    script = """
    const {libreTranslate} = require("libretranslate-ts");
    const [server, key, german] = process.argv.slice(1);
    libreTranslate.setApiEndpoint(server);
    libreTranslate.setApiKey(key);
    (async () => console.log(JSON.stringify([
      await libreTranslate.translate("A dog.", "en", "de"),
      await libreTranslate.translate("A dog.", "en", "xx"),
      await libreTranslate.detect(german)])))();
    """
    translated, refused, detected = answer_of(script, npm_clients, server, KEY, GERMAN)
    assert translated["translatedText"] == "To de: A dog."
    assert "xx" in refused["error"]  # its status is 500, whatever the answer has
    pytest.importorskip("py3langid", reason="needs the extra clean")
    assert detected["language"] == "de"


@pytest.mark.release
def test_libretranslate_of_npm(npm_clients, open_server):
    script = """
    const [apiurl] = process.argv.slice(1);
    require("libretranslate").translate({query: "A dog.", source: "en", target: "de", apiurl})
      .then(text => console.log(JSON.stringify(text)));
    """
    assert answer_of(script, npm_clients, open_server) == "To de: A dog."


def test_the_requests_of_weblate(server):
    """weblate/machinery/libretranslate.py: the languages, then a form per text, or a list of texts in JSON."""
    assert [each["code"] for each in requests.get(f"{server}/languages", timeout=60).json()] == ["en", "de"]
    data = {"api_key": KEY, "q": "A dog.", "source": "en", "target": "de"}
    assert requests.post(f"{server}/translate", data, timeout=60).json()["translatedText"] == "To de: A dog."
    many = requests.post(f"{server}/translate", json=data | {"q": ["A dog.", "B c."]}, timeout=60).json()
    assert many["translatedText"] == ["To de: A dog.", "To de: B c."]


def test_the_requests_of_a_browser_s_extension(server):
    """It asks from an origin of its own, with JSON, so that a browser asks first whether it may."""
    origin = {"origin": EXTENSION}
    asks = origin | {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    may = requests.options(f"{server}/translate", headers=asks, timeout=60)
    assert may.status_code == 200 and may.headers["access-control-allow-origin"] == EXTENSION
    body = {"q": "<b>A dog.</b>", "source": "en", "target": "de", "format": "html", "api_key": KEY}
    found = requests.post(f"{server}/translate", json=body, headers=origin, timeout=60)
    assert found.json() == {"translatedText": "<b>To de: A dog.</b>"}
    assert found.headers["access-control-allow-origin"] == EXTENSION


@pytest.mark.parametrize("origin", ["chrome-extension://other", "https://evil.example", "null"])
@pytest.mark.parametrize("path", ["translate", "detect", "translate_file", "languages", "v1/translations"])
def test_others_may_not_ask_from_a_browser(server, open_server, origin, path):
    for address in (server, open_server):
        method = "GET" if path == "languages" else "POST"
        data = {"api_key": KEY, "q": "A dog.", "source": "en", "target": "de"}
        found = requests.request(method, f"{address}/{path}", data=data, headers={"origin": origin}, timeout=60)
        assert found.status_code == 403 and "access-control-allow-origin" not in found.headers


@pytest.mark.parametrize("headers", [{"authorization": f"Bearer {KEY}"}, {"x-api-key": KEY}])
def test_a_key_may_be_a_header(server, headers):
    body = {"q": "A dog.", "source": "en", "target": "de"}
    assert requests.post(f"{server}/translate", json=body, headers=headers, timeout=60).status_code == 200
    body = {"input": "A dog.", "target_language": "de", "source_language": "en"}
    assert requests.post(f"{server}/v1/translations", json=body, headers=headers, timeout=60).status_code == 200


@pytest.mark.parametrize("key", [None, "", "wrong", 1, KEY.upper(), [KEY]])
@pytest.mark.parametrize("path", ["translate", "detect"])
def test_without_a_key_there_is_no_answer(server, path, key):
    body = {"q": "A dog.", "source": "en", "target": "de", "api_key": key}
    found = requests.post(f"{server}/{path}", json=body, timeout=60)
    assert found.status_code in (400, 403) and set(found.json()) == {"error"}


def test_what_is_refused_for_its_key_is_counted(server):
    for path in ("translate", "v1/translations"):
        before = count(server, "UNAUTHENTICATED")
        requests.post(f"{server}/{path}", json={"q": "A dog.", "api_key": "wrong"}, timeout=60)
        assert count(server, "UNAUTHENTICATED") == before + 1


def count(server, status):
    """How many predictions had a status."""
    headers = {"x-api-key": KEY}
    text = requests.get(f"{server}/monitoring/prometheus/metrics", headers=headers, timeout=60).text
    found = [line for line in text.splitlines() if "request_count" in line and f'"{status}"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in found)


@pytest.mark.parametrize("path", ["languages", "health", "frontend/settings"])
def test_what_there_is_needs_no_key(server, path):
    assert requests.get(f"{server}/{path}", timeout=60).status_code == 200


def test_a_file_is_fetched_without_a_key_under_a_name_that_nobody_can_guess(server):
    fields = {"source": "en", "target": "de", "api_key": KEY}
    found = requests.post(f"{server}/translate_file", fields, files={"file": ("a.txt", "A dog.")}, timeout=60).json()
    assert requests.get(found["translatedFileUrl"], timeout=60).text == "To de: A dog."
    assert len(found["translatedFileUrl"].rpartition("/")[2]) >= 32 + len(".a.txt")
    assert requests.post(found["translatedFileUrl"], timeout=60).status_code == 401
