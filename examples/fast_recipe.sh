#!/usr/bin/env bash
# Train a model that translates English to German fast, with six layers that read and two that write, on three texts
# from the same 29,000 pairs of Multi30k.
#
#     make multi30k
#     examples/fast_recipe.sh
#
# The texts are the pairs; what a larger model makes of the English side; and what a model of both directions, with
# which this training begins too, makes of the German side, as sources of the references (Sennrich et al. 2016). All of
# it takes about three hours of a core. If it is interrupted, the same command goes on: what was finished is listed in
# runs/fast_recipe.
#
# DIVISOR=1000 trains a thousandth of the updates, and SETTINGS="--set training.xla=false" is added to each training:
# to see whether all commands run.
finished=runs/fast_recipe
source "$(dirname "$0")/recipe_steps.sh"
runs=runs/multi30k_en_de

# The larger model, and its translations.
once larger_model train multi30k 4500 0
once distilled distil $runs --source $en --reference $de --output $runs/distilled.de

# A model of both directions, and what it makes of the German side.
layers=(--set model.encoder_layers=6 --set model.decoder_layers=2 --set model.positions=rotary)
once pretrained train multi30k/pretrained 7000 0 "${layers[@]}" --set run_folder=${runs}_fast_pretrained
once back_translated distil ${runs}_fast_pretrained --source $de --reference $en \
  --output ${runs}_fast_pretrained/back_translated.en

# The one direction that is wanted, half of it with less dropout.
once half train multi30k/fast 5000 0
once whole train multi30k/fast 10000 5000 --set training.dropout=0.2
