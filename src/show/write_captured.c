#include "show/write_captured.h"

#include <math.h>

#include "show/captured_layouts_keys.h"
#include "show/quantity.h"
#include "show/text_table.h"

#define MOST_ROWS 12 /* of lines of the program in a text */
#define GIB       ((double) (1 << 30))

static void
append_bytes (GString *out, const char *what, uint64_t bytes, const char *how)
{
  g_string_append_printf (out, "  %-26s %9.2f GiB  %s\n", what, (double) bytes / GIB, how);
}

static void
append_rows (GString *out, const LsCaptured *c)
{
  LsTextTable t;
  uint64_t rest = 0;
  guint n = MIN (c->rows->len, MOST_ROWS);
  ls_text_table_init (&t, "lrlll");
  for (guint i = 0; i < c->rows->len; i++) {
    const LsCapturedRow *row = &g_array_index (c->rows, LsCapturedRow, i);
    if (i >= n) {
      rest += row->bytes;
      continue;
    }
    ls_text_table_add (&t, "%s\v%.2f GiB\v%s\v%s\v%s", row->kind, (double) row->bytes / GIB, row->phase,
                       *row->operator? row->operator: "-", *row->line ? row->line : "-");
  }
  g_string_append (out, "\nWhat was allocated when most was\n");
  ls_text_table_print (&t, 2, out);
  if (c->rows->len > n)
    g_string_append_printf (out, "  and %.2f GiB of %u other lines\n", (double) rest / GIB, c->rows->len - n);
}

static void
append_verdict (GString *out, const LsCaptured *c)
{
  double needed = (double) ls_captured_needed (c) / GIB, total = (double) c->total_bytes / GIB;
  g_string_append_c (out, '\n');
  if (c->error && c->n_out_of_memory > 0)
    g_string_append_printf (out, "Does not fit: PyTorch ran out of %.2f GiB\n", total);
  else if (c->error)
    g_string_append_printf (out, "It failed after %.2f of %.2f GiB\n", needed, total);
  else
    g_string_append_printf (out, "%s: %.2f of %.2f GiB\n", ls_captured_fits (c) ? "Fits" : "Does not fit",
                            needed, total);
}

/* Where there are several. */
/* The first that was captured and did the same, in the same order; NULL: none before it. */
static const LsCapturedRank *
same_before (const LsCaptured *c, guint i)
{
  const LsCapturedRank *all = (const LsCapturedRank *) (void *) c->ranks->data;
  for (guint j = 0; j < i; j++)
    if (!all[i].error && !all[j].error && all[i].trace && g_strcmp0 (all[i].trace, all[j].trace) == 0)
      return &all[j];
  return NULL;
}

static char *
remark_of (const LsCaptured *c, guint i)
{
  const LsCapturedRank *r = &g_array_index (c->ranks, LsCapturedRank, i), *same = same_before (c, i);
  if (r->error)
    return g_strdup (r->error);
  if (same)
    return g_strdup_printf ("does what %u does", same->rank);
  return r->like != r->rank ? g_strdup_printf ("differs from %u", r->like) : g_strdup ("");
}

static void
append_ranks (GString *out, const LsCaptured *c)
{
  LsTextTable t;
  ls_text_table_init (&t, "lrrrrrl");
  ls_text_table_add (&t, "\vrank\vfor\vsteps\vallocated\vreserved\v");
  for (guint i = 0; i < c->ranks->len; i++) {
    const LsCapturedRank *r = &g_array_index (c->ranks, LsCapturedRank, i);
    g_autofree char *remark = remark_of (c, i);
    ls_text_table_add (&t, "%s\v%u\v%u\v%u\v%.2f GiB\v%.2f GiB\v%s", r->rank == c->rank ? ">" : "", r->rank,
                       r->stands_for, r->steps, (double) r->allocated_bytes / GIB,
                       (double) r->reserved_bytes / GIB, remark);
  }
  g_string_append (out, "\nRanks that were captured, and for how many each stands\n");
  ls_text_table_print (&t, 2, out);
}

char *
ls_captured_to_text (const LsCaptured *c)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "rank %u of %u on %s; torch %s, CUDA %s\n", c->rank, c->world, c->gpu,
                          c->torch, c->cuda);
  g_string_append_printf (out,
                          "%u step%s of its optimizer; %" G_GUINT64_FORMAT " kernels, %" G_GUINT64_FORMAT
                          " products, %" G_GUINT64_FORMAT " collectives\n",
                          c->steps, c->steps == 1 ? "" : "s", c->n_kernels, c->n_products, c->n_collectives);
  g_string_append (out, "\nMemory at its peak\n");
  append_bytes (out, "allocated", c->allocated_bytes, "PyTorch's allocator, exact");
  append_bytes (out, "reserved", c->reserved_bytes, "the same");
  if (c->high_bytes > 0)
    g_string_append_printf (out, "    %.2f to %.2f GiB on GPUs of half to double the speed\n",
                            (double) c->low_bytes / GIB, (double) c->high_bytes / GIB);
  append_bytes (out, "context and kernels", c->context_bytes, "from a table");
  append_bytes (out, "NCCL", c->nccl_bytes, "from a table, for each communicator that was used");
  append_verdict (out, c);
  if (c->ranks->len > 1)
    append_ranks (out, c);
  append_rows (out, c);
  return g_string_free (out, FALSE);
}

#include "show/capture_keys.h"

char *
ls_captured_to_junit (const LsCaptured *c, const char *command)
{
  bool fits = ls_captured_fits (c), failed = c->error && c->n_out_of_memory == 0;
  g_autofree char *name = g_markup_escape_text (command, -1);
  g_autofree char *error = g_markup_escape_text (c->error ? c->error : "", -1);
  g_autofree char *why = failed ? g_strdup (error)
      : c->n_out_of_memory > 0
      ? g_strdup_printf ("does not fit: out of %.2f GiB", (double) c->total_bytes / GIB)
      : g_strdup_printf ("does not fit: %.2f of %.2f GiB", (double) ls_captured_needed (c) / GIB,
                         (double) c->total_bytes / GIB);
  const char *kind = failed ? "error" : "failure";
  g_autofree char *failure
      = fits ? g_strdup ("") : g_strdup_printf ("\n      <%s message=\"%s\"/>\n    ", kind, why);
  return g_strdup_printf ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
                          "  <testsuite name=\"lockstep capture\" tests=\"1\" failures=\"%d\" "
                          "errors=\"%d\">\n"
                          "    <testcase classname=\"memory\" name=\"%s\">%s</testcase>\n"
                          "  </testsuite>\n</testsuites>\n",
                          !fits && !failed, failed, name, failure);
}

/* --- several layouts ------------------------------------------------------------------------------------ */

char *
ls_capture_layouts_to_text (const LsCaptureLayouts *all)
{
  GString *out = g_string_new (NULL), *columns = g_string_new (NULL);
  LsTextTable t;
  for (guint i = 0; i < all->axes->len; i++)
    g_string_append_c (columns, 'r');
  g_string_append (columns, "rrrl");
  ls_text_table_init (&t, columns->str);
  for (guint i = 0; i < all->axes->len; i++)
    ls_text_table_add (&t, "%s", g_array_index (all->axes, LsCaptureAxis, i).key);
  ls_text_table_add (&t, "step\vmemory\vof\v");
  for (guint i = 0; i < all->layouts->len; i++) {
    const LsCaptureLayout *l = &g_array_index (all->layouts, LsCaptureLayout, i);
    for (guint k = 0; k < all->axes->len; k++)
      ls_text_table_add (&t, "%s", l->values[k]);
    if (isnan (l->step_time_s))
      ls_text_table_add (&t, "%s", "-");
    else
      ls_text_table_take (&t, ls_text_time (l->step_time_s));
    ls_text_table_add (&t, "%.2f GiB\v%.2f GiB\v%s", (double) l->needed_bytes / GIB,
                       (double) l->total_bytes / GIB,
                       l->error      ? l->error
                           : l->fits ? "fits"
                                     : "does not fit");
  }
  g_string_append_printf (
      out, "captured in %u layouts, replayed on %s; a step has as many tokens as the program gives it\n\n",
      all->layouts->len, all->cluster);
  ls_text_table_print (&t, 2, out);
  g_string_free (columns, TRUE);
  return g_string_free (out, FALSE);
}
