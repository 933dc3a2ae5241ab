# The packages that a build from source needs on a machine with a GPU and no network. Sourced.

# The libraries that Ringlet links to, and what these need in turn beyond what every system has.
CARRIED='googletest|libproto.*|protobuf-compiler|libbenchmark.*|libcli11-dev|libfmt.*|libgfortran5|libgloo.*|libgmock-dev|libgtest-dev'
CARRIED+='|libhiredis.*|libibverbs.*|libnl-.*|libopenblas.*|libquadmath0|libssl.*|libstb.*|nlohmann-json3-dev|zlib1g.*'

# must_carry: the packages that the carried build cannot do without. The compiler and CMake are there.
must_carry() {
  local package
  for package in "${REQUIRED[@]}" "${TESTING[@]}" libgloo-dev; do
    case $package in g++* | cmake | ninja-build) ;; *) printf '%s\n' "$package" ;; esac
  done
}

# carried_packages: these and what they need in turn.
carried_packages() {
  local wanted
  mapfile -t wanted < <(must_carry)
  apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
    --no-enhances "${wanted[@]}" | grep -xE "$CARRIED" | sort -u
}

# check_collected FOLDER: fails with the names of what the build needs and FOLDER has not.
check_collected() {
  local package lacking=()
  while read -r package; do
    compgen -G "$1/${package}_*.deb" >/dev/null || lacking+=("$package")
  done < <(must_carry)
  ((${#lacking[@]} == 0)) ||
    fail "not collected: ${lacking[*]} (is it in CARRIED of scripts/lib/carried.sh, and does apt offer it?)"
}
