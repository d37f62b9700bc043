#!/bin/sh
# As the user, before each task: lines "export NAME=VALUE" that it prints are the task's variables.
set -eu
root=${LONGWIRE_JOB_FOLDERS:-/run/longwire-jobs}
home=${LONGWIRE_HOME:-/usr}
: "${SLURM_JOB_ID:?Slurm sets it}"
# How many devices the job asked for on this node: "TresPerNode=gres/longwire:2", by older versions
# written gres:longwire:2. Jobs that asked for none see none.
asked=$(scontrol show job "$SLURM_JOB_ID" |
  sed -n 's|.*Tres[A-Za-z]*=[^ ]*gres[:/]longwire[:=]\([0-9]*\).*|\1|p' | head -n 1)
[ -n "$asked" ] || exit 0
echo "export LONGWIRE_DEVICES=$asked"
echo "export LONGWIRE_RUNTIME_DIR=$root/$SLURM_JOB_ID"
echo "export LD_LIBRARY_PATH=$home/lib/longwire${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
[ -z "${LONGWIRE_SERVER:-}" ] || echo "export LONGWIRE_SERVER=$LONGWIRE_SERVER"
