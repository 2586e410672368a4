#include "model/expert_load.h"

#include <math.h>
#include <string.h>

#include "base/suggest.h"

bool
ls_expert_load_is_in_turn (const char *load)
{
  return load && strcmp (load, "round-robin") == 0;
}

bool
ls_expert_load_is_even (const char *load)
{
  return !load || strcmp (load, "even") == 0 || ls_expert_load_is_in_turn (load);
}

LsDraw
ls_expert_draw (const LsModel *m, const LsShard *s)
{
  return (LsDraw) { m->moe.n_experts, m->moe.top_k, m->moe.groups, m->moe.top_groups, s->routes_in_turn };
}

/* --- shares ------------------------------------------------------------------------ */

static bool
read_number (const char **text, double *ret)
{
  char *end;
  *ret = g_ascii_strtod (*text, &end);
  bool ok = end != *text && isfinite (*ret) && *ret >= 0;
  *text = end;
  return ok;
}

static bool
fill_zipf (const char *text, uint32_t n, double *w)
{
  double exponent;
  if (!read_number (&text, &exponent) || *text != '\0' || exponent > 16)
    return false;
  for (uint32_t e = 0; e < n; e++)
    w[e] = pow (e + 1, -exponent);
  return true;
}

static bool
fill_lognormal (const char *text, uint32_t n, double *w)
{
  double sigma;
  if (!read_number (&text, &sigma) || *text != ':' || sigma > 16)
    return false;
  char *end;
  uint64_t state = g_ascii_strtoull (++text, &end, 10);
  if (!g_ascii_isdigit (*text) || *end != '\0')
    return false;
  for (uint32_t e = 0; e < n; e++)
    w[e] = exp (sigma * ls_draw_normal (&state));
  return true;
}

static bool
fill_list (const char *text, uint32_t n, double *w)
{
  g_autoptr (GArray) list = g_array_new (FALSE, FALSE, sizeof (double));
  for (;; text++) {
    double x;
    if (!read_number (&text, &x) || x > 1e12)
      return false;
    g_array_append_val (list, x);
    if (*text != ',')
      break;
  }
  for (uint32_t e = 0; e < n; e++)
    w[e] = g_array_index (list, double, e % list->len);
  return *text == '\0' && list->len <= n;
}

static double
sum_of (const double *w, uint32_t n)
{
  double sum = 0;
  for (uint32_t e = 0; e < n; e++)
    sum += w[e];
  return sum;
}

/* Shares above `most` are cut to it; the others grow in proportion, until all fit. */
static bool
limit (double *w, uint32_t n, double most)
{
  g_autofree bool *is_full = g_new0 (bool, n);
  for (uint32_t n_full = 0, before = UINT32_MAX; n_full != before;) {
    double others = 0;
    before = n_full;
    for (uint32_t e = 0; e < n; e++)
      others += is_full[e] ? 0 : w[e];
    if (others <= 0)
      return most * n_full >= 1 - 1e-9;
    for (uint32_t e = 0; e < n; e++)
      w[e] = is_full[e] ? most : w[e] * (1 - most * before) / others;
    for (uint32_t e = 0; e < n; e++)
      if (!is_full[e] && w[e] > most) {
        is_full[e] = true;
        n_full++;
      }
  }
  return true;
}

double *
ls_expert_shares (const char *load, const LsModel *m, char **ret_why)
{
  uint32_t n = m->moe.n_experts;
  *ret_why = NULL;
  if (ls_expert_load_is_even (load) || n == 0)
    return NULL;
  g_autofree double *w = g_new0 (double, n);
  bool is_read = g_str_has_prefix (load, "zipf:") ? fill_zipf (load + strlen ("zipf:"), n, w)
      : g_str_has_prefix (load, "lognormal:")     ? fill_lognormal (load + strlen ("lognormal:"), n, w)
                                                  : fill_list (load, n, w);
  double sum = is_read ? sum_of (w, n) : 0;
  if (!is_read) {
    static const char *const words[] = { "even", "round-robin", "zipf:S", "lognormal:SIGMA:SEED", NULL };
    g_autofree char *hint = ls_did_you_mean (load, words);
    *ret_why = g_strdup_printf (
        "expected even, round-robin, zipf:S, lognormal:SIGMA:SEED, or up to %u weights a,b,c...; "
        "got \"%s\"%s",
        n, load, hint);
  } else if (!isfinite (sum) || sum <= 0)
    *ret_why = g_strdup_printf ("expected weights that add up to more than 0; got \"%s\"", load);
  if (*ret_why)
    return NULL;
  for (uint32_t e = 0; e < n; e++)
    w[e] /= sum;
  if (!limit (w, n, 1.0 / m->moe.top_k)) {
    *ret_why = g_strdup_printf (
        "expected weights above 0 for %u experts at least, as a token goes to as many; got \"%s\"",
        m->moe.top_k, load);
    return NULL;
  }
  return g_steal_pointer (&w);
}

/* --- tokens --------------------------------------------------------------------------- */

/* Tokens of all ranks that send to the same experts. */
static uint64_t
tokens_of_group (const LsShard *s)
{
  uint64_t local = (uint64_t) s->seq / MAX (1, s->cp) * s->micro_batch / (s->sp ? s->tp : 1);
  return local * MAX (1, s->ep) * MAX (1, s->etp);
}

typedef struct {
  double remainder;
  uint32_t expert;
} Remainder;

static int
by_remainder (gconstpointer a, gconstpointer b)
{
  const Remainder *x = a, *y = b;
  if (x->remainder != y->remainder)
    return x->remainder > y->remainder ? -1 : 1;
  return x->expert < y->expert ? -1 : x->expert > y->expert;
}

/* Whole numbers in proportion to the shares that add up to n; none is above `most`, if n
 * can be had so. */
static void
share_out (const double *share, uint32_t n_experts, uint64_t n, uint64_t most, uint64_t *tokens)
{
  g_autofree Remainder *r = g_new (Remainder, n_experts);
  uint64_t left = n;
  for (uint32_t e = 0; e < n_experts; e++) {
    double exact = (share ? share[e] : 1.0 / n_experts) * (double) n;
    tokens[e] = share ? MIN ((uint64_t) exact, most) : n / n_experts;
    tokens[e] = MIN (tokens[e], left);
    left -= tokens[e];
    r[e] = (Remainder) { share ? exact - (double) tokens[e] : 0, e };
  }
  qsort (r, n_experts, sizeof *r, by_remainder);
  for (uint32_t i = 0; left > 0; i = (i + 1) % n_experts)
    if (tokens[r[i].expert] < most) {
      tokens[r[i].expert]++;
      left--;
    }
}

/* What an expert takes of n assignments at most. */
static uint64_t
capacity_of (const LsModel *m, const LsShard *s, uint64_t n)
{
  double mean = (double) n / m->moe.n_experts;
  return s->expert_capacity > 0 ? (uint64_t) ceil (s->expert_capacity * mean) : UINT64_MAX;
}

void
ls_expert_tokens (const LsModel *m, const LsShard *s, uint64_t *ret_kept, uint64_t *ret_sent)
{
  uint64_t tokens = tokens_of_group (s), n = tokens * m->moe.top_k, limit = capacity_of (m, s, n);
  g_autofree uint64_t *sent = g_new (uint64_t, m->moe.n_experts);
  share_out (s->expert_share, m->moe.n_experts, n, tokens, sent);
  for (uint32_t e = 0; e < m->moe.n_experts; e++) {
    if (ret_sent)
      ret_sent[e] = sent[e];
    if (ret_kept)
      ret_kept[e] = MIN (sent[e], limit);
  }
}

static uint64_t
most_of (const uint64_t *x, uint32_t n)
{
  uint64_t most = 0;
  for (uint32_t i = 0; i < n; i++)
    most = MAX (most, x[i]);
  return most;
}

void
ls_expert_rows (const LsModel *m, const LsShard *s, uint64_t *ret_brought, uint64_t *ret_computed)
{
  uint32_t per_rank = m->moe.n_experts / MAX (1, s->ep);
  uint64_t limit = capacity_of (m, s, tokens_of_group (s) * m->moe.top_k);
  ls_expert_tokens (m, s, ret_brought, NULL);
  for (uint32_t e = 0; e < m->moe.n_experts && s->expert_padding == LS_EXPERT_PADDING_CAPACITY; e++)
    ret_brought[e] = limit;
  for (uint32_t first = 0; first < m->moe.n_experts; first += per_rank) {
    uint64_t fullest = most_of (&ret_brought[first], per_rank);
    for (uint32_t e = first; e < first + per_rank; e++)
      ret_computed[e] = s->expert_padding == LS_EXPERT_PADDING_FULLEST ? fullest : ret_brought[e];
  }
}

void
ls_expert_rows_of_ranks (const LsModel *m, const LsShard *s, uint64_t *ret_rows)
{
  uint32_t ep = MAX (1, s->ep), per_rank = m->moe.n_experts / ep;
  g_autofree uint64_t *brought = g_new (uint64_t, m->moe.n_experts),
                      *computed = g_new (uint64_t, m->moe.n_experts);
  ls_expert_rows (m, s, brought, computed);
  for (uint32_t r = 0; r < ep; r++) {
    ret_rows[r] = 0;
    for (uint32_t e = 0; e < per_rank; e++)
      ret_rows[r] += brought[r * per_rank + e];
  }
}

static double
sum_of_rows (const uint64_t *x, uint32_t n)
{
  double sum = 0;
  for (uint32_t i = 0; i < n; i++)
    sum += (double) x[i];
  return sum;
}

double
ls_expert_kept_share (const LsModel *m, const LsShard *s)
{
  g_autofree uint64_t *kept = g_new (uint64_t, m->moe.n_experts), *sent = g_new (uint64_t, m->moe.n_experts);
  ls_expert_tokens (m, s, kept, sent);
  double n_sent = sum_of_rows (sent, m->moe.n_experts);
  return n_sent > 0 ? sum_of_rows (kept, m->moe.n_experts) / n_sent : 1;
}

double
ls_expert_blank_share (const LsModel *m, const LsShard *s)
{
  g_autofree uint64_t *brought = g_new (uint64_t, m->moe.n_experts),
                      *computed = g_new (uint64_t, m->moe.n_experts),
                      *kept = g_new (uint64_t, m->moe.n_experts), *sent = g_new (uint64_t, m->moe.n_experts);
  ls_expert_tokens (m, s, kept, sent);
  ls_expert_rows (m, s, brought, computed);
  double n_sent = sum_of_rows (sent, m->moe.n_experts);
  return n_sent > 0
      ? (sum_of_rows (computed, m->moe.n_experts) - sum_of_rows (kept, m->moe.n_experts)) / n_sent
      : 0;
}
