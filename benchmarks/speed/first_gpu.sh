#!/usr/bin/env bash
# Measure a GPU in ten minutes: stock fit and translation on JAX, keras-transformer train and translate on TensorFlow.
#
#     pip install -e ".[train]" "tensorflow[and-cuda]==2.21.0" "jax[cuda13]" torch ctranslate2
#     bash benchmarks/speed/first_gpu.sh results/my_gpu
#
# The folder then has first_gpu.md: a table, and the row of it that README.md wants. A part that fails is a row without
# a number, and the exit code is 1. --toy before the folder does all of it at toy size, on a CPU too: to see that it runs.
set -u
cd "$(dirname "$0")/../.."
python=${PYTHON:-python}
accelerator=(--sizes base --contestants keras_bfloat16,torch_bfloat16 --rounds 3 --minutes 3.5)
translation=(--sizes base --contestants ours_bfloat16,ctranslate2_float16 --rows 32 --rows 512 --minutes 2)
text=(--pairs 100000) vocabulary=37000 preset=base steps=300 precision=mixed_bfloat16 xla=true
batch=(tokens_per_batch=24576 row_length=128) lines=1024
if [ "${1:-}" = --toy ]; then
  shift
  accelerator=(--sizes tiny --contestants keras_float32 --rows 4 --row-length 32 --steps 2 --rounds 2 --minutes 5)
  translation=(--sizes tiny --contestants ours_float32 --rows 4 --beams 1 --rounds 2 --minutes 5)
  text=(--pairs 500 --words 100) vocabulary=400 preset=tiny steps=4 precision=float32 xla=false
  batch=(tokens_per_batch=256 row_length=64) lines=8
fi
to=${1:?Say where the results go: bash benchmarks/speed/first_gpu.sh FOLDER}
mkdir -p "$to" && to=$(cd "$to" && pwd) && began=$SECONDS failed=0

"$python" -m benchmarks.speed.accelerator --to "$to/jax" "${accelerator[@]}" || failed=1
"$python" -m benchmarks.speed.accelerator_translate --to "$to/jax" "${translation[@]}" || failed=1

"$python" -m benchmarks.speed.first_gpu text "$to" "${text[@]}" || failed=1
cat > "$to/train.toml" <<TOML
run_folder = "$to/run"
cache_folder = "$to/cache"
tokenizer = {vocab_size = $vocabulary}
model = {preset = "$preset"}
translation = {validation_sentences = 8}

[data]
source = "files"
train = ["$to/train.tsv"]
validation = ["$to/validation.tsv"]

[training]
${batch[0]}
${batch[1]}
steps = $steps
warmup_steps = $steps
checkpoint_every = $steps
validate_every = $steps
precision = "$precision"
picture_sentences = 0
xla = $xla
TOML
"$python" -m keras_transformer train "$to/train.toml" || failed=1

for device in gpu cpu; do # the same lines with and without the GPU
  hidden=${CUDA_VISIBLE_DEVICES-all}
  [ $device = cpu ] && hidden=-1
  [ "$hidden" = all ] || export CUDA_VISIBLE_DEVICES=$hidden
  "$python" -m benchmarks.speed.first_gpu translate "$to/translate_$device.json" presets/multi30k_en_de --lines $lines || failed=1
done

"$python" -m benchmarks.speed.first_gpu table "$to" || failed=1
echo "$((SECONDS - began)) seconds; $to/first_gpu.md"
exit $failed
