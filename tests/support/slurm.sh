# A Slurm of two nodes, m0 and m1, on the machines that scripts/machines plays. To be sourced behind support/machines.sh.
# Its daemons, keys, sockets, logs and states are in $WORK/slurm and end with the machines. Ends with 77 where there is
# no Slurm: neither installed nor in .deps/slurm, where scripts/setup --dev unpacks it.
# shellcheck shell=bash
SLURM_UNPACKED=$ROOT/.deps/slurm
SLURM_CONF=$WORK/slurm/slurm.conf
if [[ -x $SLURM_UNPACKED/usr/bin/srun ]]; then
  SLURM_LIBRARIES=$(echo "$SLURM_UNPACKED"/usr/lib/*/slurm-wlm)
  PATH=$SLURM_UNPACKED/usr/bin:$SLURM_UNPACKED/usr/sbin:$PATH
  LD_LIBRARY_PATH=$SLURM_LIBRARIES:${SLURM_LIBRARIES%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  SLURMD=(slurmd-wlm -d "$SLURM_UNPACKED/usr/sbin/slurmstepd-wlm") SLURMCTLD=(slurmctld-wlm)
  export LD_LIBRARY_PATH
else
  SLURM_LIBRARIES='' PATH=$PATH:/usr/sbin SLURMD=(slurmd) SLURMCTLD=(slurmctld)
fi
for tool in "${SLURMD[0]}" "${SLURMCTLD[0]}" munged srun sbatch; do
  command -v "$tool" >/dev/null ||
    { echo "no $tool here (Slurm; scripts/setup --dev unpacks it); passed over" >&2; exit 77; }
done
export SLURM_CONF PATH

# Each node has 16 processors, as far as Slurm knows. A job that is requeued waits until what was signed for its
# steps is no longer valid: cred_expire seconds, two minutes where nothing is said.
mkdir -p "$WORK"/slurm/{state,tmp.m0,tmp.m1,spool.m0,spool.m1}
cat >"$SLURM_CONF" <<CONF
ClusterName=played
SlurmctldHost=m0(10.77.0.1)
SlurmUser=root
AuthInfo=socket=$WORK/slurm/munge,cred_expire=8
SlurmctldPidFile=$WORK/slurm/slurmctld.pid
SlurmctldLogFile=$WORK/slurm/slurmctld.log
StateSaveLocation=$WORK/slurm/state
SlurmdPidFile=$WORK/slurm/slurmd.%n.pid
SlurmdLogFile=$WORK/slurm/slurmd.%n.log
SlurmdSpoolDir=$WORK/slurm/spool.%n
TmpFS=$WORK/slurm/tmp.%n
${SLURM_LIBRARIES:+PluginDir=$SLURM_LIBRARIES}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=1
ReturnToService=2
KillWait=5
NodeName=m0 NodeAddr=10.77.0.1 CPUs=16
NodeName=m1 NodeAddr=10.77.0.2 CPUs=16
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
printf '127.0.0.1 localhost\n10.77.0.1 m0\n10.77.0.2 m1\n' >"$WORK/slurm/hosts"
(umask 077 && head -c 64 /dev/urandom >"$WORK/slurm/key")

# within SECONDS COMMAND...: waits until the command succeeds.
within() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

both_nodes_are_idle() { [[ $(sinfo -h -t idle -o %D) == 2 ]]; }

# on_slurm COMMAND: runs a function of the shell's, or what else eval takes, on m0 of such a Slurm.
on_slurm() {
  export -f within both_nodes_are_idle node_of_slurm
  machines 2 -- bash -c "$(declare -p SLURMD SLURMCTLD); node_of_slurm \"\$@\"" . "$1"
}

# What runs on each machine.
node_of_slurm() {
  local files=$WORK/slurm process
  unset MASTER_ADDR MASTER_PORT  # by which srun's processes would meet
  mount --bind "$files/hosts" /etc/hosts
  if ((MACHINE)); then
    within 20 test -S "$files/munge"
    exec "${SLURMD[@]}" -D >"$files/slurmd.$MACHINE.txt" 2>&1
  fi
  munged --force --foreground --socket="$files/munge" --key-file="$files/key" --pid-file="$files/munged.pid" \
    --log-file="$files/munged.log" --seed-file="$files/seed" >"$files/munged.txt" 2>&1 &
  within 20 test -S "$files/munge"
  "${SLURMCTLD[@]}" -D >"$files/slurmctld.txt" 2>&1 &
  "${SLURMD[@]}" -D >"$files/slurmd.$MACHINE.txt" 2>&1 &
  local status=1
  if within 30 both_nodes_are_idle; then
    eval "$1"
    status=$?
  else
    echo "Slurm did not come up:" "$(cat "$files"/*.log "$files"/*.txt)" >&2
  fi
  # The other machine's daemon ends that machine, and the rest goes with this one.
  within 10 test -s "$files/slurmd.m1.pid" && kill "$(cat "$files/slurmd.m1.pid")"
  return "$status"
}
