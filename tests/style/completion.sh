#!/usr/bin/env bash
# Completion offers what the program takes: every command of `lockstep --help`, every
# flag of every command's --help, names of data, and the choices of a flag; and it runs
# nothing that a name says.
# Usage: completion.sh COMPLETION LOCKSTEP
set -euo pipefail # so that no reader of a pipe may leave early: grep -q would
completion=$(realpath -- "$1")
lockstep=$(realpath -- "$2")
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd -- "$work"
mkdir models
touch 'models/$(touch ran).json'
. "$completion"
n=0

complete_words() {
  COMP_WORDS=("$lockstep" "$@")
  COMP_CWORD=$#
  COMPREPLY=()
  _lockstep || true
}

# Is $1 among what is offered for the words that follow?
check_offer() {
  local wanted=$1
  shift
  if ! printf '%s\n' "${COMPREPLY[@]}" | grep -xF -- "$wanted" > /dev/null; then
    printf 'not offered for "%s": %s; but: %s\n' "$*" "$wanted" "${COMPREPLY[*]}"
    exit 1
  fi
  n=$((n + 1))
}
offers() {
  complete_words "${@:2}"
  check_offer "$@"
}

for command in $("$lockstep" --help | sed -nE '/^Commands:/,/^$/ s/^  ([a-z]+) .*/\1/p'); do
  offers "$command" ''
  complete_words "$command" --
  for flag in $("$lockstep" "$command" --help | sed -nE 's/^  (-[a-z], )?(--[a-z0-9-]+).*/\2/p' | sort -u); do
    check_offer "$flag" "$command" --
  done
done
((n > 50))

offers gpt3-175b run --model gpt3
offers two-ranks run --trace two
offers gpt3-175b run --tp 8 --model = gpt3
offers dgx-a100-80g run --cluster ''
offers interleaved-1f1b run --schedule ''
offers dualpipe schedule --schedule dual
offers pytorch schedule --rounds p
offers svg schedule --format s
offers selective run --recompute ''
offers fp8 run --dtype =
offers auto validate x.csv --fold a
offers 1 run --tp-overlap ''
offers pipeline run --help p
offers tp_async= run --set tp_as
offers megatron run --software mega
offers muon run --optimizer mu
offers llama3-h100 train --reliability lla
offers mlperf-5.1 run --jitter ''
offers besiroglu-2024 train --scaling-law b
offers strategies list s
offers jitter list j
offers nccl-generation schema nccl
offers export trace ''
offers gpt3-175b trace export --model gpt3
offers --pp trace export --p
touch out.csv
offers out.csv run --csv out
offers out.csv validate ou
offers '\$\(touch' run --model '$'
complete_words run --steps ''
[[ ${#COMPREPLY[@]} == 0 ]] || { printf 'offered for --steps: %s\n' "${COMPREPLY[*]}"; exit 1; }

# zsh and fish, where they are found, offer the same with meanings. $1 "zsh" or "fish", $2 a line that is
# offered for the words that follow.
folder=$(dirname -- "$completion")
PATH=$(dirname -- "$lockstep"):$PATH
in_zsh() {
  zsh -f -c '
    fpath=($1 $fpath); autoload -U _lockstep; shift
    compadd() { local a=${@[-1]}; print -rl -- ${(P)a} }
    _describe() { compadd "$@" }
    _files() { print -r -- FILES }
    words=("$@"); CURRENT=$#words; _lockstep' zsh "$folder" "$@"
}
in_fish() {
  local line=$*
  fish --no-config -c "source '$folder/lockstep.fish'; complete -C '$line'"
}
shell_offers() {
  local shell=$1 wanted=$2 got
  shift 2
  got=$("in_$shell" "$@")
  if ! grep -xF -- "$wanted" <<< "$got" > /dev/null; then
    printf '%s: not offered for "%s": %s; but:\n%s\n' "$shell" "$*" "$wanted" "$got"
    exit 1
  fi
  n=$((n + 1))
}
touch out.csv
if command -v zsh > /dev/null; then
  shell_offers zsh 'schema:the JSON Schema of what is read and written' lockstep sc
  shell_offers zsh gpt3-175b lockstep run --model gpt3
  shell_offers zsh '--model=gpt3-175b' lockstep run --model=gpt3
  shell_offers zsh '$(touch' lockstep run --model '$'
  shell_offers zsh FILES lockstep validate ou
fi
if command -v fish > /dev/null; then
  shell_offers fish $'schema\tthe JSON Schema of what is read and written' lockstep sc
  shell_offers fish gpt3-175b lockstep run --model gpt3
  shell_offers fish selective lockstep run --recompute ''
  shell_offers fish zbv lockstep run --schedule ''
  shell_offers fish '--model=gpt3-175b' lockstep run --model=gpt3
  shell_offers fish 'out.csv' lockstep validate ou
fi
[[ ! -e ran ]] || { printf 'a file name was run\n'; exit 1; }
printf '%d words offered\n' "$n"
