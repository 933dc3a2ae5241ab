# Configuring and building a preset, quietly. Sourced.

# build PRESET [TARGET...]: everything, or only the targets named. The log stays in build/logs.
build() {
  local preset=$1 log=$LOGS/build-$1.log targets=()
  shift
  (($# == 0)) || targets=(--target "$@")
  use_unpacked_packages
  mkdir -p "$LOGS"
  # In CI, what was compiled in one folder serves in every other (scripts/mutate builds copies).
  if [[ ${CI:-} == true ]]; then
    export CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1 CCACHE_IGNOREOPTIONS='-DRINGLET_TESTDATA=*'
  fi
  if [[ ! -f $ROOT/build/$preset/build.ninja ]]; then
    quietly "$LOGS/configure-$preset.log" "configuring $preset" cmake -S "$ROOT" --preset "$preset" ||
      return 1
  fi
  # Silent when there is nothing to do.
  if cmake --build "$ROOT/build/$preset" "${targets[@]}" -- -n 2>/dev/null |
     grep -q 'no work to do'; then
    return 0
  fi
  local start=$SECONDS status=0
  cmake --build "$ROOT/build/$preset" "${targets[@]}" 2>&1 </dev/null | tee "$log" |
    show_progress "building $preset" || status=$?
  if ((status)); then
    say "building $preset: FAILED after $((SECONDS - start)) s; the first errors of $log:"
    grep -E -A 4 -m 4 'error:|undefined reference' "$log" >&2 || tail -n 40 "$log" >&2
    return 1
  fi
  say "building $preset: $((SECONDS - start)) s"
}

# Ninja's "[12/34] ..." lines as one line that is written over; nothing where there is no terminal.
show_progress() {
  local line
  while IFS= read -r line; do
    [[ -t 2 && $line =~ ^\[([0-9]+/[0-9]+)\] ]] && printf '\r%s: %s ' "$1" "${BASH_REMATCH[1]}" >&2
  done
  [[ -t 2 ]] && printf '\r\033[K' >&2
  return 0
}
