# The Debian and Ubuntu packages that Ringlet stands on, and which of them are missing. Sourced.

# Without these the program is not built.
REQUIRED=(g++ cmake ninja-build libfmt-dev zlib1g-dev nlohmann-json3-dev libcli11-dev
          libprotobuf-dev protobuf-compiler libopenblas-pthread-dev libssl-dev libstb-dev)
# Nor without these the tests and benchmarks.
TESTING=(libgtest-dev libgmock-dev libbenchmark-dev)
# These save time, carry data between processes, read --config or WebP. Their absence is said and borne.
OPTIONAL=(ccache libgloo-dev libtomlplusplus-dev libwebp7)
# What of these is in every package, and what packs them (scripts/package).
PACKAGING=(libgloo-dev libtomlplusplus-dev libopenmpi-dev dpkg-dev git)
DATASET=dataset-fashion-mnist
# For scripts/check, scripts/mutate, the tests that ask PyTorch, those that start with mpirun, bench/peers,
# those that look at a page in a browser, scripts/lib/python_tools.sh, scripts/fuzz, scripts/compilers,
# scripts/fresh_check and scripts/glyphs --few.
DEVELOPER=(clang-format clang-tidy shellcheck git python3 python3-numpy python3-onnx python3-torch
           openmpi-bin libopenmpi-dev chromium python3-venv zsh fish doxygen clang-16 libclang-rt-16-dev clang-19 debootstrap
           fonts-motoya-l-cedar fonts-motoya-l-maruberi fonts-wqy-microhei fonts-umeplus)

# Ubuntu 22.04's own g++ is 11: take the 12 that stands beside it.
release_adjustments() {
  local id="" version=""
  # shellcheck source=/dev/null
  if [[ -r /etc/os-release ]]; then
    id=$(. /etc/os-release && echo "${ID:-}")
    version=$(. /etc/os-release && echo "${VERSION_ID:-}")
  fi
  if [[ $id == ubuntu && $version == 22.04 ]]; then
    REQUIRED=("${REQUIRED[@]/#g++/g++-12}")
  fi
}

# missing PACKAGE...: prints those that are neither installed nor unpacked in .deps.
missing() {
  local have
  have=" $(dpkg-query -W -f '${db:Status-Status}:${Package}\n' "$@" 2>/dev/null |
           sed -n 's/^installed://p' | tr '\n' ' ' || true) "  # it fails where one is unknown
  if [[ -f $DEPS/packages ]]; then have+="$(tr '\n' ' ' <"$DEPS/packages") "; fi
  local package
  for package in "$@"; do
    [[ $have == *" $package "* ]] || printf '%s\n' "$package"
  done
}

# available PACKAGE...: prints those that apt's lists offer. One look-up serves all, since apt-cache may read
# its lists anew each time. Fails where apt-cache itself does: that says nothing about a package.
# Further options for apt come in APT_OPTIONS.
available() {
  (($#)) || return 0
  local shown status=0
  shown=$(apt-cache "${APT_OPTIONS[@]}" show --no-all-versions "$@" 2>&1) || status=$?
  # 100 is also what it ends with when it knows none of the names.
  if ((status)) && ! { ((status == 100)) && grep -qE '^E: (No packages found|Unable to locate)' <<<"$shown"; }; then
    say "setup: apt-cache failed (status $status): $(tail -n 1 <<<"$shown")"
    return 1
  fi
  sed -n 's/^Package: //p' <<<"$shown"
}

# run_apt LOG apt-get...: waits while another apt holds its locks (at most five minutes).
run_apt() {
  local log=$1 deadline=$((SECONDS + 300)) told=
  shift
  until "$@" >"$log" 2>&1 </dev/null; do
    grep -qE 'Could not get lock|Unable to acquire|Unable to lock' "$log" || return 1
    ((SECONDS < deadline)) || return 1
    [[ -n $told ]] || say "setup: another program is installing packages; waiting for it"
    told=yes
    sleep 2
  done
}

# why LOG: apt's own reason, on one line.
why() {
  local reason
  reason=$(grep -E 'Could not|Temporary failure|No space left|not permitted' "$1" ||
           grep -E '^(E|W):' "$1" || true)
  reason=$(head -n 1 <<<"$reason" | sed -E 's/^ *((E|W): )?//')
  printf '%s' "${reason:-see $1}"
}

# explain_unavailable PACKAGE...: why the lists may lack them, and what to do.
explain_unavailable() {
  local hint="this release's package sources do not offer it"
  if [[ -n ${UNREACHABLE:-} ]]; then
    hint="the package servers cannot be reached ($UNREACHABLE)"
  elif grep -qi ubuntu /etc/os-release 2>/dev/null &&
     ! grep -q '/universe' <<<"$(apt-cache "${APT_OPTIONS[@]}" policy 2>/dev/null)"; then
    hint="Ubuntu's 'universe' is not switched on: sudo add-apt-repository universe"
  fi
  printf '%s: %s' "$*" "$hint"
}
