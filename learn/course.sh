# What scripts/learn does with a chapter: checks, repairs, programs. Sourced.

# check_own FILE...: of the learner's folder, one after the other. The first that does not pass decides, or the last; the
# others are told of on standard error. A chapter that had passed has not any more where a file does not.
check_own() {
  local file said status
  prepare
  for file in "$@"; do
    if [[ ! -e $OWN/$file ]]; then
      say "learn: $(shown "$OWN")/$file is not there any more; $(shown "$SELF") $NUMBER --reset begins the chapter anew, and keeps what is left"
      return 2
    fi
    status=0
    said=$("$LEARN/check_file" "$NUMBER" "$OWN/$file" --trace "$OWN/trace.json" --library "$OWN/library.so" </dev/null) || status=$?
    ((status != 1)) || rm -f "$OWN/passed"
    if ((status)) || [[ $file == "${*: -1}" ]]; then
      [[ -z $said ]] || printf '%s\n' "$said"
      return "$status"
    fi
    say "$file is right: ${said#*: }"
  done
}

# prepare: in a checkout that has built nothing yet, the packages that are missing.
prepare() {
  [[ -z $TOP || -f $TOP/build/learn/build.ninja ]] || "$TOP/scripts/setup" --program --no-data || exit 2
}

check_chapter() {
  local files
  begin
  read -ra files <<<"${COPIES[NUMBER]}"
  check_own "${files[@]}" || return
  touch "$OWN/passed"
  [[ ! -f $OWN/trace.json ]] || say "  play   $(shown "$SELF") $NUMBER --replay"
  ((NUMBER != 2)) || say "  train  $(shown "$SELF") $NUMBER --train"
  tell_next
}

# repair [--hand-out]: checks the broken ring that the learner is at, and hands out the next one; or only sees that
# there is one.
repair() {
  local name names ring file checked=no
  find_chapter 5
  make_folder
  prepare
  names=$("$LEARN/check_file" --checker --plants "$LEARN/faults.json") || exit 2
  for ((ring = 1; ring <= $(wc -l <<<"$names"); ++ring)); do
    file=ring-$ring.cc
    [[ ! -f $OWN/$file.passed ]] || continue
    if [[ ! -f $OWN/$file ]]; then
      name=$(sed -n "${ring}s/\t.*//p" <<<"$names")
      "$LEARN/check_file" --checker --plant "$LEARN/faults.json" "$name" "$LEARN/.." >"$OWN/$file.new" || exit 2
      mv "$OWN/$file.new" "$OWN/$file"
      say "Broken ring $ring. Mend $(shown "$OWN")/$file, then: $(shown "$SELF") repair"
      [[ $checked == no ]] || return 0
    fi
    [[ ${1:-} != --hand-out ]] || return 0
    check_own "$file" || return
    checked=yes
    touch "$OWN/$file.passed"
  done
  touch "$OWN/passed"
  tell_next
}

# build TARGET: of the checkout's build for the course.
build() {
  local folder=$TOP/build/learn
  [[ -n $TOP ]] || trouble "this needs a checkout of Ringlet: there is no $1 here"
  "$LEARN/check_file" --checker --plants "$LEARN/faults.json" >/dev/null || exit 2  # configures the folder
  [[ -n $(find "$folder" -name "$1" -type f -perm -u+x -print -quit) ]] || say "building $1, once, some minutes; its log is $(shown "$folder/$1.log")"
  flock "$folder/learn_lock" cmake --build "$folder" --target "$1" >"$folder/$1.log" 2>&1 </dev/null || trouble "$1 cannot be built; see $folder/$1.log"
}

run_program() {
  [[ -x $PROGRAM ]] || build ringlet
  "$PROGRAM" "$@"
}

# replay: a page of the chapter's last run that passed. Chapter 3 looks at that of chapter 2.
replay() {
  local of=$NUMBER trace page
  ((NUMBER != 3)) || of=2
  trace=$MY/${CHAPTERS[of]}/trace.json page=$MY/${CHAPTERS[of]}/replay.html
  [[ -f $trace ]] || trouble "there is no run to play yet; pass $(shown "$SELF") $of first"
  run_program replay "$trace" --out "$page" --force
}

# train: LeNet, by the ring of the learner, which has to pass first.
train() {
  local status=0
  ((NUMBER == 2)) || trouble "--train is for the ring of chapter 2"
  begin
  check_own ring.cc || return
  build learn_train
  # bash itself would say that it was killed, and where in this file.
  { "$TOP/build/learn/learn/learn_train" "$OWN/library.so" 2>&3 || status=$?; } 3>&2 2>/dev/null
  ((status > 128)) || return "$status"
  say "learn: the training by your ring crashed (signal $(kill -l "$status")); look for memory that is too small, or that ranks share"
  return 1
}
