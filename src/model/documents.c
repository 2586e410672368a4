#include "model/documents.h"

#include <math.h>
#include <string.h>

#include <lockstep/units.h>

#include "base/draw.h"

void
ls_documents_apply (const LsDocuments *d, uint32_t layer_kind, uint32_t cp_rank, LsKernel *kernel)
{
  double keys = d->of_rank ? d->of_rank[cp_rank] : d->pairs;
  double windowed = layer_kind & LS_LAYER_WINDOWED ? d->windowed / d->pairs : 1;
  kernel->n = MAX (1, (uint64_t) ((double) kernel->n * keys));
  kernel->flops *= keys * windowed;
}

double
ls_documents_flops_between (const LsModel *m, const LsDocuments *d, uint32_t seq, double n_sequences,
                            bool causal)
{
  double s = seq, widths = 0;
  for (uint32_t i = 0; i < ls_model_n_all_layers (m); i++) {
    uint32_t kind = ls_model_layer_kind (m, i);
    double left = kind & LS_LAYER_WINDOWED ? d->windowed : d->pairs;
    widths += ls_layer_has_attention (kind)
        ? 2 * ls_model_attention_pairs (m, kind, seq) * (1 - left) * ls_model_attention_width (m, kind)
        : 0;
  }
  return n_sequences * (causal ? 6 : 12) * s * s * widths;
}

/* --- how long they are ----------------------------------------------------------------- */

typedef enum { UNIFORM, LOGNORMAL, COUNTED } Kind;

struct LsLengths {
  gatomicrefcount n_refs;
  Kind kind;
  double median, sigma;
  uint32_t least, most;
  guint n;              /* COUNTED */
  LsLengthCount *below; /* [n] its count: of this length and all before */
};

static LsLengths *
lengths_new (Kind kind)
{
  LsLengths *x = g_new0 (LsLengths, 1);
  g_atomic_ref_count_init (&x->n_refs);
  x->kind = kind;
  return x;
}

LsLengths *
ls_lengths_ref (LsLengths *lengths)
{
  if (lengths)
    g_atomic_ref_count_inc (&lengths->n_refs);
  return lengths;
}

void
ls_lengths_unref (LsLengths *lengths)
{
  if (!lengths || !g_atomic_ref_count_dec (&lengths->n_refs))
    return;
  g_free (lengths->below);
  g_free (lengths);
}

static bool
read_length (const char *text, uint32_t *ret)
{
  uint64_t n;
  if (!ls_parse_count (text, &n, NULL) || n < 1 || n > LS_LENGTH_MAX)
    return false;
  *ret = (uint32_t) n;
  return true;
}

static LsLengths *
read_uniform (const char *least, const char *most)
{
  g_autoptr (LsLengths) x = lengths_new (UNIFORM);
  bool ok = read_length (least, &x->least) && read_length (most, &x->most) && x->least <= x->most;
  return ok ? g_steal_pointer (&x) : NULL;
}

#define MAX_SIGMA 8

/* parts: behind the word. */
static LsLengths *
read_lognormal (char *const *parts, guint n)
{
  g_autoptr (LsLengths) x = lengths_new (LOGNORMAL);
  uint32_t median;
  char *end;
  if (n < 2 || n > 3 || !read_length (parts[0], &median))
    return NULL;
  x->median = median;
  x->sigma = g_ascii_strtod (parts[1], &end);
  x->most = LS_LENGTH_MAX;
  bool is_number = g_ascii_isdigit (parts[1][0]) && *end == '\0' && x->sigma <= MAX_SIGMA;
  bool ok = is_number && (n < 3 || (read_length (parts[2], &x->most) && x->most >= median));
  return ok ? g_steal_pointer (&x) : NULL;
}

LsLengths *
ls_lengths_parse (const char *text, char **ret_why)
{
  g_auto (GStrv) parts = g_strsplit (text, ":", -1);
  guint n = g_strv_length (parts);
  LsLengths *x = NULL;
  *ret_why = NULL;
  if (n == 2 && strcmp (parts[0], "fixed") == 0)
    x = read_uniform (parts[1], parts[1]);
  else if (n == 3 && strcmp (parts[0], "uniform") == 0)
    x = read_uniform (parts[1], parts[2]);
  else if (n > 0 && strcmp (parts[0], "lognormal") == 0)
    x = read_lognormal (parts + 1, n - 1);
  if (!x)
    *ret_why
        = g_strdup_printf ("expected fixed:N, uniform:A:B, lognormal:MEDIAN:SIGMA[:MAX] (tokens; SIGMA up "
                           "to %d) or file:PATH; got \"%s\"",
                           MAX_SIGMA, text);
  return x;
}

LsLengths *
ls_lengths_new_counted (const LsLengthCount *counts, guint n, char **ret_why)
{
  g_autoptr (LsLengths) x = lengths_new (COUNTED);
  double sum = 0;
  *ret_why = NULL;
  x->n = n;
  x->below = g_new (LsLengthCount, n);
  for (guint i = 0; i < n; i++) {
    bool ok = counts[i].length >= 1 && counts[i].length <= LS_LENGTH_MAX && counts[i].count >= 0;
    sum = ok ? sum + counts[i].count : NAN;
    x->below[i] = (LsLengthCount) { counts[i].length, sum };
  }
  if (isfinite (sum) && sum > 0)
    return g_steal_pointer (&x);
  *ret_why = g_strdup_printf ("expected lengths from 1 to %u, and counts that add up to more than 0",
                              LS_LENGTH_MAX);
  return NULL;
}

/* The first of which no more than that is below. */
static uint32_t
find_counted (const LsLengths *x, double count)
{
  guint low = 0, high = x->n - 1;
  while (low < high) {
    guint middle = (low + high) / 2;
    if (x->below[middle].count >= count)
      high = middle;
    else
      low = middle + 1;
  }
  return x->below[low].length;
}

uint32_t
ls_lengths_draw (const LsLengths *x, uint64_t *state)
{
  if (x->kind == LOGNORMAL) {
    double length = rint (x->median * exp (x->sigma * ls_draw_normal (state)));
    return (uint32_t) CLAMP (length, 1, x->most);
  }
  double u = ls_draw_uniform (state);
  if (x->kind == COUNTED)
    return find_counted (x, u * x->below[x->n - 1].count);
  return x->least - 1 + (uint32_t) ceil (u * ((double) x->most - x->least + 1));
}
