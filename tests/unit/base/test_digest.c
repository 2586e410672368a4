/* Pins what is drawn and digested to the value, the same on every machine. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "base/digest.h"
#include "base/draw.h"

/* Pins: the digest values themselves (published FNV-1a test vectors), so that
 * digests of runs stay comparable across versions and machines. */

static uint64_t
digest_of (const char *text)
{
  LsDigest d;
  ls_digest_init (&d);
  ls_digest_bytes (&d, text, strlen (text));
  return ls_digest_get (&d);
}

/* http://www.isthe.com/chongo/src/fnv/test_fnv.c, fnv1a_64_vector */
static void
known_vectors (void)
{
  LS_CHECK (digest_of ("") == UINT64_C (0xcbf29ce484222325));
  LS_CHECK (digest_of ("a") == UINT64_C (0xaf63dc4c8601ec8c));
  LS_CHECK (digest_of ("foobar") == UINT64_C (0x85944171f73967e8));
}

static void
words_are_little_endian_bytes (void)
{
  LsDigest word, bytes;
  ls_digest_init (&word);
  ls_digest_init (&bytes);
  ls_digest_u64 (&word, UINT64_C (0x0807060504030201));
  ls_digest_bytes (&bytes, "\1\2\3\4\5\6\7\10", 8);
  LS_CHECK (ls_digest_get (&word) == ls_digest_get (&bytes));
}

static void
order_matters (void)
{
  LsDigest ab, ba;
  ls_digest_init (&ab);
  ls_digest_init (&ba);
  ls_digest_u64 (&ab, 1);
  ls_digest_u64 (&ab, 2);
  ls_digest_u64 (&ba, 2);
  ls_digest_u64 (&ba, 1);
  LS_CHECK (ls_digest_get (&ab) != ls_digest_get (&ba));
}

/* Pins how many parts a draw hits: worked examples, and every draw of small numbers counted one by one; the
 * normal quantile: known values, and that the distribution function leads back. */

static void
worked_examples (void)
{
  LsDraw any = { .n_items = 256, .n_drawn = 8 }, four = { 256, 8, 8, 4 };
  LS_CHECK_NEAR (ls_draw_parts (&any, 8), 5.2947, 1e-4);
  LS_CHECK_NEAR (ls_draw_parts (&four, 8), 3.6305, 1e-3);
  LS_CHECK_NEAR (ls_draw_parts (&any, 256), 8, 1e-12);
  LS_CHECK_NEAR (ls_draw_parts (&any, 1), 1, 1e-12);
  LS_CHECK_NEAR (ls_draw_parts (&four, 256), 8, 1e-12);
}

/* Tokens of which each has the k items behind those of the one before. */
static void
draws_in_turn_are_counted (void)
{
  static const LsDraw draws[] = {
    { .n_items = 256, .n_drawn = 8 }, { 12, 3, 0, 0 }, { 12, 5, 3, 2 }, { 10, 10, 0, 0 }, { 9, 6, 0, 0 }
  };
  for (guint i = 0; i < G_N_ELEMENTS (draws); i++)
    for (uint32_t n_parts = 1; n_parts <= draws[i].n_items; n_parts++) {
      LsDraw d = draws[i];
      uint32_t part = d.n_items / n_parts, hit = 0, n_tokens = 3 * d.n_items;
      if (part * n_parts != d.n_items)
        continue;
      for (uint32_t token = 0; token < n_tokens; token++) {
        g_autofree bool *is_hit = g_new0 (bool, n_parts);
        for (uint32_t k = 0; k < d.n_drawn; k++)
          is_hit[(token * d.n_drawn + k) % d.n_items / part] = true;
        for (uint32_t p = 0; p < n_parts; p++)
          hit += is_hit[p];
      }
      d.in_turn = true;
      LS_CHECK_NEAR (ls_draw_parts (&d, n_parts), (double) hit / n_tokens, 1e-12);
    }
}

static uint32_t
n_bits (uint32_t set)
{
  return (uint32_t) __builtin_popcount (set);
}

/* Sets of groups all alike likely, then sets of items of them. */
static double
counted (const LsDraw *d, uint32_t n_parts)
{
  uint32_t n_groups = MAX (1, d->n_groups), chosen = d->n_groups ? d->n_groups_drawn : 1;
  uint32_t group = d->n_items / n_groups, part = d->n_items / n_parts;
  double sum = 0, n = 0;
  for (uint32_t groups = 0; groups < 1u << n_groups; groups++) {
    double hit = 0, draws = 0;
    if (n_bits (groups) != chosen)
      continue;
    for (uint32_t items = 0; items < 1u << d->n_items; items++) {
      uint32_t parts = 0;
      bool is_legal = n_bits (items) == d->n_drawn;
      for (uint32_t i = 0; i < d->n_items && is_legal; i++)
        if (items >> i & 1) {
          is_legal = groups >> i / group & 1;
          parts |= 1u << i / part;
        }
      hit += is_legal ? n_bits (parts) : 0;
      draws += is_legal;
    }
    sum += hit / draws;
    n++;
  }
  return sum / n;
}

static void
every_draw_is_counted (void)
{
  static const LsDraw draws[] = { { 12, 3, 0, 0 }, { 12, 3, 4, 2 }, { 12, 4, 3, 2 },
                                  { 12, 2, 2, 1 }, { 12, 5, 6, 3 }, { 12, 1, 12, 4 } };
  static const uint32_t parts[] = { 1, 2, 3, 4, 6, 12 };
  for (guint i = 0; i < G_N_ELEMENTS (draws); i++)
    for (guint p = 0; p < G_N_ELEMENTS (parts); p++)
      LS_CHECK_NEAR (ls_draw_parts (&draws[i], parts[p]), counted (&draws[i], parts[p]), 1e-9);
}

/* The two examples of the algorithm's paper, and 97.5 % as tables have it. */
static void
quantiles_are_known (void)
{
  LS_CHECK_NEAR (ls_normal_quantile (0.25), -0.6744897501960817, 1e-16);
  LS_CHECK_NEAR (ls_normal_quantile (0.001), -3.090232306167814, 1e-15);
  LS_CHECK_NEAR (ls_normal_quantile (0.975), 1.959963984540054, 1e-15);
  LS_CHECK_NEAR (ls_normal_quantile (1e-20), -9.262340089798408, 1e-14);
  LS_CHECK_NEAR (ls_normal_quantile (0.5), 0, 0);
}

static void
the_distribution_leads_back (void)
{
  for (double p = 1e-300; p < 0.5; p *= 1.5) {
    double back = erfc (-ls_normal_quantile (p) / sqrt (2)) / 2; /* near 1e-300 a digit of x is 1e3 of p */
    LS_CHECK_NEAR (back / p, 1, 1e-12);
    if (p > 1e-15)
      LS_CHECK_NEAR (ls_normal_quantile (1 - p), -ls_normal_quantile (p), 1e-16 / p);
  }
}

LS_TEST_SUITE (LS_TEST (known_vectors), LS_TEST (words_are_little_endian_bytes), LS_TEST (order_matters),
               LS_TEST (worked_examples), LS_TEST (draws_in_turn_are_counted),
               LS_TEST (every_draw_is_counted), LS_TEST (quantiles_are_known),
               LS_TEST (the_distribution_leads_back))
