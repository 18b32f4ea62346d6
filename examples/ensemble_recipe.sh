#!/usr/bin/env bash
# Train two models on four texts from the same 29,000 pairs of Multi30k, English to German: 41.95 BLEU on test_2016.
#
#     make multi30k
#     examples/ensemble_recipe.sh
#
# The texts are the pairs; what a larger model makes of the English side; what four models of this size make of it
# together (Freitag et al. 2017); and what two models make of the German side, as sources of the references (Sennrich
# et al. 2016). docs/experiments.md has what each is worth. All of it takes about ten hours of a core. If it is
# interrupted, the same command goes on: what was finished is listed in runs/ensemble_recipe.
#
# DIVISOR=1000 trains a thousandth of the updates, and SETTINGS="--set training.xla=false" is added to each training:
# to see whether all commands run.
finished=runs/ensemble_recipe
source "$(dirname "$0")/recipe_steps.sh"
runs=runs/multi30k_en_de

# The larger model, and its translations.
once larger_model train multi30k 4500 0
once distilled distil $runs --source $en --reference $de --output $runs/distilled.de

# With each seed: a model of both directions; one that goes on from it in the one direction that is wanted, with less
# dropout at the end; and one that is trained in that direction alone, with less dropout at the end too.
for seed in 1 2; do
  folder=$runs seeds=(--set training.seed=$seed)
  suffix=$([ $seed = 1 ] || echo _seed$seed)
  pretrained=("${seeds[@]}" --set run_folder=${folder}_pretrained$suffix)
  bidirectional=(--set run_folder=${folder}_bidirectional$suffix --set training.start_from=${folder}_pretrained$suffix)
  distilled=("${seeds[@]}" --set run_folder=${folder}_distilled$suffix)

  once pretrained$suffix train multi30k/pretrained 7000 0 "${pretrained[@]}"
  once bidirectional$suffix train multi30k/bidirectional 4800 0 "${seeds[@]}" "${bidirectional[@]}"
  once less_dropout$suffix train multi30k/bidirectional 9000 4000 "${bidirectional[@]}" \
    --set training.dropout=0.2 --set training.seed=1$seed
  once longer_pretrained$suffix train multi30k/pretrained 10000 0 "${pretrained[@]}"
  once one_direction$suffix train multi30k/distilled 10700 0 "${distilled[@]}"
  once longer_one_direction$suffix train multi30k/distilled 16500 5800 "${distilled[@]}" --set training.dropout=0.2
done

# What four of these models make of the English side together, and what two make of the German side.
once ensemble distil ${runs}_bidirectional --ensemble ${runs}_bidirectional_seed2 --ensemble ${runs}_distilled \
  --ensemble ${runs}_distilled_seed2 --source $en --reference $de --output ${runs}_bidirectional/ensemble.de
once back_translated distil ${runs}_pretrained --ensemble ${runs}_pretrained_seed2 --source $de --reference $en \
  --output ${runs}_pretrained/back_translated.en

# The recipe's own models: on from those of both directions, half of it with less dropout.
for seed in 1 2; do
  suffix=$([ $seed = 1 ] || echo _seed$seed)
  own=(--set training.seed=$seed --set run_folder=${runs}_ensemble$suffix)
  own+=(--set training.start_from=${runs}_pretrained$suffix)
  once half$suffix train multi30k/ensemble 5000 0 "${own[@]}"
  once whole$suffix train multi30k/ensemble 10000 5000 "${own[@]}" --set training.dropout=0.2
done
