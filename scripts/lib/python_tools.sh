# The Python packages that Debian has not, which some tests ask about the files that Ringlet writes: in
# an environment of their own, .deps/python, in pinned versions. Sourced.

PYTHON_TOOLS=$DEPS/python

# bring_python_tools: makes the environment, or says in one line why not; does nothing when it is there.
bring_python_tools() {
  local wanted=$ROOT/scripts/lib/python-tools.txt log=$LOGS/python-tools.log
  cmp -s "$wanted" "$PYTHON_TOOLS/python-tools.txt" && return 0
  [[ -z $(find "$LOGS/no-python-tools" -mmin -60 2>/dev/null) ]] || return 0  # tried within the hour
  say "setup: bringing $(grep -v '^#' "$wanted" | paste -sd ' ') into ${PYTHON_TOOLS#"$ROOT/"}"
  if make_python_tools "$wanted" >"$log" 2>&1 </dev/null; then
    rm -f "$LOGS/no-python-tools"
  else
    rm -rf "$PYTHON_TOOLS"
    touch "$LOGS/no-python-tools"
    say "setup: going on without Python's tools: $(why_no_python_tools "$log") (the tests that ask them are skipped)"
  fi
}

make_python_tools() {
  # It is made where it stays: the programs in it name their folder.
  rm -rf "$PYTHON_TOOLS" &&
    python3 -m venv "$PYTHON_TOOLS" &&
    "$PYTHON_TOOLS/bin/python" -m pip install --no-input --disable-pip-version-check --retries 1 \
      --timeout 20 --only-binary :all: --requirement "$1" &&
    cp "$1" "$PYTHON_TOOLS/python-tools.txt"
}

# why_no_python_tools LOG: the reason, on one line.
why_no_python_tools() {
  if grep -qE 'NewConnectionError|Name or service|ConnectTimeout|ReadTimeout|ProxyError|SSLError' "$1"; then
    printf 'PyPI cannot be reached'
  else
    local reason
    reason=$(grep -m 1 -E '^ERROR: |ensurepip|No module|not found' "$1" || true)
    printf '%s' "${reason:0:160}"
    [[ -n $reason ]] || printf 'see %s' "$1"
  fi
}
