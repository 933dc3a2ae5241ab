# A Slurm for tests/slurm_test, unpacked into .deps/slurm. Installed, it would start daemons. Sourced.

SLURM_FOLDER=$DEPS/slurm
SLURM_PACKAGES=(slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge)

# bring_slurm: unpacks it with what it needs, or says in one line why not; does nothing when it is there.
bring_slurm() {
  local log=$LOGS/slurm.log
  [[ ! -x $SLURM_FOLDER/usr/bin/srun && ! (-x /usr/sbin/slurmctld && -x /usr/sbin/slurmd) ]] || return 0
  [[ -z $(find "$LOGS/no-slurm" -mmin -60 2>/dev/null) ]] || return 0  # tried within the hour
  mkdir -p "$LOGS"
  if unpack_slurm >"$log" 2>&1 </dev/null; then
    rm -f "$LOGS/no-slurm"
    say "setup: unpacked Slurm into ${SLURM_FOLDER#"$ROOT/"}"
  else
    touch "$LOGS/no-slurm"
    say "setup: going on without Slurm: $(why "$log") (its test is skipped)"
  fi
  rm -rf "$SLURM_FOLDER.new"
}

# Lists that are absent or too old are fetched once.
unpack_slurm() {
  command -v apt-get && { fetch_slurm || { update_lists && fetch_slurm; }; } || return 1
  local deb
  for deb in "$SLURM_FOLDER.new"/*.deb; do dpkg-deb -x "$deb" "$SLURM_FOLDER.new" || return 1; done
  rm -rf "$SLURM_FOLDER" "$SLURM_FOLDER.new"/*.deb && mv "$SLURM_FOLDER.new" "$SLURM_FOLDER"
}

fetch_slurm() {
  local names  # those and what else is missing here
  names=$(apt-get "${APT_OPTIONS[@]}" -s --no-install-recommends install "${SLURM_PACKAGES[@]}" |
          sed -n 's/^Inst \([^ ]*\) .*/\1/p') || return 1
  mapfile -t names < <(printf '%s\n' "${SLURM_PACKAGES[@]}" "$names" | grep . | sort -u)
  rm -rf "$SLURM_FOLDER.new" && mkdir -p "$SLURM_FOLDER.new" || return 1
  (cd "$SLURM_FOLDER.new" && apt-get "${APT_OPTIONS[@]}" download "${names[@]}")
}
