"""The page that describes an API from its OpenAPI description: HTML without a script, which loads nothing."""

import html
import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

from keras_transformer.page import digest, text_of

STYLES = ("page.css", "reference.css")
Json = dict[str, Any]


def reference(description: Json, origin: str) -> str:
    """Return the page. origin: the server in examples, such as http://localhost:8501."""
    info, tags = description["info"], description["tags"]
    sections = "\n".join(section(description, tag, origin) for tag in tags)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy()}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{shown(info["title"])}: API</title>
<style>{text_of(STYLES)}</style>
</head>
<body>
<header>
<p class="project"><a href="./">{shown(info["title"])}</a></p>
<h1>API</h1>
<p>{with_code(info["description"])} Programs read the same as <a href="openapi.json">openapi.json</a>.</p>
</header>
<main>
{sections}
</main>
</body>
</html>
"""


def policy() -> str:
    """Return the policy that lets the page have its style, and nothing else."""
    return f"default-src 'none'; style-src '{digest(text_of(STYLES))}'; base-uri 'none'; form-action 'none'"


def section(description: Json, tag: Json, origin: str) -> str:
    """Return what a tag of operations is for, and each of them."""
    operations = [
        operation(description, method, path, each, origin)
        for path, methods in description["paths"].items()
        for method, each in methods.items()
        if tag["name"] in each["tags"]
    ]
    head = f"<h2>{shown(tag['name'])}</h2>\n<p>{with_code(tag['description'])}</p>"
    return f"<section>\n{head}\n" + "\n".join(operations) + "\n</section>"


def operation(description: Json, method: str, path: str, each: Json, origin: str) -> str:
    """Return an operation, whose details are folded up."""
    parts = [f"<p>{with_code(each['description'])}</p>"] if "description" in each else []
    if parameters := each.get("parameters"):
        fields = {parameter["name"]: parameter for parameter in parameters}
        parts.append(
            table("Path", {n: f["schema"] | {"description": f["description"]} for n, f in fields.items()}, fields)
        )
    if request := each.get("requestBody"):
        kinds = ", ".join(request["content"])
        schema = next(iter(request["content"].values()))["schema"]
        parts.append(table(f"Body: {kinds}", schema["properties"], schema.get("required", ())))
    if "x-instance" in each:
        name = each["x-instance"]["$ref"].rpartition("/")[2]
        schema = description["components"]["schemas"][name]
        parts.append(table(f"{name} of the signature translate", schema["properties"], schema["required"]))
    for status, answer in each["responses"].items():
        if status == "200":
            parts.append("".join(answer_of(answer)))
    parts.append(f'<pre class="example" tabindex="0"><code>{shown(example(method, path, each, origin))}</code></pre>')
    head = f'<span class="method">{method.upper()}</span><span class="path">{shown(path)}</span>'
    summary = f'<summary>{head}<span class="summary">{shown(each["summary"])}</span></summary>'
    name = shown(each["operationId"])
    return f'<details class="operation" id="{name}">{summary}<div class="inside">{"".join(parts)}</div></details>'


def answer_of(answer: Json) -> Iterator[str]:
    """Yield the fields of an answer, or its kind if it has none."""
    kinds = list(answer["content"])
    schema = answer["content"][kinds[0]]["schema"]
    if properties := schema.get("properties"):
        yield table(f"Answer: {', '.join(kinds)}", properties, schema.get("required", ()))
    else:
        yield f"<p>Answer: {shown(', '.join(kinds))}</p>"


def table(title: str, properties: Json, required: Any) -> str:
    """Return a table of fields."""
    rows = "".join(row(name, schema, name in required) for name, schema in properties.items())
    return f'<div><h3>{shown(title)}</h3><table class="fields"><tbody>{rows}</tbody></table></div>'


def row(name: str, schema: Json, is_required: bool) -> str:
    help, default = schema.get("description", ""), schema.get("default")
    kind = kind_of(schema) + ("" if default in (None, "") else f" = {json.dumps(default)}")
    marked = f"{shown(name)}{' *' if is_required else ''}"
    return f'<tr><th scope="row">{marked}</th><td class="kind">{shown(kind)}</td><td>{with_code(help)}</td></tr>'


def kind_of(schema: Json) -> str:
    """Return what values a schema allows, in few words."""
    if "enum" in schema:
        values = [value for value in schema["enum"] if value != ""]
        return " | ".join(values[:6]) + (" | …" if len(values) > 6 else "")
    if "const" in schema:
        return json.dumps(schema["const"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(kind_of, schema["anyOf"])))
    if schema.get("type") == "array":
        return f"list of {kind_of(schema.get('items', {}))}" if schema.get("items") else "list"
    kind = schema.get("type", "any")
    if "minimum" in schema and "maximum" in schema:
        return f"{kind} {schema['minimum']:g} to {schema['maximum']:g}"
    return kind


def example(method: str, path: str, each: Json, origin: str) -> str:
    """Return a line of curl that asks for an operation."""
    url = f"{origin}{path}"
    for parameter in each.get("parameters", ()):
        names = parameter["schema"].get("enum") or [{"integer": "1"}.get(parameter["schema"]["type"], "NAME")]
        url = url.replace(f"{{{parameter['name']}}}", str(names[0]))
    if method == "get":
        return f"curl {shlex.quote(url)}"
    contents = each["requestBody"]["content"]
    if "application/json" not in contents:
        schema = contents["multipart/form-data"]["schema"]
        fields = {n: (schema["properties"][n].get("enum") or ["@page.html"])[-1] for n in schema["required"]}
        return f"curl {' '.join(f'-F {name}={value}' for name, value in fields.items())} {shlex.quote(url)}"
    asked = json.dumps(contents["application/json"]["example"])
    return f"curl -H 'Content-Type: application/json' -d {shlex.quote(asked)} {shlex.quote(url)}"


def shown(text: str) -> str:
    return html.escape(text)


def with_code(text: str) -> str:
    """Return a text whose parts between backticks are code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", shown(text))
