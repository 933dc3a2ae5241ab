# Packages without root rights: fetched with apt, unpacked into .deps in the checkout. Sourced.
#
# apt works on lists and a cache of its own under .deps/apt, so nothing of the system is touched.
# .deps is then laid out as a small system root: what the system has already (the C library above
# all) is linked into it, so that an unpacked g++ finds everything under one --sysroot.

MULTIARCH=$({ dpkg --print-architecture || uname -m; } 2>/dev/null | sed 's/^amd64$/x86_64/; s/^arm64$/aarch64/')-linux-gnu

private_apt() {
  APT_OPTIONS=(-o "Dir::State::Lists=$DEPS/apt/lists" -o "Dir::Cache=$DEPS/apt/cache"
               -o Debug::NoLocking=1 -o APT::Sandbox::User=)
  mkdir -p "$DEPS/apt/lists/partial" "$DEPS/apt/cache/archives/partial" "$DEPS/apt/debs"
}

# unpack_packages PACKAGE...: fetches them with all that they need and lays them out in .deps.
unpack_packages() {
  (($#)) || return 0
  local wanted=("$@") log=$LOGS/unpack.log names
  names=$(apt-get "${APT_OPTIONS[@]}" -s --no-install-recommends install "${wanted[@]}" 2>"$log" |
          sed -n 's/^Inst \([^ ]*\) .*/\1/p') || fail "apt cannot combine ${wanted[*]}: $(why "$log")"
  # The C library in use stays: a second one beside the running loader would not do.
  mapfile -t names < <(grep -vxE 'libc6|libc-bin|locales|base-files' <<<"$names" | grep .)
  ((${#names[@]})) || return 0
  say "setup: fetching ${#names[@]} packages into .deps (no root rights needed)"
  (cd "$DEPS/apt/debs" && run_apt "$log" apt-get "${APT_OPTIONS[@]}" download "${names[@]}") ||
    fail "fetching packages failed: $(why "$log")"
  unpack_debs "$DEPS"/apt/debs/*.deb
  rm -f "$DEPS"/apt/debs/*.deb
  link_system_files
  printf '%s\n' "${wanted[@]}" "${names[@]}" >>"$DEPS/packages"
  write_environment
}

# unpack_debs FILE...: lays them out in .deps.
unpack_debs() {
  mkdir -p "$DEPS/usr/bin" "$DEPS/usr/lib" "$DEPS/usr/lib64" "$DEPS/usr/sbin"
  local directory deb
  for directory in bin lib lib64 sbin; do ln -sfn "usr/$directory" "$DEPS/$directory"; done
  for deb in "$@"; do
    dpkg-deb --fsys-tarfile "$deb" |
      tar -x -C "$DEPS" --keep-directory-symlink --no-same-owner --exclude='./usr/share/doc' ||
      fail "unpacking ${deb##*/} failed; is the disk full?"
  done
}

# Everything that the system has and .deps has not: libraries, the loader, headers.
link_system_files() {
  local from entry target
  for from in "/lib/$MULTIARCH" "/usr/lib/$MULTIARCH" /lib64 "/usr/include/$MULTIARCH" /usr/include; do
    target=$DEPS${from/#\/lib/\/usr\/lib}
    mkdir -p "$target"
    for entry in "$from"/*; do
      [[ $from == */lib/* && ! $entry == *.so* && ! $entry == *.a && ! $entry == *.o ]] && continue
      [[ -e $entry && ! -e $target/${entry##*/} ]] && ln -sfn "$entry" "$target/${entry##*/}"
    done
  done
  return 0
}

# write FILE TEXT: unless that is what the file says; ccache looks at the time of a compiler.
write() {
  [[ -f $1 && $(<"$1") == "$2" ]] || printf '%s\n' "$2" >"$1"
}

# What demo, test and the rest source before they configure: .deps/environment.
write_environment() { write "$DEPS/environment" "$(environment)"; }

environment() {
  # Most libraries lie in the folder of their architecture, some (Gloo) straight in usr/lib.
  local lib=$DEPS/usr/lib/$MULTIARCH plain=$DEPS/usr/lib gxx
  printf 'export PATH=%q:$PATH\n' "$DEPS/usr/bin"
  printf 'export CMAKE_PREFIX_PATH=%q\n' "$DEPS/usr"
  # DT_RPATH, unlike DT_RUNPATH, also serves the libraries that our libraries need.
  printf 'export LDFLAGS=%q\n' "$(printf -- '-L%q -L%q -Wl,-rpath,%q -Wl,--disable-new-dtags' "$lib" "$plain" "$lib:$plain")"
  # For the unpacked tools themselves (cmake, the compiler).
  printf 'export LD_LIBRARY_PATH=%q${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\n' "$lib:$plain"
  gxx=$(compgen -G "$DEPS/usr/bin/$MULTIARCH-g++-[0-9]*" | sort -V | tail -n 1 || true)
  if [[ -n $gxx ]]; then
    mkdir -p "$DEPS/bin-sysroot"
    write "$DEPS/bin-sysroot/g++" "$(printf '#!/bin/sh\nexec %q --sysroot=%q "$@"' "$gxx" "$DEPS")"
    chmod +x "$DEPS/bin-sysroot/g++"
    printf 'export CXX=%q CUDAHOSTCXX=%q\n' "$DEPS/bin-sysroot/g++" "$DEPS/bin-sysroot/g++"
  else
    # The system's compiler looks for headers of one architecture (openssl/opensslconf.h) in its own folder only.
    printf 'export CPATH=%q${CPATH:+:$CPATH}\n' "$DEPS/usr/include/$MULTIARCH"
  fi
}
