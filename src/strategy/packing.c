#include "strategy/packing.h"

#include <string.h>

#include <lockstep/error.h>

#include "base/draw.h"
#include "strategy/shard.h"

/* Pairs of a sequence by kind, over those of a whole one; behind these, those of each cp rank. */
enum { PAIRS, WINDOWED, OF_RANK };

typedef struct {
  const LsStrategy *s;
  const LsModel *m;
  uint32_t n_ranks; /* cp, where it cuts sequences; else 0 */
  guint width;      /* OF_RANK + n_ranks                   */
  double *sequence; /* [global_batch * width] as drawn     */
  uint32_t *order;  /* [global_batch] as dealt             */
  double n_documents;
  uint32_t n_longer; /* than a sequence */
} Packer;

/* --- what is in a sequence ---------------------------------------------------------------- */

static double
square (double x)
{
  return x * x;
}

/* Pairs of the queries from a to b of a sequence, in a document that begins at `from` and ends at `to`. */
static double
pairs_between (double a, double b, double from, double to)
{
  double first = MAX (a, from) - from, last = MIN (b, to) - from;
  return first < last ? (square (last) - square (first)) / 2 : 0;
}

/* A rank has part i of n, or, balanced, parts i and 2 n - 1 - i of 2 n. */
static double
pairs_of_rank (const Packer *p, uint32_t rank, double from, double to)
{
  double n = p->n_ranks, part = p->s->seq / (p->s->mp.cp_balance ? 2 * n : n), other = 2 * n - 1 - rank;
  double pairs = pairs_between (rank * part, (rank + 1) * part, from, to);
  return p->s->mp.cp_balance ? pairs + pairs_between (other * part, (other + 1) * part, from, to) : pairs;
}

static double
window_share (const Packer *p, uint32_t length)
{
  return 2 * ls_model_attention_pairs (p->m, LS_LAYER_WINDOWED, length);
}

static void
add_document (const Packer *p, uint32_t from, uint32_t length, double *sequence)
{
  sequence[PAIRS] += square (length);
  sequence[WINDOWED] += square (length) * window_share (p, length);
  for (uint32_t r = 0; r < p->n_ranks; r++)
    sequence[OF_RANK + r] += pairs_of_rank (p, r, from, from + length);
}

static void
as_shares (const Packer *p, double *sequence)
{
  uint32_t seq = p->s->seq;
  sequence[PAIRS] /= square (seq);
  sequence[WINDOWED] /= square (seq) * window_share (p, seq);
  for (uint32_t r = 0; r < p->n_ranks; r++)
    sequence[OF_RANK + r] /= pairs_of_rank (p, r, 0, seq);
}

#define MAX_DOCUMENTS 50e6

static gboolean
draw_sequences (Packer *p, uint64_t *state, GError **error)
{
  uint32_t left = 0; /* of the document that goes on */
  for (uint32_t i = 0; i < p->s->global_batch; i++) {
    double *sequence = p->sequence + (size_t) i * p->width;
    for (uint32_t at = 0, length; at < p->s->seq && p->n_documents <= MAX_DOCUMENTS; at += length) {
      if (left == 0) {
        left = ls_lengths_draw (p->s->docs.drawn, state);
        p->n_longer += left > p->s->seq;
      }
      length = MIN (left, p->s->seq - at);
      left -= length;
      add_document (p, at, length, sequence);
      p->n_documents++;
    }
    as_shares (p, sequence);
  }
  if (p->n_documents <= MAX_DOCUMENTS)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
               "lengths: %u sequences of %u tokens hold more than %.3g documents of \"%s\"",
               p->s->global_batch, p->s->seq, MAX_DOCUMENTS, p->s->docs.lengths);
  return FALSE;
}

/* --- which comes when ---------------------------------------------------------------------- */

static void
shuffle (Packer *p, uint64_t *state)
{
  for (uint32_t i = p->s->global_batch; i > 1; i--) {
    uint32_t k = (uint32_t) (ls_draw_bits (state) % i), other = p->order[i - 1];
    p->order[i - 1] = p->order[k];
    p->order[k] = other;
  }
}

static int
by_pairs (gconstpointer a, gconstpointer b, gpointer data)
{
  const Packer *p = data;
  uint32_t i = *(const uint32_t *) a, k = *(const uint32_t *) b;
  double x = p->sequence[(size_t) i * p->width + PAIRS], y = p->sequence[(size_t) k * p->width + PAIRS];
  return x != y ? (x > y ? -1 : 1) : i < k ? -1 : i > k;
}

static void
put_in_order (Packer *p, uint64_t *state)
{
  for (uint32_t i = 0; i < p->s->global_batch; i++)
    p->order[i] = i;
  shuffle (p, state);
  if (p->s->docs.balance == LS_LENGTHS_SORTED)
    g_qsort_with_data (p->order, (gint) p->s->global_batch, sizeof *p->order, by_pairs, p);
}

/* Of all micro-batches, in the order in which they are dealt: where micro-batch mb of a copy is. */
static size_t
place_of (const LsStrategy *s, uint32_t copy, uint32_t mb)
{
  bool is_back = s->docs.balance == LS_LENGTHS_SORTED && mb % 2 == 1;
  return (size_t) mb * s->dp + (is_back ? s->dp - 1 - copy : copy);
}

/* --- micro-batches -------------------------------------------------------------------------- */

/* The mean of n sequences from this place on; values: [width]. */
static void
mean_of (const Packer *p, size_t place, uint32_t n, double *values)
{
  memset (values, 0, p->width * sizeof *values);
  for (uint32_t i = 0; i < n; i++)
    for (guint k = 0; k < p->width; k++)
      values[k] += p->sequence[(size_t) p->order[place + i] * p->width + k];
  for (guint k = 0; k < p->width; k++)
    values[k] /= n;
}

static LsDocuments
documents_of (const Packer *p, const double *values)
{
  return (LsDocuments) { values[PAIRS], values[WINDOWED], p->n_ranks > 0 ? values + OF_RANK : NULL };
}

/* Keys are the values, in x. */
typedef struct {
  const Packer *p;
  LsPacking *x;
  GHashTable *known;
} Numbering;

/* The number of the documents of n sequences from this place on. */
static uint32_t
number_of (Numbering *n, size_t place)
{
  double *values = n->x->values + (n->x->n_drawn + 1) * n->p->width;
  mean_of (n->p, place, n->p->s->micro_batch, values);
  g_autoptr (GBytes) key = g_bytes_new (values, n->p->width * sizeof *values);
  gpointer found = g_hash_table_lookup (n->known, key);
  if (found)
    return GPOINTER_TO_UINT (found) - 1;
  n->x->drawn[n->x->n_drawn++] = documents_of (n->p, values);
  g_hash_table_insert (n->known, g_steal_pointer (&key), GUINT_TO_POINTER (n->x->n_drawn));
  return n->x->n_drawn - 1;
}

static void
number_micro_batches (const Packer *p, LsPacking *x)
{
  const LsStrategy *s = p->s;
  uint32_t n = ls_strategy_micro_batches (s, 0);
  g_autoptr (GHashTable) known
      = g_hash_table_new_full (g_bytes_hash, g_bytes_equal, (GDestroyNotify) g_bytes_unref, NULL);
  Numbering numbering = { p, x, known };
  double most = 0;
  x->number = g_new (uint32_t, (size_t) s->dp * n);
  x->drawn = g_new (LsDocuments, (size_t) s->dp * n);
  for (uint32_t copy = 0; copy < s->dp; copy++) {
    double of_copy = 0;
    for (uint32_t mb = 0; mb < n; mb++) {
      uint32_t number = number_of (&numbering, place_of (s, copy, mb) * s->micro_batch);
      x->number[(size_t) copy * n + mb] = number;
      of_copy += x->drawn[number].pairs;
    }
    most = MAX (most, of_copy);
  }
  x->busiest_copy = most / (n * x->mean.pairs);
}

static LsPacking *
packing_of (const Packer *p)
{
  bool has_each = p->s->docs.draw == LS_LENGTHS_EACH;
  LsPacking *x = g_new0 (LsPacking, 1);
  x->n_documents = p->n_documents;
  x->n_longer = p->n_longer;
  x->busiest_copy = 1;
  x->values = g_new (
      double, (1 + (has_each ? (size_t) p->s->dp * ls_strategy_micro_batches (p->s, 0) : 0)) * p->width);
  mean_of (p, 0, p->s->global_batch, x->values);
  x->mean = documents_of (p, x->values);
  if (has_each)
    number_micro_batches (p, x);
  else if (p->s->mp.cp_balance)
    x->mean.of_rank = NULL; /* as in the mean over ranks */
  return x;
}

gboolean
ls_packing_new (const LsStrategy *s, const LsModel *m, LsPacking **ret_packing, GError **error)
{
  const LsShard shard = ls_strategy_shard (s, m);
  uint64_t state = s->docs.seed;
  *ret_packing = NULL;
  if (!s->docs.drawn)
    return TRUE;
  Packer p = { .s = s, .m = m, .n_ranks = ls_context_cuts_sequences (&shard) ? s->cp : 0 };
  p.width = OF_RANK + p.n_ranks;
  p.sequence = g_new0 (double, (size_t) s->global_batch *p.width);
  p.order = g_new (uint32_t, s->global_batch);
  gboolean ok = draw_sequences (&p, &state, error);
  if (ok) {
    put_in_order (&p, &state);
    *ret_packing = packing_of (&p);
  }
  g_free (p.sequence);
  g_free (p.order);
  return ok;
}

void
ls_packing_free (LsPacking *packing)
{
  if (!packing)
    return;
  g_free (packing->drawn);
  g_free (packing->number);
  g_free (packing->values);
  g_free (packing);
}
