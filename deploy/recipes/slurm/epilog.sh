#!/bin/sh
# As root on each node, when a job has ended: its links end with their folder. Slurm has ended the
# job's own processes before.
set -eu
root=${LONGWIRE_JOB_FOLDERS:-/run/longwire-jobs}
: "${SLURM_JOB_ID:?Slurm sets it}"
folder=$root/$SLURM_JOB_ID
for environ in /proc/[0-9]*/environ; do
  process=${environ#/proc/}
  process=${process%/environ}
  tr '\0' '\n' 2>/dev/null <"$environ" | grep -qx "LONGWIRE_RUNTIME_DIR=$folder" || continue
  kill "$process" 2>/dev/null || true
done
rm -rf "$folder"
