# Sourced by the scripts beside it: commands of a recipe, each of which is run once.
#
# What was finished is listed in the folder $finished, so that a script that was interrupted goes on where it stopped.
set -euo pipefail

program=${PROGRAM:-keras-transformer}
read -ra settings <<< "${SETTINGS:-}"
en=data/multi30k/train.en.gz
de=data/multi30k/train.de.gz

mkdir -p "$finished"

once() { # NAME COMMAND...: run the command, unless it was finished before
  if [ ! -e "$finished/$1" ]; then
    echo "== $1"
    "${@:2}"
    touch "$finished/$1"
  fi
}

updates() { # UPDATES: so many, or a part of them
  echo $(($1 / ${DIVISOR:-1}))
}

train() { # CONFIG UPDATES COOLDOWN [OPTION...]
  $program train "configs/$1.toml" --set training.steps="$(updates "$2")" \
    --set training.cooldown_steps="$(updates "$3")" "${settings[@]}" "${@:4}"
}

distil() { # the translations nearest to a text, by one run or several
  $program distil "$@" --precision bfloat16
}

translate() { # RUN --input FILE --output FILE: what a run makes of a text
  $program translate "$@" --beam-size 4
}
