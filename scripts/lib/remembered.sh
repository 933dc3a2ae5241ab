# Green results of rooms whose tests see no clock, remembered by a hash of all that decides about them. Sourced.
#
# The label `timeless` (tests/labels.cmake) says which tests these are. A file of GREEN has the name of such a hash, and
# as its lines what ctest said of a room's tests, which all passed or were passed over. It lies beside ccache's folder, so
# that a fresh clone has it as well.

GREEN=${RINGLET_GREEN:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ringlet/green}

# timeless_rooms: their names.
timeless_rooms() { sed -n 's/^set(timeless_rooms \(.*\))$/\1/p' "$ROOT/tests/labels.cmake" | tr ' ' '\n'; }

# hash_of_tests PRESET ROOM [OPTION...]: of the program, its libraries and data, the compiler, the processor, the system
# and the variables of the environment; and of ctest's options, which say what of it is run.
hash_of_tests() {
  local build=$ROOT/build/$1 program=$ROOT/build/$1/tests/$2/$2_tests
  local cache=$build/CMakeCache.txt
  {
    printf '%s\n' "$@"
    sha256sum <"$program"
    ldd "$program" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort | xargs -r sha256sum
    # What it opens by name: the stand-in for CUDA, and libraries of the system.
    (cd "$build" && find stand_in '(' -name '*.so*' -o -name planner ')' 2>/dev/null | sort | xargs -r -d '\n' sha256sum)
    sed -n 's/^[A-Za-z_]*:FILEPATH=\(.*\.so[.0-9]*\)$/\1/p' "$cache" | sort -u | xargs -r stat -Lc '%n %s %Y' 2>&1
    (cd "$ROOT" && ls "${DEPS#"$ROOT/"}"/python/lib/python*/site-packages 2>&1)
    sha256sum </var/lib/dpkg/status 2>&1
    (cd "$ROOT" && find tests/{testdata,oracle,discover.cmake,labels.cmake} scripts/lib/tsan.suppressions -type f ! -name '*.pyc' |
      sort | xargs -d '\n' sha256sum)
    grep -E '^CMAKE_(BUILD_TYPE|(CXX|CUDA)_(COMPILER|FLAGS[A-Z_]*)):' "$cache"
    "$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$cache")" --version
    awk '/^(model name|flags)/ && !said[$1]++' /proc/cpuinfo
    nproc
    cat /sys/fs/cgroup/cpu.max /proc/driver/nvidia/version 2>&1
    uname -rm
    ulimit -a
    env | grep -E '^(RINGLET_|CUDA_|NVIDIA_|OPENBLAS_|OMP_|GOTO_|LD_|MALLOC_|GLIBC_|GTEST_|LC_|LANG|TZ|[A-Z]+SAN_OPTIONS)' |
      grep -vE '^RINGLET_(JOBS|LOG_LINES|GREEN)=' | sort
    true  # what is not there is a fact as well
  } | sha256sum | cut -d ' ' -f 1
}

# recall HASH: the lines that are remembered of it; fails where there are none.
recall() {
  [[ -s $GREEN/$1 ]] || return 1
  touch "$GREEN/$1"
  cat "$GREEN/$1"
}

# remember HASH CASES NAMES: the lines of CASES about the tests in the file NAMES, if it says of each of them that it passed
# or was passed over.
remember() {
  local lines
  lines=$(awk 'NR == FNR { wanted[$1]; ++count; next }
    $2 in wanted && $1 != "failed" { print; ++good }
    END { exit good != count || good == 0 }' "$3" "$2") || return 0
  mkdir -p "$GREEN" 2>/dev/null && [[ -w $GREEN ]] || return 0
  printf '%s\n' "$lines" >"$GREEN/$1.$$"
  mv "$GREEN/$1.$$" "$GREEN/$1"
  find "$GREEN" -type f -mtime +30 -delete
}
