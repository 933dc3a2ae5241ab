# The compiler. Ubuntu 22.04's own g++ is 11; scripts/setup brings the 12, which stands beside it or alone. Sourced.

if [[ -z ${CXX:-} ]] && command -v g++-12 >/dev/null && (($(g++ -dumpversion 2>/dev/null | cut -d. -f1 || true) + 0 < 12)); then
  export CXX=g++-12 CUDAHOSTCXX=${CUDAHOSTCXX:-g++-12}
fi
