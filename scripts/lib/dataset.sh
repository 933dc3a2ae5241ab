# Fashion-MNIST where Debian's package cannot be had: upstream's four files. Sourced.
#
# The address is the one that the data set's README names. The sums are those of the raw bytes:
# gzip's headers differ between Debian's files and upstream's.

UPSTREAM=http://fashion-mnist.s3-website.eu-central-1.amazonaws.com
CACHE=${HOME:-/root}/.cache/ringlet/fashion-mnist
declare -A RAW_SHA256=(
  [train-images-idx3-ubyte]=c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888
  [train-labels-idx1-ubyte]=bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9
  [t10k-images-idx3-ubyte]=5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b
  [t10k-labels-idx1-ubyte]=0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34)

# Whether the data set lies where ringlet looks for it (data/fashion_mnist.h), with all of its files.
have_fashion_mnist() {
  [[ -n ${RINGLET_DATA:-} ]] && return 0
  local directory name
  for directory in {/usr/local,/usr}/share/datasets/fashion-mnist "$CACHE"; do
    for name in "${!RAW_SHA256[@]}"; do
      [[ -s $directory/$name || -s $directory/$name.gz ]] || continue 2
    done
    return 0
  done
  return 1
}

# fetch URL FILE, with what there is; apt brings a fetcher of its own.
fetch() {
  if command -v curl >/dev/null; then
    curl -fsSL --connect-timeout 15 --max-time 300 -o "$2" "$1"
  elif command -v wget >/dev/null; then
    wget -q --timeout=15 --tries=2 -O "$2" "$1"
  else
    /usr/lib/apt/apt-helper -o Acquire::http::Timeout=15 -o Acquire::Retries=1 -o APT::Sandbox::User= \
      download-file "$1" "$2" >/dev/null 2>&1
  fi
}

# raw_sum FILE.gz
raw_sum() { gzip -dc "$1" 2>/dev/null | sha256sum | cut -d ' ' -f 1; }

# adopt FOLDER: checks the four files in FOLDER and makes it CACHE, as one rename.
adopt() {
  local name
  for name in "${!RAW_SHA256[@]}"; do
    if [[ $(raw_sum "$1/$name.gz") != "${RAW_SHA256[$name]}" ]]; then
      say "setup: $name.gz is not Fashion-MNIST's (its SHA-256 differs)"
      return 1
    fi
  done
  rm -rf "$CACHE"
  mv "$1" "$CACHE"
}

# make_aside: sets ASIDE to a new folder beside CACHE, which goes when the script ends, however it does.
make_aside() {
  ASIDE=$(mkdir -p "$(dirname "$CACHE")" 2>/dev/null && mktemp -d "$CACHE.XXXXXX" 2>/dev/null) || return 1
  trap 'rm -rf "$ASIDE"' EXIT
}

# Puts upstream's files into CACHE, complete and checked, or leaves it alone.
download_fashion_mnist() {
  local name
  say "setup: fetching Fashion-MNIST (30 MB) from its authors into $CACHE"
  for name in "${!RAW_SHA256[@]}"; do
    fetch "$UPSTREAM/$name.gz" "$ASIDE/$name.gz" || return 1
  done
  adopt "$ASIDE"
}
