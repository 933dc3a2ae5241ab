# The program as one file, used where there is nothing else. Sourced by scripts/package_check.

# one_file ARGUMENT...: the program, by itself in CHROOT.
one_file() { env -i HOME=/ PATH=/usr/sbin:/usr/bin "${SETTINGS[@]}" chroot "$CHROOT" /ringlet "$@"; }

# refuses WORDS COMMAND...: fails, with one error, which has these words.
refuses() {
  local words=$1 said
  shift
  ! said=$("$@" 2>&1) || { echo "not refused: $*"; return 1; }
  printf '%s\n' "$said"
  said=$(grep "error: " <<<"$said")
  [[ $said != *$'\n'* && $said == *"$words"* ]]
}

use_one_file() {
  local data=(--data synthetic --synthetic-train 2000 --synthetic-test 500 --max-steps "$STEPS" --exact --force)
  one_file --version &&
    one_file train "${data[@]}" --replicas 2 --out threads &&
    one_file train "${data[@]}" --processes 2 --out processes &&
    cmp "$CHROOT/threads/model.safetensors" "$CHROOT/processes/model.safetensors" &&
    one_file eval --checkpoint threads --replicas 2 &&
    one_file report threads processes --out page.html &&
    one_file inspect threads >/dev/null &&
    [[ -s $CHROOT/page.html ]]
}

refuse_one_file() {
  local data=(--data synthetic --synthetic-train 2000 --synthetic-test 500 --max-steps 3 --no-out)
  refuses "install Ringlet's wheel or .deb" one_file train "${data[@]}" --processes 2 --transport gloo &&
    refuses "install Ringlet's .deb" env WORLD_SIZE=1 RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29999 \
      chroot "$CHROOT" /ringlet train "${data[@]}" --processes --transport mpi &&
    refuses "scripts/package deb --cuda" one_file train "${data[@]}" --device cuda
}

# Products by what OpenBLAS has for other processors, as far as this one can do them; each core's name with what it needs.
# shellcheck disable=SC2034  # named by MACHINE
X86_64_CORES=(Prescott:pni Nehalem:sse4_2 Sandybridge:avx Haswell:avx2 Zen:avx2 SkylakeX:avx512dq Cooperlake:avx512_bf16)
# shellcheck disable=SC2034
AARCH64_CORES=(ARMV8 CORTEXA53 CORTEXA57 THUNDERX2T99 NEOVERSEN1)  # they need nothing but aarch64
other_cores() {
  local core needs cores="${MACHINE^^}_CORES[@]" data=(--data synthetic --synthetic-train 500 --synthetic-test 100 --layout nchw --max-steps 3 --no-out)
  for core in "${!cores}"; do
    needs=${core#*:} core=${core%:*}
    [[ $needs == "$core" ]] || grep -qw "$needs" /proc/cpuinfo || { echo "$core: not on this processor"; continue; }
    echo "$core"
    SETTINGS=(OPENBLAS_CORETYPE="$core")
    one_file train "${data[@]}" >/dev/null || return 1
  done
  SETTINGS=()
}

# The first model, from a file that has only been made executable, by the recipe of docs/status.md's "A first model": what is said of it,
# and of processors' seconds.
first_model() {
  local said status=0 recipe=(--epochs 3 --optimizer adamw --lr 0.007 --beta2 0.98 --label-smoothing 0.05 --batch-size 64)
  mkdir -p "$CHROOT/fashion-mnist"
  cp /usr/share/datasets/fashion-mnist/* "$CHROOT/fashion-mnist/"
  TIMEFORMAT='%R s by the clock, %U s + %S s of processors'
  time said=$(one_file train --data fashion-mnist --data-dir fashion-mnist --model lenet --replicas 2 "${recipe[@]}" --out first --force) || status=$?
  tail -n 12 <<<"$said"
  ((status == 0)) && grep -Eq '^all .* (9[1-9]|100)\.[0-9]+ %' <<<"$said" && [[ -s $CHROOT/first/model.safetensors ]]
}

check_static() {
  local file alone=yes
  file=$(only "ringlet-*-linux-$MACHINE")
  SETTINGS=()
  CHROOT=$WORK/static
  if [[ -n $BASE || $RELEASE != "$HOST_RELEASE" ]]; then
    alone=no
    bare_system "$CHROOT"
    mount_all "$CHROOT"
  else
    mkdir "$CHROOT"
  fi
  cp "$file" "$CHROOT/ringlet"
  chmod +x "$CHROOT/ringlet"
  measured "no loader, no library" bash -c '! readelf --program-headers --wide "$1" | grep -E "INTERP|DYNAMIC"' _ "$CHROOT/ringlet"
  measured "train, eval, report" use_one_file
  measured "what other packages have" refuse_one_file
  measured "other processors' products" other_cores
  [[ $alone == no || -n $FOREIGN || ! -d /usr/share/datasets/fashion-mnist ]] || measured "a model of Fashion-MNIST" first_model
}
