# What the tests over several machines share (machines_test, survival_test): the machines, which scripts/machines
# plays, runs that lose something, and what is expected of their output. To be sourced, with the program's path in $1;
# ends with 77 where nobody may make namespaces.
# shellcheck shell=bash
ROOT=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
PROGRAM=$(realpath "${1:?names the program}") || exit
"$ROOT/scripts/machines" 1 -- true || exit
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export PROGRAM WORK
export XDG_CACHE_HOME=$WORK/cache  # no table that was measured here
FAILED=0

machines() { "$ROOT/scripts/machines" "$@"; }
bad() {
  printf 'FAILED: %s\n' "$*" >&2
  FAILED=1
}
spaced_once() { tr -s '[:space:]' ' '; }
# holds FILE TEXT: the text stands in the file, but for the spacing: lines may be wrapped.
holds() {
  local words
  words=$(printf '%s' "$2" | spaced_once)
  [[ $(spaced_once <"$1") == *"$words"* ]] || bad "'$2' does not stand in ${1##*/}: $(tail -n 20 "$1")"
}
same_bytes() {
  cmp -s "$1/model.safetensors" "$2/model.safetensors" || bad "other bytes $3"
}
# The end of such a test.
conclude() {
  ((FAILED)) || echo "$1: all good in $SECONDS s"
  exit "$FAILED"
}

has_torchrun() { python3 -c 'import torch.distributed.run' 2>/dev/null; }
# torchrun FLAG... PROGRAM...: its agents on two machines, for two processes on each. What BESIDE says, if anything, is
# run beside them on m0, in whose eyes the processes of both have the same numbers.
torchrun() {
  machines 2 -- bash -c '((MACHINE)) || eval "${BESIDE:-}" &
    exec python3 "$0" --nnodes 2 --node_rank "$MACHINE" --nproc_per_node 2 \
    --master_addr 10.77.0.1 --master_port 29500 --no_python "$@"' "$ROOT/tests/cli/torchrun.py" "$@"
}

# Flags that some runs change stand in variables.
export RINGLET_COMM_TIMEOUT=40 RINGLET_SYNTHETIC_TRAIN=256
SMALL=(train --data synthetic --synthetic-test 64 --model mlp --batch-size 64 --epochs 1 --processes)
LONG=(train --data synthetic --synthetic-train 6400 --model mlp --batch-size 64 --epochs 100000 --lr 0.001 --no-out
      --processes)

# lose WHAT VICTIM WHEN COMMAND: starts a long training of four processes on two machines. After WHEN, a command of
# the shell's, COMMAND is run on the victim's machine, with the victim's number in $pid. Notes when that was, each
# process's number, its output, and when it ended.
lose() {
  local what=$1
  machines 2 --each 2 -- bash -c '
    victim=$1 when=$2 command=$3 what=$4
    shift 4
    "$PROGRAM" "$@" >"$WORK/$what.$RANK" 2>&1 &
    pid=$!
    echo "$pid" >"$WORK/$what.pid$RANK"
    if [[ $RANK == "$victim" ]]; then
      eval "$when"
      date +%s.%N >"$WORK/$what.begin"
      eval "$command"
    fi
    wait "$pid"
    ended=$?
    date +%s.%N >"$WORK/$what.end$RANK"
    exit "$ended"' . "$2" "$3" "$4" "$what" "${LONG[@]}" >"$WORK/$what.txt" 2>&1
}
# ended WHAT RANK SECONDS: the rank has ended so soon after the loss.
ended() {
  [[ -s $WORK/$1.end$2 && -s $WORK/$1.begin ]] || { bad "$1: rank $2 did not end"; return; }
  awk -v limit="$3" -v begin="$(cat "$WORK/$1.begin")" -v end="$(cat "$WORK/$1.end$2")" \
    'BEGIN { exit !(end - begin <= limit) }' || bad "$1: rank $2 took longer than $3 s"
}
