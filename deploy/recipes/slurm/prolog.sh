#!/bin/sh
# As root on each node, before a job's first step: a folder for the sockets of the job's links.
set -eu
root=${LONGWIRE_JOB_FOLDERS:-/run/longwire-jobs}
: "${SLURM_JOB_ID:?Slurm sets it}" "${SLURM_JOB_UID:?Slurm sets it}"
install -d -m 0711 "$root"
install -d -m 0700 -o "$SLURM_JOB_UID" "$root/$SLURM_JOB_ID"
