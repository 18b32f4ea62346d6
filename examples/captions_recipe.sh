#!/usr/bin/env bash
# Train the model of fast_recipe.sh on with captions that nobody has translated: 109,434 in English and 107,914 in German,
# of the images of Multi30k's training text.
#
#     make multi30k CAPTIONS=1
#     examples/fast_recipe.sh
#     examples/captions_recipe.sh
#
# What that model makes of the English ones are targets for them (He et al. 2020); what a model of the other direction
# makes of the German ones, sources for these (Sennrich et al. 2016). A teacher and a first student of this text together
# then write better targets, with which the student trains on. All of it takes about three hours of a core, one that
# multiplies in bfloat16. If it is interrupted, the same command goes on: what was finished is listed in
# runs/captions_recipe.
#
# DIVISOR=1000 trains a thousandth of the updates, and SETTINGS="--set training.xla=false" is added to each training:
# to see whether all commands run.
finished=runs/captions_recipe
source "$(dirname "$0")/recipe_steps.sh"
fast=runs/multi30k_en_de_fast
runs=runs/multi30k_en_de_captions
captions=data/multi30k/captions

entry() { # SOURCES TARGETS WEIGHT: one of data.train
  echo "{files = [\"$1\", \"$2\"], weight = $3}"
}

# What the model of the fast recipe makes of the English captions, and one of the other direction of the German ones.
once forward translate $fast --input $captions.en --output $fast/captions.de
once reversed train multi30k/captions_de_en 5000 2500
once backward translate ${runs}_reversed --input $captions.de --output ${runs}_reversed/captions.en

# A teacher, which begins with the pairs and the English captions alone, and a first student.
pairs=$(entry $en $de 7)
once teacher_first train multi30k/captions_teacher 2600 0 --set run_folder=${runs}_teacher_first \
  --set tokenizer.model=$fast/tokenizer.model --set training.warmup_steps=600 \
  --set data.train="[$pairs, $(entry $captions.en $fast/captions.de 5)]"
once teacher train multi30k/captions_teacher 4500 3500 --set training.start_from=${runs}_teacher_first
texts="$(entry $en $de 5), $(entry $captions.en $fast/captions.de 8)"
once student train multi30k/captions 8000 5000 --set run_folder=${runs}_student --set training.start_from=$fast \
  --set data.train="[$texts, $(entry ${runs}_reversed/captions.en $captions.de 7)]"

# What both together make of the English captions. The penalty keeps them as long as the pairs are: shorter ones teach
# the student to leave out.
once together translate ${runs}_teacher --ensemble ${runs}_student --input $captions.en \
  --output ${runs}_teacher/captions.de --length-penalty 2.5 --precision bfloat16
once whole train multi30k/captions 6000 4500
