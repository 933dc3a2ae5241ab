# From ctest's log and its LastTest.log, in this order: a line "passed NAME", "failed NAME" or "skipped NAME" for each
# case. Several cases of a suite may have run in one process (tests/discover.cmake); what became of each of these stands in
# what GoogleTest said, and where the process died in one of them, the rest failed as well.

function settle(state) {
  print state, running
  delete planned[running]
  failures[group] += state == "failed"
  running = ""
}

# At the end of a process: what ran last did not end, and what was still to come did not run.
function close_group(name) {
  if (group == "") return
  for (name in planned) { print "failed", name; ++failures[group] }
  if (failed[group] && !failures[group]) print "failed", group  # after its last case, as for memory that leaked
  group = running = ""
  delete planned
}

FILENAME == ARGV[1] {
  if (!match($0, /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: /)) next
  name = substr($0, RLENGTH + 1)
  sub(/ .*/, "", name)
  good = / Passed /
  if (name ~ /\.cases_[0-9]+_to_[0-9]+$/) failed[name] = !good
  else print good ? "passed" : /\*\*\*(Skipped|Not Run \(Disabled\))/ ? "skipped" : "failed", name
  next
}

/^[0-9]+\/[0-9]+ Testing: / {
  close_group()
  if ($3 in failed) group = $3
  next
}
group == "" { next }
/^Command: / {
  if (!match($0, /--gtest_filter=[^"]*/)) next
  count = split(substr($0, RSTART + 15, RLENGTH - 15), names, ":")
  for (i = 1; i <= count; ++i) planned[names[i]]
}
/^\[ RUN      \] / { running = $4 }
running != "" && index($0, "[       OK ] " running " (") { settle("passed") }
running != "" && index($0, "[  SKIPPED ] " running " (") { settle("skipped") }
running != "" && index($0, "[  FAILED  ] " running) { settle("failed") }
END { close_group() }
