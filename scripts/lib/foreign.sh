# Programs and libraries for a processor that this machine has not, without root rights: fetched with apt, unpacked below
# build/arm. Nothing of the system is touched. Sourced by scripts/arm and scripts/processors.

ARM=$ROOT/build/arm
SYSROOT=$ARM/sysroot  # what an aarch64 machine with Ringlet's packages has
TOOLS=$ARM/tools      # the cross compiler and qemu, programs for this machine

# What cross-compiles and what plays the processor.
CROSS=(g++-12-aarch64-linux-gnu)
PLAYER=(qemu-user-static)

# arm_packages: what Ringlet and its tests link, of scripts/setup's lists; the compiler's own come as well.
arm_packages() {
  local package
  printf '%s\n' libc6-dev libstdc++-12-dev
  for package in "${REQUIRED[@]}" "${TESTING[@]}" libgloo-dev libtomlplusplus-dev libwebp7; do
    case $package in g++* | cmake | ninja-build | protobuf-compiler) ;; *) printf '%s\n' "$package" ;; esac
  done
}

# private_lists FOLDER ARCHITECTURE STATUS: an apt for that architecture, with lists in FOLDER and with what the file STATUS
# says is installed; the sources and their keys are the system's.
private_lists() {
  mkdir -p "$1/lists/partial" "$1/cache/archives/partial"
  cat >"$1/apt.conf" <<APT
APT::Architecture "$2";
APT::Architectures { "$2"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Debug::NoLocking "1";
Dir::State::Lists "$1/lists";
Dir::State::status "$3";
Dir::Cache "$1/cache";
APT
  export APT_CONFIG=$1/apt.conf
  run_apt "$LOGS/arm-apt.log" apt-get update || fail "apt has no lists for $2: $(why "$LOGS/arm-apt.log")"
}

# unpacked FOLDER PACKAGE...: those and all that they need, as private_lists sees it, laid out in FOLDER.
unpacked() {
  local folder=$1 log=$LOGS/arm-apt.log names debs=$ARM/debs deb
  shift
  names=$(apt-get -s install "$@" 2>"$log" | sed -n 's/^Inst \([^ ]*\) .*/\1/p') || fail "apt cannot combine $*: $(why "$log")"
  mapfile -t names <<<"$names"
  rm -rf "$debs" "$folder.new"
  mkdir -p "$debs" "$folder.new"/usr/{bin,lib,sbin}
  (cd "$debs" && run_apt "$log" apt-get download "${names[@]}") || fail "fetching packages failed: $(why "$log")"
  for deb in bin lib sbin; do ln -s "usr/$deb" "$folder.new/$deb"; done
  for deb in "$debs"/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$folder.new" --keep-directory-symlink --no-same-owner --exclude='./usr/share/doc' ||
      fail "unpacking ${deb##*/} failed; is the disk full?"
  done
  rm -rf "$debs" "$folder"
  mv "$folder.new" "$folder"
}

# have_tools PACKAGE...: what of these is neither installed nor unpacked before, into TOOLS.
have_tools() {
  local lacking
  mapfile -t lacking < <(DEPS=$TOOLS missing "$@")
  if ((${#lacking[@]})); then
    say "${0##*/}: fetching ${lacking[*]} into ${TOOLS#"$ROOT/"} (no root rights needed)"
    # All that was unpacked before, too: the folder is made anew.
    [[ ! -f $TOOLS/packages ]] || mapfile -t -O "${#lacking[@]}" lacking <"$TOOLS/packages"
    private_lists "$ARM/apt-tools" "$(dpkg --print-architecture)" /var/lib/dpkg/status
    unpacked "$TOOLS" "${lacking[@]}"
    movable_linker_scripts
    printf '%s\n' "${lacking[@]}" >"$TOOLS/packages"
  fi
  export PATH=$TOOLS/usr/bin:$PATH
  # Of the assembler.
  LD_LIBRARY_PATH=$TOOLS/usr/lib/$(uname -m)-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
}

# movable_linker_scripts: libc.so is a text that names files in /usr; by their names alone they are looked for.
movable_linker_scripts() {
  local script=$TOOLS/usr/aarch64-linux-gnu/lib/libc.so
  [[ ! -f $script ]] || sed -i 's|/usr/aarch64-linux-gnu/lib/||g' "$script"
}

# have_sysroot: aarch64's libraries.
have_sysroot() {
  local wanted
  wanted=$(arm_packages)
  [[ -f $SYSROOT/packages && $(<"$SYSROOT/packages") == "$wanted" ]] && return
  say "${0##*/}: fetching aarch64's libraries into ${SYSROOT#"$ROOT/"} (no root rights needed)"
  mkdir -p "$ARM"
  : >"$ARM/nothing-installed"
  private_lists "$ARM/apt" arm64 "$ARM/nothing-installed"
  # shellcheck disable=SC2086  # one word a package
  unpacked "$SYSROOT" $wanted
  link_within "$SYSROOT"
  printf '%s\n' "$wanted" >"$SYSROOT/packages"
}

# link_within FOLDER: absolute links, which mean the root of that system, and what Debian's alternatives would have linked.
link_within() {
  local link lib=$1/usr/lib/aarch64-linux-gnu name
  find "$1" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
    ln -sfnr "$1$(readlink "$link")" "$link"
  done
  for name in libopenblas.so.0 libblas.so.3 liblapack.so.3; do
    [[ -e $lib/$name || ! -e $lib/openblas-pthread/$name ]] || ln -s "openblas-pthread/$name" "$lib/$name"
  done
}
