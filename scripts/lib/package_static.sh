# The program as one file, which needs no library. Sourced by scripts/package.

MOST_MEGABYTES_STATIC=15

# make_static: ringlet-VERSION-linux-MACHINE in OUT, and the licences of what is in it beside it.
make_static() {
  local name file log=$LOGS/package-build.log
  local BUILD=$BUILD
  [[ $BUILD != "$ROOT"/build/package?(-arm) ]] || BUILD+=-static
  rm -f "$BUILD/bin/ringlet"  # what the linker says of it is looked at below
  build_package -D RINGLET_STATIC=ON
  name=ringlet-$WHEEL_VERSION-linux-$MACHINE
  file=$WORK/$name
  "$STRIP" --strip-all --remove-section=.comment -o "$file" "$BUILD/bin/ringlet"
  # getaddrinfo is kept from the system's libraries by app/cli/static_lookups.cc.
  ! grep 'in statically linked applications' "$log" | grep -v "Using 'getaddrinfo'" >&2 ||
    fail "a function that is linked in opens libraries of the system"
  needs_nothing "$file"
  mkdir -p "$WORK/static" "$OUT"
  mv "$file" "$WORK/static/"
  no_path_of_the_build "$WORK/static"
  forget "$OUT"/ringlet-*-linux-"$MACHINE"*
  cp "$WORK/static/$name" "$OUT/"
  static_notices "$OUT/$name.licences.txt"
  say "$(du --apparent-size -h "$OUT/$name")"
}

# needs_nothing FILE: that it is small, and that no loader and no library has to be there.
needs_nothing() {
  (($(stat -c %s "$1") <= MOST_MEGABYTES_STATIC * 1000 * 1000)) || fail "${1##*/} is larger than $MOST_MEGABYTES_STATIC MB"
  ! readelf --program-headers --wide "$1" | grep -E '^ *(INTERP|DYNAMIC) ' >&2 || fail "${1##*/} is linked to libraries"
}

# static_notices FILE: of all that is in the program.
static_notices() {
  notices "$1" libfmt-dev libopenblas-pthread-dev libprotobuf-dev libssl-dev zlib1g-dev "$(package_of_libstdcxx)" libc6-dev
  cat >>"$1" <<'NOTE'


---- the library glibc (LGPL 2.1 or later) is linked into this program. All of the program's sources are free, and with them
     `scripts/package static` links it anew with another glibc.
NOTE
}

# package_of_libstdcxx: Debian's; a cross compiler's is made of the same sources.
package_of_libstdcxx() {
  local file
  file=$("${CXX:-g++}" --print-file-name=libstdc++.a)
  [[ -z $SYSTEM ]] || file=$(compgen -G "$SYSTEM/usr/lib/gcc/*/*/libstdc++.a")
  "${QUERY[@]}" --search "$(realpath "$file")" | sed 's/:.*//'
}
