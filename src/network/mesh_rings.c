#include "network/mesh_rings.h"

#include <stdbool.h>
#include <string.h>

#define MAX_GPUS  16
#define MAX_RINGS 32
/* Bounds the search, to some 3 ms. Any GPUs of the hybrid cube take fewer than 1,000, 16 that
 * are all joined to one another 98,000. */
#define MAX_STEPS 100000

typedef struct {
  uint32_t n;                        /* GPUs */
  uint32_t left[MAX_GPUS][MAX_GPUS]; /* links that no ring has */
  uint32_t n_rings, n_best, n_steps;
  uint32_t n_most; /* more there cannot be */
  uint8_t ring[MAX_RINGS + 1][MAX_GPUS], best[MAX_RINGS][MAX_GPUS];
} Search;

/* Each ring takes a link into and out of every GPU. */
static uint32_t
at_most_more (const Search *s)
{
  uint32_t most = MAX_RINGS - s->n_rings;
  for (uint32_t i = 0; i < s->n; i++) {
    uint32_t out = 0, in = 0;
    for (uint32_t j = 0; j < s->n; j++) {
      out += s->left[i][j];
      in += s->left[j][i];
    }
    most = MIN (most, MIN (out, in));
  }
  return most;
}

static void extend (Search *s, uint32_t depth, uint32_t visited);

static void
next_ring (Search *s)
{
  if (s->n_rings > s->n_best) {
    s->n_best = s->n_rings;
    memcpy (s->best, s->ring, sizeof s->best);
  }
  if (s->n_rings + at_most_more (s) > s->n_best)
    extend (s, 1, 1);
}

/* Rings come in ascending order: any other is the same set. */
static bool
is_in_order (const Search *s, uint32_t depth)
{
  return s->n_rings == 0 || memcmp (s->ring[s->n_rings], s->ring[s->n_rings - 1], depth) >= 0;
}

/* Ring n_rings has `depth` GPUs, of which 0 is the first. */
static void
extend (Search *s, uint32_t depth, uint32_t visited)
{
  uint8_t *ring = s->ring[s->n_rings];
  uint32_t last = ring[depth - 1];
  if (depth == s->n) {
    if (s->left[last][0] == 0)
      return;
    s->left[last][0]--;
    s->n_rings++;
    next_ring (s);
    s->n_rings--;
    s->left[last][0]++;
    return;
  }
  for (uint32_t to = 1; to < s->n && s->n_best < s->n_most && s->n_steps < MAX_STEPS; to++) {
    ring[depth] = (uint8_t) to;
    if (s->left[last][to] == 0 || (visited & 1u << to) || !is_in_order (s, depth + 1))
      continue;
    s->n_steps++;
    s->left[last][to]--;
    extend (s, depth + 1, visited | 1u << to);
    s->left[last][to]++;
  }
}

LsMeshRings
ls_mesh_rings (const uint32_t *links, uint32_t n_gpus, LsArena *arena)
{
  LsMeshRings rings = { .n_gpus = n_gpus };
  if (n_gpus < 2 || n_gpus > MAX_GPUS)
    return rings;
  Search s = { .n = n_gpus };
  for (uint32_t i = 0; i < n_gpus * n_gpus; i++)
    s.left[i / n_gpus][i % n_gpus] = links[i];
  s.n_most = at_most_more (&s);
  next_ring (&s);
  rings.n = s.n_best;
  rings.gpu_at = ls_arena_new_array (arena, uint32_t, rings.n * n_gpus);
  rings.place_of = ls_arena_new_array (arena, uint32_t, rings.n * n_gpus);
  for (uint32_t r = 0; r < rings.n; r++)
    for (uint32_t place = 0; place < n_gpus; place++) {
      rings.gpu_at[r * n_gpus + place] = s.best[r][place];
      rings.place_of[r * n_gpus + s.best[r][place]] = place;
    }
  return rings;
}
