#!/usr/bin/env bash
# accelerator_word.sh fails where an output, a note, a file or a table says GPU, and where a command was not tried. Keys, options
# and names of vertices are no words.
# Usage: accelerator_word_catches.sh CHECK
set -euo pipefail
check=$1
root=$(realpath -- "$(dirname -- "$0")/../..")
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT

# A program with a fault in some commands.
cat > "$out/lockstep" <<'EOF'
#!/usr/bin/env bash
case $1 in
  --help) printf 'Commands:\n  run   one\n  dance  another\n\n' ;;
  trace) touch files/job.json ;;
  compare) echo 'on 8 GPUs of it' ;;
  kernel) echo 'note: a GPU.' >&2 ;;
  sweep) echo "set xlabel 'GPUs'" > files/s.gp ;;
  topology) printf 'node0/gpu1 4 x gpu\n' ;;
  schedule) printf -- 'run --gpus 8 --gpu-hour 2, "gpus": 8, n_GPUs, node0/gpu*>gpu*\n' ;;
esac
EOF
chmod +x "$out/lockstep"

if said=$(bash "$check" "$root" "$out/lockstep" 2>&1); then
  printf 'nothing was caught\n'
  exit 1
fi
for fault in 'stdout of lockstep compare' 'stderr of lockstep kernel' 'files/s.gp of lockstep sweep' 'lockstep topology .* calls chips gpu:' \
  'lockstep dance is not tried' 'exit code 4 expected, 0 got'; do
  if ! grep -q -- "$fault" <<< "$said"; then
    printf 'not caught: %s\n' "$fault"
    exit 1
  fi
done
if grep -e 'of lockstep schedule' -e 'run is not tried' <<< "$said"; then
  printf 'caught, and there is no fault\n'
  exit 1
fi
