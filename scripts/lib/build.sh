# Configuring and building a preset, quietly. Sourced.

# build_program PRESET: the program only. A folder that is new is configured without tests and benchmarks,
# and so without the packages that only they need; one that has them keeps them.
build_program() { ONLY_PROGRAM=ON build "$1" ringlet; }

# find_clang SANITIZERS: the newest clang++, 16 or later, that has them.
find_clang() {
  local compiler
  for compiler in clang++-{25..16} clang++; do
    command -v "$compiler" >/dev/null || continue
    (($("$compiler" -dumpversion | cut -d. -f1) >= 16)) || continue
    # libFuzzer brings a main() of its own, and calls that function.
    echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }
          [[gnu::weak]] int main() {}' |
      "$compiler" -x c++ "-fsanitize=$1" - -o /dev/null 2>/dev/null && echo "$compiler" && return
  done
  return 1
}

# configure PRESET: where that was not done yet, or holds no longer.
configure() {
  local preset=$1 folder=$ROOT/build/$1 options=() clang
  local cache=$folder/CMakeCache.txt stamp=$folder/configured log=$LOGS/configure-$1.log
  forget_other_checkout "$folder"
  if [[ ! -f $folder/build.ninja ]]; then
    # clang compiles what these sanitizers add faster than g++. (Its ThreadSanitizer does not let tests replace
    # operator new.)
    if [[ $preset == asan ]] && clang=$(find_clang address,undefined); then
      options+=("-DCMAKE_CXX_COMPILER=$clang")
    fi
    quietly "$log" "configuring $preset" \
      cmake -S "$ROOT" --preset "$preset" "-DRINGLET_ONLY_PROGRAM=${ONLY_PROGRAM:-OFF}" "${options[@]}" || return 1
  else
    # CMake takes LDFLAGS when it first configures; those of .deps/environment may be others by now.
    if [[ -f $DEPS/environment && $(grep '^CMAKE_EXE_LINKER_FLAGS:' "$cache") != *"$LDFLAGS"* ]]; then
      options+=("-DCMAKE_"{EXE,SHARED,MODULE}"_LINKER_FLAGS=$LDFLAGS")
    fi
    if [[ ${ONLY_PROGRAM:-OFF} == OFF ]] && grep -qx 'RINGLET_ONLY_PROGRAM:BOOL=ON' "$cache"; then
      options+=(-DRINGLET_ONLY_PROGRAM=OFF)
    fi
    # What scripts/setup has brought since then may be of use.
    [[ ${#options[@]} != 0 || $LOGS/brought -nt $stamp ]] || return 0
    quietly "$log" "configuring $preset anew" cmake "${options[@]}" "$folder" || return 1
  fi
  touch "$stamp"
}

# build PRESET [TARGET...]: everything, or only the targets named. The log stays in build/logs.
build() {
  local preset=$1 log=$LOGS/build-$1.log targets=()
  shift
  (($# == 0)) || targets=(--target "$@")
  use_unpacked_packages
  mkdir -p "$LOGS"
  # In CI, what was compiled in one folder serves in every other (scripts/mutate builds copies).
  if [[ ${CI:-} == true ]]; then
    export CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1
  fi
  configure "$preset" || return 1
  local start=$SECONDS status=0
  cmake --build "$ROOT/build/$preset" "${targets[@]}" 2>&1 </dev/null | tee "$log" |
    show_progress "building $preset" || status=$?
  if ((status)); then
    say "building $preset: FAILED after $((SECONDS - start)) s; the first errors of $log:"
    grep -E -A 4 -m 4 'error:|undefined reference' "$log" >&2 || tail -n 40 "$log" >&2
    return 1
  fi
  # Silent when there was nothing to do; each build looks up the commit.
  local steps
  steps=$(grep '^\[[1-9]' "$log" | grep -v 'Looking up the commit') || true
  [[ -z $steps ]] || say "building $preset: $((SECONDS - start)) s"
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
