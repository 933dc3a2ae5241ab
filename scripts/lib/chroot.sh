# Bare systems in chroots, with mounts and processes in namespaces of their own. Sourced.
#
# A script that sources this says run_apart first: it then runs a second time, with the folder to work in as
# RINGLET_FRESH. KEEP=yes leaves that folder, PASS_OVER=yes ends well where there can be no chroot. FOREIGN=arm64 has systems
# of that kind, by as_arm (lib/foreign.sh).

# why_not: what this machine lacks, or nothing.
why_not() {
  if ((EUID != 0)); then
    echo "only root may make a chroot: sudo $0"
  elif ! command -v apt-get >/dev/null; then
    echo "the bare system is fetched as this machine's apt does, and there is none here"
  elif ! command -v debootstrap >/dev/null; then
    echo "debootstrap is not installed: apt-get install debootstrap (scripts/setup --dev brings it)"
  elif ! unshare --mount --pid --fork --propagation private mount -t tmpfs none /mnt 2>/dev/null; then
    echo "this machine lets nobody mount (a container?)"
  fi
}

# run_apart ARGUMENT...: starts the script a second time, in a mount and a process namespace, and clears up when that
# has ended or is told to.
run_apart() {
  local lack work child status=0 enter=(setpriv --pdeathsig KILL)
  [[ -z ${RINGLET_FRESH:-} ]] || return 0
  lack=$(why_not)
  if [[ -n $lack ]]; then
    [[ ${PASS_OVER:-no} == no ]] || { say "${0##*/}: passed over; $lack"; exit 0; }
    fail "$lack"
  fi
  work=$(mktemp -d "${TMPDIR:-/var/tmp}/ringlet-fresh.XXXXXX")
  chmod 755 "$work"
  # Nothing of this machine is mounted below the folder as seen from here.
  # shellcheck disable=SC2064
  trap "rm -rf --one-file-system '$work'" EXIT
  # Whoever dies here takes the next one along, down to every process in the namespace.
  [[ -z ${FOREIGN:-} ]] || enter=(as_arm)
  RINGLET_FRESH=$work "${enter[@]}" unshare --mount --pid --fork --kill-child --propagation private \
    "$0" "$@" </dev/null &
  child=$!
  trap 'kill -KILL "$child"; exit 130' INT TERM HUP
  wait "$child" || status=$?
  if [[ ${KEEP:-no} == yes ]]; then
    trap - EXIT
    say "${0##*/}: left in $work"
  fi
  exit "$status"
}

# ---------------------------------------------------------------- the bare system

HOST_RELEASE=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
RELEASE=${RELEASE:-$HOST_RELEASE}
[[ -n $RELEASE ]] || fail "this machine's release has no name; say --release NAME"

# own_sources: this machine's sources of its own release, as lines for sources.list. Other people's sources are
# left out, as a bare machine has none.
own_sources() {
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk -v own="$HOST_RELEASE" '$2 ~ "^" own "(-updates|-security)?$" && $3 ~ "^(main|universe)$" { print "deb " $0 }' |
    sort -u
}

# Where apt is told to go by a proxy, debootstrap (which fetches with wget) goes as well.
proxy() { apt-config dump | sed -n "s/^Acquire::$1::Proxy \"\(.*\)\";\$/\1/p"; }

# make_base FILE: the bare system, as a tar.
make_base() {
  # shellcheck disable=SC2153  # whoever sources this sets WORK
  local folder=$WORK/base options=()
  if [[ -n ${FOREIGN:-} ]]; then
    options=(--arch "$FOREIGN")
    # Nobody makes devices in a namespace of users, and debootstrap, which it is told, goes on with those that it finds.
    export container=lxc
    mkdir -p "$folder/dev"
    mount -t tmpfs -o mode=755 dev "$folder/dev"
    borrow_devices "$folder"
  fi
  [[ -n $MIRROR ]] ||
    MIRROR=$(own_sources | awk -v own="$HOST_RELEASE" '$3 == own && $4 == "main" && !seen++ { print $2 }')
  [[ -n $MIRROR ]] || fail "this machine's apt names no server of its own release; say --mirror URL"
  http_proxy=${http_proxy:-$(proxy http)} https_proxy=${https_proxy:-$(proxy https)} \
    quietly "$LOGS/debootstrap.log" "debootstrap $RELEASE" \
    debootstrap "${options[@]}" --variant=minbase "$RELEASE" "$folder" "$MIRROR"
  tar -C "$folder" --one-file-system -cf "$1.$$" .
  mv "$1.$$" "$1"
  umount --recursive "$folder/dev" "$folder/proc" "$folder/sys" 2>/dev/null || true
  rm -rf --one-file-system "$folder"
}

# bare_system FOLDER: unpacks BASE there, which is made where it is missing.
bare_system() {
  [[ -n $BASE ]] || BASE=$WORK/base.tar
  [[ -s $BASE ]] || make_base "$BASE"
  mkdir "$1"
  tar -C "$1" -xpf "$BASE"
}

# carry_apt FOLDER: what apt needs to know there to reach the servers that this machine reaches.
carry_apt() {
  local folder=$1 sources
  sources=$(own_sources)
  if [[ $RELEASE == "$HOST_RELEASE" ]]; then printf '%s\n' "$sources" >"$folder/etc/apt/sources.list"; fi
  apt-config dump | grep -E '^Acquire::(http|https|Check-|ForceIPv|Retries)' >"$folder/etc/apt/apt.conf.d/90this-machine" || true
  # Keys that this machine's administrator trusts for the servers, and certificates.
  cp -n /etc/apt/trusted.gpg.d/* "$folder/etc/apt/trusted.gpg.d/" 2>/dev/null || true
  if [[ -f /etc/ssl/certs/ca-certificates.crt ]] && grep -q 'https:' "$folder/etc/apt/sources.list"; then
    install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$folder/etc/ssl/certs/ca-certificates.crt"
  fi
  cp -L /etc/resolv.conf /etc/hosts "$folder/etc/"
}

# ---------------------------------------------------------------- the CUDA toolkit

# Sets TOOLKIT to the folder of this machine's toolkit, if it has one to itself, and MOUNTS to that and to
# those of cuDNN and NCCL where they lie apart; ROOTS are the variables that name these.
find_cuda() {
  TOOLKIT='' MOUNTS=() ROOTS=()
  [[ $CPU == no ]] || return 0
  local folder name header module
  for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /opt/cuda; do
    [[ -n $folder && -x $folder/bin/nvcc ]] && TOOLKIT=$(realpath "$folder") && break
  done
  if [[ -z $TOOLKIT ]]; then
    say "${0##*/}: this machine has no CUDA toolkit in a folder of its own; building without"
    return 0
  fi
  MOUNTS=("$TOOLKIT")
  for name in CUDNN:cudnn_version.h:cudnn NCCL:nccl.h:nccl; do
    IFS=: read -r name header module <<<"$name"
    [[ -z $(find -L "$TOOLKIT/include" -maxdepth 1 -name "$header" 2>/dev/null) ]] || continue
    for folder in "$(printenv "${name}_ROOT" || true)" \
                  "$(python3 -c "import nvidia.$module as m; print(list(m.__path__)[0])" 2>/dev/null || true)"; do
      [[ -n $folder && -f $folder/include/$header ]] || continue
      folder=$(realpath "$folder")
      MOUNTS+=("$folder") ROOTS+=("${name}_ROOT=$folder")
      break
    done
  done
}

# ---------------------------------------------------------------- mounts

# borrow_devices FOLDER: this machine's, in its /dev.
borrow_devices() {
  local device
  for device in null zero full random urandom tty; do
    touch "$1/dev/$device"
    mount --bind "/dev/$device" "$1/dev/$device"
  done
}

# mount_all FOLDER: what a running system has.
mount_all() {
  local folder=$1
  mount -t proc proc "$folder/proc"
  mount -t tmpfs -o mode=755 dev "$folder/dev"
  borrow_devices "$folder"
  mkdir "$folder/dev/pts" "$folder/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$folder/dev/pts"
  ln -s pts/ptmx "$folder/dev/ptmx"
  ln -s /proc/self/fd "$folder/dev/fd"
  ln -s fd/0 "$folder/dev/stdin"
  ln -s fd/1 "$folder/dev/stdout"
  ln -s fd/2 "$folder/dev/stderr"
  mount -t tmpfs -o mode=1777 shm "$folder/dev/shm"
  mount -t tmpfs -o mode=1777 tmp "$folder/tmp"
  local mounted
  for mounted in "${MOUNTS[@]}"; do
    mkdir -p "$folder$mounted"
    mount --bind "$mounted" "$folder$mounted"
    mount -o remount,bind,ro "$folder$mounted"
  done
  if [[ -n $TOOLKIT && ! -e $folder/usr/local/cuda ]]; then ln -s "$TOOLKIT" "$folder/usr/local/cuda"; fi
}

