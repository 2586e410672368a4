#include "base/draw.h"

#include <glib.h>
#include <math.h>

#include "base/gcd.h"

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

/* Starts are the multiples of what k and N have in common. */
static double
parts_in_turn (const LsDraw *d, uint32_t n_parts)
{
  uint64_t n = d->n_items, k = d->n_drawn, step = ls_gcd (d->n_items, d->n_drawn), hit = 0;
  for (uint64_t start = 0; start < n; start += step) {
    uint64_t first = start * n_parts / n, last = (start + k - 1) * n_parts / n;
    hit += MIN (last - first + 1, n_parts);
  }
  return (double) hit * (double) step / (double) n;
}

double
ls_draw_parts (const LsDraw *d, uint32_t n_parts)
{
  double part = (double) d->n_items / n_parts, hit = 0;
  if (d->in_turn)
    return parts_in_turn (d, n_parts);
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

/* ---- the quantile ---- */

/* Coefficients of powers, from the 0th, of Wichura's numerators and denominators. */
typedef struct {
  double above[8], below[8];
} Rational;

static const Rational near_the_middle = {
  { 3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
    4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3 },
  { 1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
    2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4, 5.2264952788528545610e+3 },
};
static const Rational towards_an_end = {
  { 1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
    1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2,
    7.74545014278341407640e-4 },
  { 1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
    1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
    1.05075007164441684324e-9 },
};
static const Rational at_an_end = {
  { 6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
    2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5,
    2.01033439929228813265e-7 },
  { 1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
    7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
    2.04426310338993978564e-15 },
};

static double
rational (const Rational *f, double x)
{
  double above = f->above[7], below = f->below[7];
  for (int i = 6; i >= 0; i--) {
    above = x * above + f->above[i];
    below = x * below + f->below[i];
  }
  return above / below;
}

double
ls_normal_quantile (double p)
{
  double from_middle = p - 0.5;
  if (fabs (from_middle) <= 0.425)
    return from_middle * rational (&near_the_middle, 0.180625 - from_middle * from_middle);
  double r = sqrt (-log (p < 0.5 ? p : 1 - p));
  double x = r <= 5 ? rational (&towards_an_end, r - 1.6) : rational (&at_an_end, r - 5);
  return p < 0.5 ? -x : x;
}
