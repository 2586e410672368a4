/* data/measured/profile_spans.c — kernels of a step that kernelbench ran from a trace (`--plan`), as rows of
 * a profile.
 *
 * A span lies between two events of its stream. What two events cost around nothing is in the file
 * (`event-pair` of the stream `step`), and goes. Spans of one kernel (name, shape, format, bytes) are one
 * row, their median. A kernel beside which another ran does not tell its own time: such spans are left out,
 * and so are kernels that only moved as many bytes as the job's, and kernelbench's own attention.
 *
 * Inside a step the chip is as hot as it gets: products are those of the group `gemm-sustained`. */
#include <string.h>

#include "base/order.h"
#include "data/measured/read_profile.h"
#include "data/text/csv.h"

#define GROUP "plan"

typedef struct {
  LsProfileRow row;
  char *stream;
  double start_us, end_us;
  guint number; /* in the file */
} Span;

#define TEXT(key_, member_, required_)                                                                       \
  {                                                                                                          \
    key_, LS_FIELD_STRING, offsetof (Span, member_), .required = (required_)                                 \
  }
#define NUMBER(key_, member_, max_)                                                                          \
  {                                                                                                          \
    key_, LS_FIELD_DOUBLE, offsetof (Span, member_), .required = true, .max = (max_)                         \
  }
/* What has no kernel has no shape, number format, note and implementation. */
static const LsField fields[] = {
  TEXT ("stream", stream, true),
  TEXT ("name", row.name, true),
  NUMBER ("start_us", start_us, 1e12),
  NUMBER ("end_us", end_us, 1e12),
  TEXT ("shape", row.shape, false),
  TEXT ("dtype", row.dtype, false),
  NUMBER ("bytes", row.bytes, 1e18),
  NUMBER ("flops", row.flops, 1e24),
  TEXT ("note", row.note, false),
  TEXT ("implementation", row.implementation, false),
  { NULL },
};

bool
ls_profile_has_spans (const LsCsv *csv)
{
  return ls_csv_column (csv, "start_us") >= 0 && ls_csv_column (csv, "end_us") >= 0;
}

static void
span_clear (gpointer span)
{
  ls_fields_clear (fields, span);
}

static GArray *
read_spans (LsProfile *p, LsDiagList *diags)
{
  g_autoptr (GArray) columns = g_array_new (FALSE, FALSE, sizeof (LsCsvField));
  GArray *spans = g_array_new (FALSE, TRUE, sizeof (Span));
  g_array_set_clear_func (spans, span_clear);
  guint n_before = ls_diag_list_n (diags);
  for (const LsField *f = fields; f->key; f++)
    if (f->required)
      ls_csv_fields_find (p->csv, f, true, 0, columns, diags);
    else
      ls_csv_fields_find_optional (p->csv, f, 0, columns);
  if (ls_csv_column (p->csv, "shape") < 0)
    ls_csv_header_error (
        p->csv, diags,
        "expected the columns of kernelbench --plan, which says the shape of what ran; got no shape");
  p->n_rows = ls_csv_n_rows (p->csv);
  for (guint i = 0; ls_diag_list_n (diags) == n_before && i < p->n_rows; i++) {
    Span s = { .number = i };
    ls_csv_fields_read (p->csv, i, columns, &s, diags);
    g_array_append_val (spans, s);
    if (s.end_us < s.start_us)
      ls_profile_error_at (p, i, "end_us", diags, "expected an end behind the start, %g; got %g", s.start_us,
                           s.end_us);
  }
  return spans;
}

/* --- which tell a kernel's time -------------------------------------------------------------- */

static bool
is_of_step (const Span *s)
{
  return strcmp (s->stream, "step") == 0;
}

/* Which hold SMs: a copy, a wait or a host's call has no shape. */
static bool
is_kernel (const Span *s)
{
  return !is_of_step (s) && s->row.shape && s->end_us > s->start_us;
}

static bool
is_beside_another (const GArray *spans, const Span *s)
{
  for (guint i = 0; i < spans->len; i++) {
    const Span *other = &g_array_index (spans, Span, i);
    if (other != s && is_kernel (other) && strcmp (other->stream, s->stream) != 0
        && other->start_us < s->end_us && s->start_us < other->end_us)
      return true;
  }
  return false;
}

static double
events_us (const GArray *spans)
{
  for (guint i = 0; i < spans->len; i++) {
    const Span *s = &g_array_index (spans, Span, i);
    if (is_of_step (s) && strcmp (s->row.name, "event-pair") == 0)
      return s->end_us - s->start_us;
  }
  return 0;
}

/* --- as rows ------------------------------------------------------------------------------------ */

typedef struct {
  const Span *first;
  GArray *us; /* double */
} Same;

static void
same_free (gpointer same)
{
  g_array_unref (((Same *) same)->us);
  g_free (same);
}

static char *
key_of (const Span *s)
{
  return g_strdup_printf ("%s,%s,%s,%.17g,%s,%s", s->row.name, s->row.shape, s->row.dtype, s->row.bytes,
                          s->row.note, s->row.implementation);
}

static void
take (LsProfile *p, const Same *same, double events, LsDiagList *diags)
{
  LsProfileRow row = same->first->row; /* borrows */
  double us = ls_median (&g_array_index (same->us, double, 0), same->us->len);
  row.group = (char *) GROUP;
  row.time_us = us > events ? us - events : us;
  ls_profile_take_row (p, same->first->number, &row, diags);
}

/* In the order in which they first ran. */
static GPtrArray *
group_spans (LsProfile *p, const GArray *spans)
{
  GPtrArray *all = g_ptr_array_new_with_free_func (same_free);
  g_autoptr (GHashTable) known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; i < spans->len; i++) {
    const Span *s = &g_array_index (spans, Span, i);
    if (!is_kernel (s) || is_beside_another (spans, s)) {
      p->n_beside += is_kernel (s);
      p->n_passed += !is_of_step (s);
      continue;
    }
    g_autofree char *key = key_of (s);
    Same *same = g_hash_table_lookup (known, key);
    if (!same) {
      same = g_new (Same, 1);
      *same = (Same) { s, g_array_new (FALSE, FALSE, sizeof (double)) };
      g_hash_table_insert (known, g_steal_pointer (&key), same);
      g_ptr_array_add (all, same);
    }
    double us = s->end_us - s->start_us;
    g_array_append_val (same->us, us);
  }
  return all;
}

void
ls_profile_read_spans (LsProfile *p, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (GArray) spans = read_spans (p, diags);
  if (ls_diag_list_n (diags) > n_before)
    return;
  g_autoptr (GPtrArray) all = group_spans (p, spans);
  for (guint i = 0; i < all->len; i++)
    take (p, g_ptr_array_index (all, i), events_us (spans), diags);
}
