# What every script here shares: where the checkout is, and how to say things. Sourced, not run.

ROOT=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
DEPS=$ROOT/.deps  # packages unpacked by scripts/setup for a user without root rights
LOGS=$ROOT/build/logs
export LANGUAGE=en  # what apt and others say is looked through for English words; nothing else of the locale changes
source "$ROOT/scripts/lib/compiler.sh"

say() { printf '%s\n' "$*" >&2; }

fail() {
  say "${0##*/}: $*"
  exit 1
}

# quietly LOG WHAT COMMAND...: runs the command with its output in LOG, under one line that says
# WHAT and how long it took; when it fails, shows the end of the log.
quietly() {
  local log=$1 what=$2 start=$SECONDS status=0
  shift 2
  mkdir -p "$(dirname "$log")"
  [[ -t 2 ]] && printf '%s ...' "$what" >&2
  "$@" >"$log" 2>&1 </dev/null || status=$?
  [[ -t 2 ]] && printf '\r' >&2
  if ((status)); then
    say "$what: FAILED after $((SECONDS - start)) s; the end of $log:"
    tail -n "${RINGLET_LOG_LINES:-40}" "$log" >&2
    return "$status"
  fi
  say "$what: $((SECONDS - start)) s"
}

# forget_other_checkout FOLDER: a build that was configured for another checkout, of which this one is a copy, would go on
# compiling that one's sources. Only what lies here is taken away.
forget_other_checkout() {
  local home
  [[ -f $1/CMakeCache.txt && $1 == "$ROOT"/build/* ]] || return 0
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$1/CMakeCache.txt")
  [[ ! $home -ef $ROOT ]] || return 0
  say "${1#"$ROOT/"} was configured for the sources in ${home:-another folder}; it is configured anew"
  rm -rf "$1"/{CMakeCache.txt,CMakeFiles,build.ninja}
}

# The compiler, libraries and search paths that scripts/setup left in .deps, where it did.
use_unpacked_packages() {
  # shellcheck source=/dev/null
  if [[ -f $DEPS/environment ]]; then source "$DEPS/environment"; fi
}
