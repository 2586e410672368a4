#!/usr/bin/env bash
# Published runs and what we predict for them: cases.csv has the figures with their
# citations, results.txt the whole table of
#
#     lockstep validate tests/accuracy/cases.csv
#
# A changed prediction shows as a changed line there. This test reruns the rows that
# take seconds, also with the sanitizers on, and requires the same lines; the manual
# (what-to-trust.md) must show the families of results.txt as `--markdown` writes them, and
# README.md its three numbers, which are those of results.txt and memory.txt.
# LS_UPDATE_GOLDEN=1 reruns everything and rewrites results.txt, the manual and README.md,
# topologies/calib/residuals.json and residuals-textbook.json (minutes). These must be of the
# tables as they are.
# memory.csv has runs whose memory was measured, vtrain_fabric.csv those that settled a
# fabric, eager.csv steps that we timed ourselves, experts.csv and releases.csv published ones of
# models with experts, blind.csv steps that were written down before they were simulated
# (README.md); memory.txt and so on are what we say of them.
# Usage: run.sh LOCKSTEP
set -euo pipefail # so that no reader of a pipe may leave early: grep -q would
lockstep=$(realpath -- "$1")
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
readme=../../README.md trust=../../src/manual/what-to-trust.md calib=../../topologies/calib
of_intervals=(cases.csv blind.csv experts.csv releases.csv dgxc.csv eager.csv) # no calibration, no row twice
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT

# The block of marker $2 in page $1, without the markers; and the page with the file $3 for it.
block() { sed -n "\|^<!-- $2 -->\$|,\|^<!-- /$2 -->\$|p" "$1" | sed '1d;$d'; }
replace_block() {
  { sed "/^<!-- $2 -->\$/q" "$1"; cat -- "$3"; sed -n "\|^<!-- /$2 -->\$|,\$p" "$1"; } > "$out/page"
  cat -- "$out/page" > "$1"
}

# The three numbers of README.md: the first line of all families, and the last of memory.
three_numbers() {
  printf '| Predicted | Runs | Mean absolute error |\n|---|---:|---:|\n'
  awk '$1 == "all" { printf "| step time of published runs, on 8 to 8,192 accelerators | %s | %s %% |\n| the same by a calculator that knows the MFU of the other runs of the same table | %s | %s %% |\n", $2, $4, $2, $9; exit }' results.txt
  sed -nE 's/^([0-9]+) rows: mean absolute error ([0-9.]+) %.*/| peak memory of runs of Megatron-LM on B200 | \1 | \2 % |/p' memory.txt
}

if [[ ${LS_UPDATE_GOLDEN:-} == 1 ]]; then
  "$lockstep" validate cases.csv --markdown "$out/table" > "$out/results" </dev/null
  cat -- "$out/results" > results.txt
  for name in memory vtrain_fabric eager experts releases blind dgxc; do
    "$lockstep" validate "$name.csv" > "$name.txt" </dev/null
  done
  replace_block "$trust" accuracy "$out/table"
  three_numbers > "$out/numbers"
  replace_block "$readme" trust "$out/numbers"
  "$lockstep" validate "${of_intervals[@]}" --residuals "$calib/residuals.json" > /dev/null </dev/null
  "$lockstep" validate "${of_intervals[@]}" --assume software=textbook --residuals "$calib/residuals-textbook.json" > /dev/null </dev/null
  exit 0
fi

# Intervals are of these tables, as they are.
sum=$(cat -- "${of_intervals[@]}" | sha256sum | cut -d' ' -f1)
n=$(cat -- "${of_intervals[@]}" | grep -cvE '^(#|id,)')
for name in residuals residuals-textbook; do
  if [[ $(cat -- "$calib/$name.json") != *"sha256 $sum; $n rows simulated"* ]]; then
    printf '%s.json is not of %s as they are\n' "$name" "${of_intervals[*]}"
    exit 1
  fi
done

# The first table of families, row by row as Markdown.
awk '/^family / { on = 1; next } on && NF == 0 { exit } on { printf "|"; for (i = 1; i <= NF; i++) printf " %s |", $i; print "" }' \
  results.txt > "$out/families"
block "$trust" accuracy | sed '1,2d' > "$out/shown"
[[ -s $out/families ]]
diff -u --label results.txt --label what-to-trust.md "$out/families" "$out/shown"
three_numbers > "$out/numbers"
(($(wc -l < "$out/numbers") == 5))
diff -u --label results.txt,memory.txt --label README.md "$out/numbers" <(block "$readme" trust)

rows() { sed -n '2,/^$/p' | sed '/^$/d' | tr -s ' '; }
# The rows of $1.csv that the pattern $2 chooses, of which there are $3, are in $4.
reruns() {
  local n
  "$lockstep" validate "$1.csv" --only "$2" </dev/null | rows > "$out/rerun"
  rows < "$4" > "$out/stored"
  if grep -vxFf "$out/stored" "$out/rerun"; then
    printf 'not in %s\n' "$4"
    exit 1
  fi
  n=$(wc -l < "$out/rerun")
  printf '%d rows as in %s\n' "$n" "$4"
  [[ $n == "$3" ]]
}
reruns cases '^(sc21-t1-(1.7|7.5)B|korth-t5-(22|175)B|zb-t4-6.2B-m24|simumax.*tp1_pp2_dp4_mbc8|mpt-a100_80gb-7b|titan-t3|dgxc-v25.04-llama3.1-(8b-BF16-H100-8g|70b-BF16-H100-64)|internevo|maxtext-v5e-32B-1x|mlperf)' 18 results.txt
reruns vtrain_fabric '^vtrain-multi-..[05]-' 12 vtrain_fabric.txt
reruns blind '^(fp-aquila2-7b-a800-(dp8|tp8)|fp-llama2-7b-zero3-(a800|h800)$|te-|titan-8b|torchao|am-lora-(llama3-8b|qwen2.5-7b)|am-gpt-oss|dlperf-v100-dp(1|16)$|fa-gpt3-[13]|fmsa-(mistral-7b|powerlm-3b)-1-lora|qwen-7b-lora-2k)' 21 blind.txt
reruns dgxc '^(llama3.1-(8b-fp8-8|405b-.*-32)-|nemotron4-15b-fp8-16|grok1-fp8-(8|64)-|llama3-8b-.*-8$|maxtext-.*-64-|paxml-5b-.*-16)' 15 dgxc.txt
reruns releases '^(qwen3-30b|nemotron-3-nano)-(gb200|b300)-8-' 10 releases.txt
# Ids are names: with others the same rows have the predictions of results.txt.
fast='^(sc21-t1-1.7B|korth-t5-22B|zb-t4-6.2B-m24|mpt-a100_80gb-7b|titan-t3|bloom-176B|maxtext-v5e-32B-1x)'
awk -F, -v OFS=, -v fast="$fast" 'NR > 1 && $1 !~ fast { next } NR > 1 { $1 = "row" NR } 1' cases.csv > "$out/renamed.csv"
"$lockstep" validate "$out/renamed.csv" </dev/null | rows | cut -d' ' -f2-4 > "$out/renamed"
rows < results.txt | grep -E -- "$fast" | cut -d' ' -f2-4 | diff - "$out/renamed"
[[ $(wc -l < "$out/renamed") -ge 8 ]]
for name in memory eager experts; do
  "$lockstep" validate "$name.csv" </dev/null | diff - "$name.txt"
done
