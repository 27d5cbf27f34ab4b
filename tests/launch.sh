#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command joins the jobs of the usual launchers: Open MPI's mpirun for real; torchrun, PMI and
# Slurm by the variables that they set.
command=$builddir/crosstie
port=$((20000 + $$ % 12000))
status=0

# as NAME VARIABLES-OF-RANK…: four ranks, each with its variables; RANK_ stands for the rank.
as() {
  name=$1
  shift
  out=$(
    for rank in 0 1 2 3; do
      env $(for v; do echo "$v" | sed "s/RANK_/$rank/g"; done) \
        timeout 60 "$command" bench allreduce -b 1K -e 64K -f 8 -n 2 -w 1 2>&1 &
    done
    wait
  )
  case $out in
  *"4 ranks on 1 host"*65536*) echo "ok: $name" ;;
  *)
    echo "$name did not make a job of four: $out"
    status=1
    ;;
  esac
}

as "torchrun" RANK=RANK_ WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
as "torchrun, whose store has the port" RANK=RANK_ WORLD_SIZE=4 MASTER_ADDR=localhost \
  MASTER_PORT=$((port + 10)) TORCHELASTIC_USE_AGENT_STORE=True
as "mpiexec (PMI)" PMI_RANK=RANK_ PMI_SIZE=4 MPI_LOCALNRANKS=4 PMI_JOBID=test-$$
as "srun" SLURM_PROCID=RANK_ SLURM_NTASKS=4 SLURM_JOB_ID=$$ SLURM_STEP_NODELIST=localhost

if command -v mpirun >/dev/null; then
  # Root and more ranks than cores are ordinary in a container.
  out=$(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 \
    mpirun --oversubscribe -np 4 "$command" bench allreduce -b 8 -e 1M -f 8 -n 3 -w 1 2>&1)
  code=$?
  case $code:$out in
  0:*"4 ranks on 1 host"*) echo "ok: mpirun" ;;
  *)
    echo "mpirun ended with $code: $out"
    status=1
    ;;
  esac

  # What one rank sees of the host all tell.
  seen=$(mktemp -d) || exit 99
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 \
    mpirun --oversubscribe -np 4 sh -c \
    "'$command' topo -o '$seen'/\$OMPI_COMM_WORLD_RANK.json" >"$seen/said" 2>&1
  if [ ! -s "$seen/said" ] && [ -s "$seen/0.json" ] && cmp -s "$seen/0.json" "$seen/1.json" &&
    cmp -s "$seen/0.json" "$seen/2.json" && cmp -s "$seen/0.json" "$seen/3.json"; then
    echo "ok: topo under mpirun"
  else
    echo "topo under mpirun: $(cat "$seen/said"; ls -l "$seen")"
    status=1
  fi
  rm -rf "$seen"
else
  echo "mpirun: there is none (Debian: openmpi-bin); the rest: $status"
  [ $status = 0 ] && status=77
fi
exit $status
