#!/usr/bin/env bash
# The front door: README.md has at most 150 lines; every relative link of README.md, of the
# manual and of the READMEs of the data folders leads to a file, and one with "#..." to a
# heading; a file of the project that a page names is there; every command of `lockstep --help`
# has a page; every page of the manual is reached from its index.md, is installed (meson.build),
# has at most 1,000 lines, and no folder has more than 60 files. A document that a file cites is
# in the tree.
# Usage: manual.sh ROOT LOCKSTEP
set -euo pipefail
root=$(realpath -- "$1")
lockstep=$2
manual=src/manual
cd -- "$root"
status=0

bad() {
  printf '%s\n' "$*"
  status=1
}

# The targets of the links of page $1 that are no addresses, without code.
links_of() {
  awk '/^```/ { fence = !fence } !fence && !/^    / { gsub(/`[^`]*`/, "c"); print }' "$1" \
    | { grep -oE '\]\([^)]+\)' || true; } | sed -E 's/^\]\(//; s/\)$//' | { grep -vE '^[a-z]+:' || true; }
}

# The anchors of page $1, as a heading makes them.
anchors_of() {
  sed -nE 's/^#+ +//p' "$1" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

check_link() {
  local page=$1 link=$2 target=${2%%#*} file
  file=$page
  [[ -z $target ]] || file=$(dirname -- "$page")/$target
  if [[ ! -e $file ]]; then
    bad "$page: the link ($link) leads nowhere"
  elif [[ $link == *'#'* ]] && ! anchors_of "$file" | grep -xF -- "${link#*#}" > /dev/null; then
    bad "$page: no heading for the link ($link)"
  fi
}

(($(wc -l < README.md) <= 150)) || bad "README.md has $(wc -l < README.md) lines, more than 150"

mapfile -t pages < <(find "$manual" -name '*.md' | sort)
n_links=0
for page in README.md "${pages[@]}" {models,topologies,strategies,traces}/README.md; do
  [[ -e $page ]] || continue
  while read -r link; do
    n_links=$((n_links + 1))
    check_link "$page" "$link"
  done < <(links_of "$page")
done

# A file of the project that a page names: `src/base/units.c`; one with a capital in its place, such as sched_X.c, is any.
while IFS=: read -r page name; do
  [[ -e $name || $name =~ [A-Z*]+[_.*/] ]] || bad "$page names $name, which is not there"
done < <(grep -oE '`(src|tests|tools|topologies|strategies|models|traces)/[^` ]+\.[a-z]+`' README.md "${pages[@]}" | tr -d '`' | sort -u)

for page in "${pages[@]}"; do
  (($(wc -l < "$page") <= 1000)) || bad "$page has more than 1,000 lines"
done
while read -r n folder; do
  ((n <= 60)) || bad "$folder has $n files, more than 60"
done < <(find "$manual" -type f -printf '%h\n' | sort | uniq -c)

for command in $("$lockstep" --help | sed -nE '/^Commands:/,/^$/ s/^  ([a-z]+) .*/\1/p'); do
  [[ -e $manual/commands/$command.md ]] || bad "lockstep $command has no page $manual/commands/$command.md"
done

# From index.md on, page by page.
declare -A seen=([$manual/index.md]=1)
queue=("$manual/index.md")
while ((${#queue[@]})); do
  page=${queue[0]}
  queue=("${queue[@]:1}")
  [[ -e $page ]] || { bad "there is no $page"; continue; }
  while read -r link; do
    next=$(realpath -m --relative-to=. -- "$(dirname -- "$page")/${link%%#*}")
    [[ $next == "$manual"/*.md && -e $next && -z ${seen[$next]-} ]] || continue
    seen[$next]=1
    queue+=("$next")
  done < <(links_of "$page")
done
for page in "${pages[@]}"; do
  [[ -n ${seen[$page]-} ]] || bad "$page is not reached from $manual/index.md"
  grep -qF "'${page#"$manual"/}'" "$manual/meson.build" || bad "$page is not in $manual/meson.build"
done

# Names of documents are in capitals; NAME and COMMAND stand for any, and doc/ is a folder of another repository.
while IFS=: read -r file document; do
  case $document in
    */NAME.md | NAME.md | */COMMAND.md | doc/*) continue ;;
  esac
  [[ -n $(find . -name "${document##*/}" -not -path './build*' -print -quit) ]] || bad "$file cites $document, which is not in the tree"
done < <(grep -rIoE '[A-Za-z0-9_./-]*\b[A-Z][A-Z_-]+\.md\b' src tests tools models topologies strategies traces README.md --exclude=manual_catches.sh | sort -u)

printf '%d pages, %d links\n' "${#pages[@]}" "$n_links"
((${#pages[@]} > 0 && n_links > 0)) || status=1
exit "$status"
