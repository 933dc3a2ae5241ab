# A Python wheel of a build: the program, and an entry point that becomes it. Sourced by scripts/package.

MOST_MEGABYTES=40

# make_wheel: ringlet-*.whl in OUT, with the libraries that it needs beyond those that every Linux has.
make_wheel() {
  local folder=$WORK/wheel wheel tools=$ROOT/build/package-tools lib=$SYSTEM/usr/lib/aarch64-linux-gnu ldpaths=()
  [[ -z $SYSTEM ]] || ldpaths=(--ldpaths "$lib/openblas-pthread:$lib:${lib%/*}")
  build_package
  bring_auditwheel "$tools"
  stage program "$folder/staged"
  mkdir -p "$folder/licences" "$folder/repaired" "$OUT"
  notices "$folder/licences/LICENSE"
  licences_of_libraries "$folder/staged/usr/bin/ringlet" "$folder/licences"
  wheel=$folder/ringlet-$WHEEL_VERSION-py3-none-linux_$MACHINE.whl
  python3 "$ROOT/scripts/lib/wheel.py" "$wheel" "$WHEEL_VERSION" "$folder/staged/usr/bin/ringlet" "$folder/licences" "$ROOT/README.md"
  # What it links to is copied beside it, by the names that it finds them under here: OpenBLAS with threads of POSIX.
  PATH=$tools/bin:$PATH quietly "$LOGS/package-auditwheel.log" "repairing a wheel" \
    "$tools/bin/auditwheel" repair --plat auto "${ldpaths[@]}" --wheel-dir "$folder/repaired" "$wheel"
  forget "$OUT"/ringlet-*_"$MACHINE".whl
  wheel=$(compgen -G "$folder/repaired/*.whl")
  mv "$wheel" "$OUT/"
  wheel=$OUT/${wheel##*/}
  check_wheel "$wheel" "$tools"
  say "$(du --apparent-size -h "$wheel")"
}

# bring_auditwheel FOLDER: an environment of Python with it.
bring_auditwheel() {
  local wanted=$ROOT/scripts/lib/package-tools.txt
  cmp -s "$wanted" "$1/package-tools.txt" && return 0
  rm -rf "$1"
  python3 -m venv "$1" || fail "python3 makes no environment: apt-get install python3-venv"
  quietly "$LOGS/package-tools.log" "bringing $(grep -v '^#' "$wanted" | paste -sd ' ')" \
    "$1/bin/python" -m pip install --no-input --disable-pip-version-check --only-binary :all: --requirement "$wanted"
  cp "$wanted" "$1/"
}

# licences_of_libraries PROGRAM FOLDER: of the packages that its libraries are from. What every Linux has is not bundled.
licences_of_libraries() {
  local package file
  libraries_of "$1" | while read -r file; do
    # A package may call /usr/lib by its old name, /lib.
    "${QUERY[@]}" --search "$file" 2>/dev/null || "${QUERY[@]}" --search "${file#/usr}" ||
      fail "no package has $file, so its licence is not known"
  done | sed 's/:.*//' | sort -u | grep -vxE 'libc6|libstdc\+\+6|libgcc-s1|zlib1g' >"$2/../packages"
  while read -r package; do
    cp -L "$SYSTEM/usr/share/doc/$package/copyright" "$2/$package.txt"
  done <"$2/../packages"
}

# libraries_of PROGRAM: the files that the loader finds for it.
libraries_of() {
  local ask=(ldd)
  [[ -z $SYSTEM ]] || ask=(qemu-aarch64-static -L "$SYSTEM" -E LD_TRACE_LOADED_OBJECTS=1)
  "${ask[@]}" "$1" | sed -n "s|.*=> \(/[^ ]*\) .*|$SYSTEM\1|p" | xargs -d '\n' realpath
}

# check_wheel FILE TOOLS: its size, which systems it is for, and that it names no folder of this machine.
check_wheel() {
  (($(stat -c %s "$1") < MOST_MEGABYTES * 1000 * 1000)) || fail "${1##*/} is larger than $MOST_MEGABYTES MB"
  PATH=$2/bin:$PATH quietly "$LOGS/package-auditwheel-show.log" "auditwheel show" "$2/bin/auditwheel" show "$1"
  [[ $1 == *-manylinux_*_"$MACHINE".whl ]] || fail "${1##*/} is not for every Linux of some age: $LOGS/package-auditwheel-show.log"
  python3 -m zipfile -e "$1" "$WORK/unpacked"
  no_path_of_the_build "$WORK/unpacked"
}
