# What all packages are made of: a version, a build, and its installed files. Sourced by scripts/package, which sets
# BUILD, OUT, CUDA and WORK, an empty folder, and calls one of the next two.

# packages_for_this_machine, packages_for_arm: the processor, as uname -m and Debian call it; SYSTEM, below which its libraries
# lie; what says of which packages they are; what strips; what has to be installed here; CMake's options.
packages_for_this_machine() {
  release_adjustments
  MACHINE=$(uname -m) ARCHITECTURE=$(dpkg --print-architecture)
  SYSTEM='' QUERY=(dpkg-query) SHLIBDEPS=(dpkg-shlibdeps) STRIP=strip
  NEEDED=("${REQUIRED[@]}" "${PACKAGING[@]}") OPTIONS=()
}

packages_for_arm() {
  local database=$SYSROOT/var/lib/dpkg lib=$SYSROOT/usr/lib/aarch64-linux-gnu
  MACHINE=aarch64 ARCHITECTURE=arm64
  SYSTEM=$SYSROOT QUERY=(dpkg-query --admindir="$database") STRIP=aarch64-linux-gnu-strip
  SHLIBDEPS=(env DEB_HOST_ARCH=arm64 dpkg-shlibdeps --admindir="$database" "-l$lib/openblas-pthread" "-l$lib" "-l${lib%/*}")
  NEEDED=(cmake ninja-build protobuf-compiler dpkg-dev git)
  OPTIONS=(--toolchain "$ROOT/cmake/aarch64.cmake" -D RINGLET_ARM_SYSROOT="$SYSROOT")
}

# find_version: of the last commit, as Debian and as Python write it. A commit that is not tagged as the version comes before it.
# Files that git does not know, but for those that it ignores, make it dirty too: whole folders are installed.
find_version() {
  local version stamp commit dirty=''
  if ! SOURCE_DATE_EPOCH=$(git -C "$ROOT" log -1 --format=%ct 2>/dev/null); then
    local why
    why=$(git -C "$ROOT" log -1 --format=%ct 2>&1) || true
    fail "packages are named after the commit, and git says: ${why%%$'\n'*}"
  fi
  export SOURCE_DATE_EPOCH
  version=$(sed -n 's/^project(ringlet VERSION \([0-9.]*\).*/\1/p' "$ROOT/CMakeLists.txt")
  [[ -z $(git -C "$ROOT" status --porcelain --untracked-files=normal) ]] || dirty=.dirty
  DEB_VERSION=$version$dirty WHEEL_VERSION=$version
  if [[ -n $dirty || -z $(git -C "$ROOT" tag --points-at HEAD "v$version") ]]; then
    stamp=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M)
    commit=$(git -C "$ROOT" rev-parse --short=8 HEAD)
    DEB_VERSION=$version~git$stamp.$commit$dirty
    WHEEL_VERSION=$version.dev$stamp+g$commit$dirty
  fi
  # Libraries of one release are not those of another.
  # shellcheck source=/dev/null
  DEB_VERSION+="+$(. /etc/os-release && echo "$ID${VERSION_ID:-}")"
  [[ $CUDA == OFF ]] || DEB_VERSION+=+cuda
}

# build_package [OPTION...]: the program and the libraries in BUILD, with these options of CMake besides.
build_package() {
  local lacking
  [[ ! -f $DEPS/environment ]] ||
    fail "packages stand on those of the distribution, and this checkout has some of its own in .deps (scripts/setup as root installs them)"
  mapfile -t lacking < <(missing "${NEEDED[@]}")
  ((${#lacking[@]} == 0)) || fail "missing: ${lacking[*]} (scripts/setup --package installs them)"
  [[ -z $SYSTEM ]] || { have_tools "${CROSS[@]}" "${PLAYER[@]}"; have_sysroot; }
  forget_other_checkout "$BUILD"
  # Where files lie must not be in them; compile_cached (cmake/) makes the same of it in every checkout.
  quietly "$LOGS/package-configure.log" "configuring a package" \
    cmake -S "$ROOT" -B "$BUILD" -G Ninja -D CMAKE_BUILD_TYPE=Release -D RINGLET_CUDA="$CUDA" -D RINGLET_BENCH=OFF \
    -D RINGLET_ONLY_PROGRAM=ON -D RINGLET_WERROR=OFF -D CMAKE_INSTALL_PREFIX=/usr \
    -D CMAKE_INSTALL_RPATH="/usr/lib/$(dpkg-architecture -a"$ARCHITECTURE" -qDEB_HOST_MULTIARCH 2>/dev/null)/openblas-pthread" \
    -D CMAKE_CXX_FLAGS="-ffile-prefix-map=$ROOT/=" "${OPTIONS[@]}" "$@"
  quietly "$LOGS/package-build.log" "building a package" cmake --build "$BUILD"
}

# stage COMPONENT FOLDER: what of it is installed, below FOLDER.
stage() {
  rm -rf "$2"
  DESTDIR=$2 quietly "$LOGS/package-install-$1.log" "installing the component $1" \
    cmake --install "$BUILD" --component "$1" --strip
  no_path_of_the_build "$2"
}

# forget FILE...: earlier packages. build/packages holds one of each, as scripts/package_check wants it; what else lies in a
# folder of the user's stays.
forget() { [[ $OUT != "$ROOT/build/packages" ]] || rm -f "$@"; }

# no_path_of_the_build FOLDER: fails where a file, a program or a library too, names the folder of the sources or the build.
no_path_of_the_build() {
  local named
  named=$(grep -rlaF -e "$ROOT/" -e "$BUILD/" "$1") || return 0
  fail "these name the folder they were built in: ${named//$'\n'/ }"
}

# notices FILE [PACKAGE...]: Ringlet's licence, and those of libraries that are compiled into the program as headers. PACKAGE:
# others that it has in itself.
notices() {
  local file=$1 package
  shift
  {
    cat "$ROOT/LICENSE"
    for package in libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libstb-dev "$@"; do
      printf '\n\n---- compiled in: %s, as its package says\n\n' "$package"
      cat "$SYSTEM/usr/share/doc/$package/copyright"
    done
  } >"$file"
}
