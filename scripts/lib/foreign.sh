# Programs and libraries for a processor that this machine has not, without root rights: fetched with apt, unpacked below
# build/arm. Nothing of the system is touched. Sourced by scripts/arm, scripts/processors, scripts/package and its check.

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
  for package in "${REQUIRED[@]}" "${TESTING[@]}" libgloo-dev libtomlplusplus-dev libopenmpi-dev libwebp7; do
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

# unpacked FOLDER PACKAGE...: those and all that they need, as private_lists sees it, laid out in FOLDER. Of their documents
# only the licences stay.
unpacked() {
  local folder=$1 log=$LOGS/arm-apt.log names debs=$ARM/debs deb
  shift
  names=$(apt-get -s install "$@" 2>"$log" | sed -n 's/^Inst \([^ ]*\) .*/\1/p') || fail "apt cannot combine $*: $(why "$log")"
  mapfile -t names <<<"$names"
  rm -rf "$debs" "$folder.new"
  mkdir -p "$debs" "$folder.new"/{usr/{bin,lib,sbin},var/lib/dpkg/info}
  (cd "$debs" && run_apt "$log" apt-get download "${names[@]}") || fail "fetching packages failed: $(why "$log")"
  for deb in bin lib sbin; do ln -s "usr/$deb" "$folder.new/$deb"; done
  for deb in "$debs"/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$folder.new" --keep-directory-symlink --no-same-owner ||
      fail "unpacking ${deb##*/} failed; is the disk full?"
    note_package "$deb" "$folder.new/var/lib/dpkg" "$folder"
  done
  find "$folder.new/usr/share/doc" -type f ! -name copyright -delete
  rm -rf "$debs" "$folder"
  mv "$folder.new" "$folder"
}

# note_package DEB DATABASE FOLDER: what dpkg would know of it, were it installed, for dpkg-query and dpkg-shlibdeps with
# --admindir. Its files are named as they lie below FOLDER.
note_package() {
  local deb=$1 info=$2/info folder=$3 name part
  name=$(dpkg-deb -f "$deb" Package)
  [[ $(dpkg-deb -f "$deb" Multi-Arch) != same ]] || name+=:$(dpkg-deb -f "$deb" Architecture)
  { dpkg-deb -f "$deb" | sed '1a Status: install ok installed'; echo; } >>"$2/status"
  echo 1 >"$info/format"
  dpkg-deb --fsys-tarfile "$deb" | tar -t |
    sed -n -e 's,/$,,; s,^\.,,; s,^/\(bin\|lib\|sbin\)/,/usr/\1/,' -e "s|^/|$folder/|p" >"$info/$name.list"
  for part in shlibs symbols; do
    dpkg-deb --info "$deb" "$part" >"$info/$name.$part" 2>/dev/null || rm "$info/$name.$part"
  done
}

# have_tools PACKAGE...: what of these is neither installed nor unpacked before, into TOOLS.
have_tools() {
  local lacking
  mapfile -t lacking < <(DEPS=$TOOLS missing "$@")
  if ((${#lacking[@]})); then
    command -v apt-get >/dev/null || fail "needs Debian's or Ubuntu's apt-get, which fetches ${lacking[*]}"
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
  for name in openblas-pthread/lib{openblas.so.0,blas.so.3,lapack.so.3} openmpi/lib/lib{mpi,mpi_cxx}.so; do
    [[ -e $lib/${name##*/} || ! -e $lib/$name ]] || ln -s "$name" "$lib/"
  done
  [[ ! -e $lib/pkgconfig/ompi-cxx.pc ]] || ln -sf ompi-cxx.pc "$lib/pkgconfig/mpi-cxx.pc"
}

# as_arm COMMAND...: in a namespace where the kernel starts programs of aarch64, whoever starts them, by qemu: a user's own,
# which ends with the command and which nobody else sees. Root there is who calls this; where that is root, all others are
# as outside.
as_arm() {
  local child status=0
  # shellcheck disable=SC2016  # expanded there
  unshare --user bash -euc '
    until [[ -n $(cat /proc/self/uid_map) ]]; do sleep 0.02; done
    exec unshare --mount --propagation private bash -euc "$@"' _ '
    mount -t binfmt_misc programs /proc/sys/fs/binfmt_misc 2>/dev/null && printf %s "$1" >/proc/sys/fs/binfmt_misc/register || {
      echo "this kernel starts no programs of other processors for users (binfmt_misc in namespaces: Linux 6.7)" >&2
      exit 1
    }
    shift
    exec setpriv --pdeathsig KILL "$@"' _ "$(entry_of_qemu)" "$@" &
  child=$!
  until [[ $(readlink "/proc/$child/ns/user") != "$(readlink /proc/self/ns/user)" ]]; do sleep 0.02; done
  if ((EUID == 0)); then
    echo '0 0 65536' >"/proc/$child/gid_map"
    echo '0 0 65536' >"/proc/$child/uid_map"
  else
    echo deny >"/proc/$child/setgroups"
    echo "0 $(id -g) 1" >"/proc/$child/gid_map"
    echo "0 $EUID 1" >"/proc/$child/uid_map"
  fi
  wait "$child" || status=$?
  return "$status"
}

# entry_of_qemu: a program of 64 bits, little-endian, for aarch64; qemu is opened now, wherever the program will be.
entry_of_qemu() {
  local same='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
  printf '%s' ':aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00' \
    ":$same:$(command -v qemu-aarch64-static):F"
}
