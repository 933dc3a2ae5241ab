# Debian packages of a build. Sourced by scripts/package.

# make_debs: ringlet and libringlet-dev in OUT.
make_debs() {
  build_package
  mkdir -p "$OUT"
  forget "$OUT"/ringlet_*_"$ARCHITECTURE".deb "$OUT"/libringlet-dev_*_"$ARCHITECTURE".deb
  program_deb "$WORK/ringlet"
  development_deb "$WORK/libringlet-dev"
}

program_deb() {
  local folder=$1 doc=$1/usr/share/doc/ringlet module=usr/lib/libringlet_mpi.so depends mpi
  stage program "$folder"
  mkdir -p "$folder/usr/lib"
  mv "$folder/usr/bin/libringlet_mpi.so" "$folder/$module"  # the program looks there as well
  # Debian's zsh looks elsewhere than zsh's own.
  mkdir -p "$folder/usr/share/zsh/vendor-completions" "$doc"
  mv "$folder/usr/share/zsh/site-functions/_ringlet" "$folder/usr/share/zsh/vendor-completions/"
  rmdir "$folder/usr/share/zsh/site-functions"
  gzip -9n "$folder/usr/share/man/man1/ringlet.1"
  git -C "$ROOT" ls-files -z README.md docs | (cd "$ROOT" && xargs -0 cp --parents -t "$doc")
  gzip -9n <"$ROOT/CHANGELOG.md" >"$doc/changelog.gz"
  notices "$doc/copyright"
  depends=$(needs_of "$folder" usr/bin/ringlet)
  mpi=$(needs_of "$folder" "$module" | tr ',' '\n' | grep openmpi)
  # The serial OpenBLAS, which libopenblas0 could be, loses products (docs/status.md).
  pack ringlet "$folder" "Depends: $depends, libopenblas0-pthread
Recommends: dataset-fashion-mnist
Suggests:$mpi, libwebp7, libringlet-dev (= $DEB_VERSION), g++, cmake, ninja-build
Section: science
Description: data-parallel trainer of neural networks
 Trains convolutional networks on one machine or several. Each replica of the
 model runs on a device and a thread of its own, and a choice of strategies sums
 their gradients. Reads and writes PyTorch's weights.
 .
 The course, in /usr/share/ringlet/learn, wants libringlet-dev, g++,
 cmake and ninja-build.
 --transport mpi wants Open MPI."
}

development_deb() {
  local folder=$1 doc=$1/usr/share/doc/libringlet-dev
  stage development "$folder"
  mkdir -p "$doc"
  git -C "$ROOT" ls-files -z examples | (cd "$ROOT" && xargs -0 cp --parents -t "$doc")
  notices "$doc/copyright"
  pack libringlet-dev "$folder" "Depends: ringlet (= $DEB_VERSION), $(wanted_by_cmake "$folder")
Section: libdevel
Description: data-parallel trainer of neural networks, for programs of one's own
 Headers, static libraries, what CMake's find_package(ringlet) reads, and
 examples."
}

# needs_of FOLDER FILE: the packages that its shared libraries are in, with the versions that its symbols need.
needs_of() {
  local aside=$WORK/needs
  mkdir -p "$aside/debian"
  printf 'Source: ringlet\n\nPackage: ringlet\nArchitecture: any\n' >"$aside/debian/control"
  (cd "$aside" && "${SHLIBDEPS[@]}" --ignore-missing-info -O "$1/$2" 2>>"$LOGS/package-needs.log") | sed -n 's/^shlibs:Depends=//p'
}

# wanted_by_cmake FOLDER: the packages of what ringletConfig.cmake looks for there.
wanted_by_cmake() {
  local config name packages=()
  local -A package_of=([fmt]=libfmt-dev [ZLIB]=zlib1g-dev [OpenSSL]=libssl-dev [nlohmann_json]=nlohmann-json3-dev
                       [Protobuf]=libprotobuf-dev [openblas]=libopenblas-pthread-dev [gloo]=libgloo-dev)
  config=$(find "$1" -name ringletConfig.cmake)
  while read -r name; do
    case $name in Threads | CUDAToolkit) continue ;; esac
    [[ -n ${package_of[$name]:-} ]] || fail "no package is known of $name, which ${config##*/} asks for"
    packages+=("${package_of[$name]}")
  done < <(sed -n 's/^ *\(find\|ringlet\)_dependency(\([A-Za-z_0-9]*\).*/\2/p' "$config" | sort -u)
  ((${#packages[@]})) || fail "$config asks for nothing"
  local IFS=,
  printf '%s' "${packages[*]}" | sed 's/,/, /g'
}

# pack NAME FOLDER FIELDS: with the same bytes whenever it is done, whatever this machine's umask and clock.
pack() {
  local name=$1 folder=$2 file
  mkdir "$folder/DEBIAN"
  (cd "$folder" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$folder/DEBIAN/md5sums"
  cat >"$folder/DEBIAN/control" <<CONTROL
Package: $name
Version: $DEB_VERSION
Architecture: $ARCHITECTURE
Maintainer: Ringlet contributors
Installed-Size: $(find "$folder/usr" -printf '%y %s\n' | awk '{ sum += $1 == "f" ? int(($2 + 1023) / 1024) : 1 } END { print sum }')
Priority: optional
$3
CONTROL
  chmod -R u=rwX,go=rX "$folder"
  find "$folder" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
  file=$OUT/${name}_${DEB_VERSION}_$ARCHITECTURE.deb
  DPKG_DEB_THREADS_MAX=1 quietly "$LOGS/package-$name.log" "packing $name" \
    dpkg-deb --root-owner-group -Zxz --build "$folder" "$file"
  say "$(du --apparent-size -h "$file")"
}
