# Draws mutants from sites.tsv: lines with places in an order that the seed decides, one place of each.
# A longer draw begins with the shorter one. Usage: awk -v seed=S -v mutants=N -f choose.awk sites.tsv

BEGIN {
  FS = OFS = "\t"
  state = (seed * 48271 + 11) % 2147483647
  for (i = 0; i < 10; i++)
    draw()
}

# Park and Miller's generator: every awk draws the same.
function draw() { return state = state * 16807 % 2147483647 }

{
  line = $1 ":" $2
  if (line != last)
    first[++n_lines] = NR
  last = line
  site[NR] = $0
}

END {
  first[n_lines + 1] = NR + 1
  for (i = 1; i <= n_lines; i++)
    order[i] = i
  for (i = 1; i <= n_lines && i <= mutants; i++) {
    j = i + draw() % (n_lines - i + 1)
    chosen = order[j]
    order[j] = order[i]
    n_sites = first[chosen + 1] - first[chosen]
    print i, site[first[chosen] + draw() % n_sites]
  }
}
