// Requests: what is sent, and how a shell or Python sends the same.

let apiKey = ""; // of a server that wants one; only this page has it, until it is closed

/** Take what was typed as the key. Returns whether a header can carry it. */
function takeKey(typed) {
  const isKey = /^[!-~]+$/.test(typed);
  if (isKey) apiKey = typed;
  return isKey;
}

/** Return the body that asks a signature for one sentence; options that have their default are left out. */
function bodyOf(signature, text, options) {
  return { signature_name: signature, instances: [{ text, ...options }] };
}

/** Ask the server. Returns the row of the answer; throws an Error with the server's sentence. */
async function ask(url, body, signal) {
  let response, text;
  try {
    const headers = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
    response = await fetch(url, { method: "POST", body: JSON.stringify(body), headers, signal });
    text = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is it still running?");
  }
  const answer = parsed(text);
  if (response.status === 401) askForKey();
  if (response.ok && answer.predictions) return answer.predictions[0];
  throw new Error(answer.error ?? `The server answered ${response.status}.`);
}

/** Return an object of JSON, or an empty one for anything else, such as the answer of a proxy. */
function parsed(text) {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

/** Write the request as a line for a POSIX shell. A key is left to the variable API_KEY of the shell. */
function curlLine(url, body) {
  const header = apiKey ? `-H "Authorization: Bearer $API_KEY" ` : "";
  return `curl ${header}-d ${quoted(JSON.stringify(body))} \\\n    ${quoted(url)}`;
}

const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** Write the request as lines of Python, in which a string of JSON is a string too. */
function pythonLines(url, body) {
  const [instance] = body.instances;
  const inPython = (value) => (value === true ? "True" : JSON.stringify(value));
  const inputs = Object.entries(instance).map(([name, value]) => `${JSON.stringify(name)}: ${inPython(value)}`);
  const headers = apiKey ? `, headers={"Authorization": "Bearer " + os.environ["API_KEY"]}` : "";
  return [
    ...(apiKey ? ["import os", ""] : []),
    "import requests",
    "",
    `url = ${JSON.stringify(url)}`,
    `instance = {${inputs.join(", ")}}`,
    `body = {"signature_name": ${JSON.stringify(body.signature_name)}, "instances": [instance]}`,
    `response = requests.post(url, json=body${headers})`,
    "response.raise_for_status()",
    `[row] = response.json()["predictions"]`,
    `print(row["translations"][0])`,
  ].join("\n");
}
