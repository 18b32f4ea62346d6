"""
Title: A translator as a server
Author: the authors of keras-transformer
Date created: 2026/11/27
Last modified: 2026/11/27
Description: Export a run folder for TensorFlow Serving, serve it, and ask it over HTTP.
Accelerator: None
"""

"""
## Introduction

    python examples/fit.py runs/fit
    python examples/serve.py [RUN [EXPORT]]

RUN is runs/fit, or any run folder; EXPORT is where the export is written, exports/fit. It needs the extra `serve`. The
end of its output:

    3 of 3 answers of the server are right
"""

"""
## Setup
"""

import json
import pathlib
import re
import subprocess
import sys
import urllib.request

import keras_transformer as kt

run = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "runs/fit")
export = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "exports/fit")
sentences = ["seven", "thirty-five", "two hundred and forty-one"]

"""
## Export

A version is a SavedModel with the tokenizer and the beam search inside: text goes in, text comes out. It is published
only if every runtime translates the run's own sentences as the run does.
"""

program = [sys.executable, "-m", "keras_transformer"]
subprocess.run([*program, "export", run, "--to", export], check=True)

"""
## Serve

The local server answers as TensorFlow Serving does. On port 0 the system chooses one, which the server prints.
"""

command = [*program, "serve", export, "--port", "0", "--grpc-port", "0"]
server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
try:
    url = next(found[0] for line in server.stdout if (found := re.search(r"http\S+:predict", line)))

    """
    ## Ask

    One request may bring many sentences. What it does not say, such as the size of the beam, is as it was exported.
    """

    body = json.dumps({"instances": [{"text": sentence} for sentence in sentences]}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body), timeout=60) as response:
        answers = json.load(response)["predictions"]
finally:
    server.terminate()
    server.communicate()

"""
## Compare

The run itself gives the same translations.
"""

expected = [translation.text for translation in kt.Translator.load(run).translate(sentences)]
texts = [answer["translation"] if isinstance(answer, dict) else answer for answer in answers]
for sentence, text in zip(sentences, texts, strict=True):
    print(f"{sentence} -> {text}")
right = sum(text == other for text, other in zip(texts, expected, strict=True))
print(f"{right} of {len(sentences)} answers of the server are right")
