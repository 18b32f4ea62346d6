#!/usr/bin/env bash
# Train a model that translates English to German faster than that of presets/multi30k_en_de: it begins with all layers
# of that one but the first of its decoder, and learns from its translations.
#
#     make multi30k
#     examples/faster_recipe.sh
#
# The three texts are the pairs of Multi30k, and what a larger model and the preset make of their English side. All of it
# takes about two hours and a half of a core, of which the larger model takes one. If it is interrupted, the same command
# goes on: what was finished is listed in runs/faster_recipe.
#
# DIVISOR=1000 trains a thousandth of the updates, and SETTINGS="--set training.xla=false" is added to each training:
# to see whether all commands run.
finished=runs/faster_recipe
source "$(dirname "$0")/recipe_steps.sh"
runs=runs/multi30k_en_de

# The larger model, and its translations.
once larger_model train multi30k 4500 0
once distilled distil $runs --source $en --reference $de --output $runs/distilled.de

# Those of the preset, and the model that begins with it.
once taught distil presets/multi30k_en_de --source $en --reference $de --output $runs/taught.de
once student train multi30k/faster 5000 3500
