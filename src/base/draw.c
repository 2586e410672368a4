#include "base/draw.h"

#include <glib.h>
#include <math.h>
#include <stdbool.h>

static double
choose (uint32_t n, uint32_t k)
{
  double ways = 1;
  if (k > n)
    return 0;
  for (uint32_t i = 0; i < MIN (k, n - k); i++)
    ways *= (double) (n - i) / (double) (i + 1);
  return ways;
}

/* That none of m is among those drawn, of M. */
static double
missed (const LsDraw *d, double all, double m)
{
  double q = 1;
  for (uint32_t i = 0; i < d->n_drawn; i++)
    q *= MAX (0, all - m - i) / (all - i);
  return q;
}

/* Items from..to: whole groups, and pieces of the groups at the two ends. */
typedef struct {
  uint32_t n_whole;
  double piece[2]; /* items; 0: none */
} Cover;

static Cover
cover_of (double group, double from, double to)
{
  Cover c = { 0 };
  uint32_t first = (uint32_t) (from / group), last = (uint32_t) ((to - 0.5) / group);
  if (first == last) {
    bool is_whole = to - from >= group;
    return (Cover) { is_whole, { is_whole ? 0 : to - from, 0 } };
  }
  c.piece[0] = (first + 1) * group - from;
  c.piece[1] = to - last * group;
  c.n_whole = last - first - 1;
  for (int i = 0; i < 2; i++)
    if (c.piece[i] >= group) {
      c.n_whole++;
      c.piece[i] = 0;
    }
  return c;
}

/* E (q) of a part, over the groups that are drawn. */
static double
missed_in_groups (const LsDraw *d, double group, const Cover *c)
{
  uint32_t n_pieces = (c->piece[0] > 0) + (c->piece[1] > 0), n_rest = d->n_groups - c->n_whole - n_pieces;
  double all = group * d->n_groups_drawn, q = 0;
  for (uint32_t whole = 0; whole <= MIN (c->n_whole, d->n_groups_drawn); whole++)
    for (uint32_t bits = 0; bits < 4; bits++) {
      uint32_t a = bits & 1, b = bits >> 1, n = whole + a + b;
      if ((a && c->piece[0] <= 0) || (b && c->piece[1] <= 0) || n > d->n_groups_drawn)
        continue;
      double chance = choose (c->n_whole, whole) * choose (n_rest, d->n_groups_drawn - n)
          / choose (d->n_groups, d->n_groups_drawn);
      q += chance * missed (d, all, whole * group + a * c->piece[0] + b * c->piece[1]);
    }
  return q;
}

double
ls_draw_parts (const LsDraw *d, uint32_t n_parts)
{
  double part = (double) d->n_items / n_parts, hit = 0;
  if (d->n_groups == 0)
    return n_parts * (1 - missed (d, d->n_items, part));
  double group = (double) d->n_items / d->n_groups;
  for (uint32_t i = 0; i < n_parts; i++) {
    Cover c = cover_of (group, i * part, (i + 1) * part);
    hit += 1 - missed_in_groups (d, group, &c);
  }
  return hit;
}

uint64_t
ls_draw_bits (uint64_t *state)
{
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double
ls_draw_uniform (uint64_t *state)
{
  return ((double) (ls_draw_bits (state) >> 11) + 1) / 0x1p53;
}

double
ls_draw_normal (uint64_t *state)
{
  double radius = sqrt (-2 * log (ls_draw_uniform (state)));
  return radius * cos (2 * G_PI * ls_draw_uniform (state));
}
