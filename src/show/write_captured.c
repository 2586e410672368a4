#include "show/write_captured.h"

#include <math.h>

#include "data/text/json_out.h"
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
    ls_text_table_add (&t, "%s", row->kind);
    ls_text_table_add (&t, "%.2f GiB", (double) row->bytes / GIB);
    ls_text_table_add (&t, "%s", row->phase);
    ls_text_table_add (&t, "%s", *row->operator? row->operator: "-");
    ls_text_table_add (&t, "%s", *row->line ? row->line : "-");
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
  static const char *const heads[] = { "", "rank", "for", "steps", "allocated", "reserved", "" };
  for (guint i = 0; i < G_N_ELEMENTS (heads); i++)
    ls_text_table_add (&t, "%s", heads[i]);
  for (guint i = 0; i < c->ranks->len; i++) {
    const LsCapturedRank *r = &g_array_index (c->ranks, LsCapturedRank, i);
    g_autofree char *remark = remark_of (c, i);
    ls_text_table_add (&t, "%s", r->rank == c->rank ? ">" : "");
    ls_text_table_add (&t, "%u", r->rank);
    ls_text_table_add (&t, "%u", r->stands_for);
    ls_text_table_add (&t, "%u", r->steps);
    ls_text_table_add (&t, "%.2f GiB", (double) r->allocated_bytes / GIB);
    ls_text_table_add (&t, "%.2f GiB", (double) r->reserved_bytes / GIB);
    ls_text_table_add (&t, "%s", remark);
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

char *
ls_captured_to_json (const LsCaptured *c)
{
  LsJsonOut w;
  ls_json_out_open_as (&w, "capture");
  ls_json_out_string (&w, "gpu", c->gpu);
  ls_json_out_string (&w, "torch", c->torch);
  ls_json_out_string (&w, "cuda", c->cuda);
  ls_json_out_uint (&w, "world", c->world);
  ls_json_out_uint (&w, "rank", c->rank);
  ls_json_out_uint (&w, "steps", c->steps);
  ls_json_out_string (&w, "ended", c->why);
  ls_json_out_string (&w, "error", c->error);
  ls_json_out_bool (&w, "fits", ls_captured_fits (c));
  ls_json_out_uint (&w, "needed_bytes", ls_captured_needed (c));
  ls_json_out_uint (&w, "total_bytes", c->total_bytes);
  ls_json_out_uint (&w, "allocated_bytes", c->allocated_bytes);
  ls_json_out_uint (&w, "reserved_bytes", c->reserved_bytes);
  ls_json_out_uint (&w, "requested_bytes", c->requested_bytes);
  if (c->high_bytes > 0) {
    ls_json_out_uint (&w, "reserved_low_bytes", c->low_bytes);
    ls_json_out_uint (&w, "reserved_high_bytes", c->high_bytes);
  }
  ls_json_out_uint (&w, "context_bytes", c->context_bytes);
  ls_json_out_uint (&w, "nccl_bytes", c->nccl_bytes);
  ls_json_out_uint (&w, "retries", c->n_retries);
  ls_json_out_uint (&w, "out_of_memory", c->n_out_of_memory);
  ls_json_out_bool (&w, "depends_on_speed", c->depends_on_speed);
  ls_json_out_begin_object (&w, "counts");
  ls_json_out_uint (&w, "kernels", c->n_kernels);
  ls_json_out_uint (&w, "products", c->n_products);
  ls_json_out_uint (&w, "collectives", c->n_collectives);
  ls_json_out_uint (&w, "communicators", c->n_communicators);
  ls_json_out_uint (&w, "graphs", c->n_graphs);
  ls_json_out_end_object (&w);
  ls_json_out_begin_array (&w, "ranks");
  for (guint i = 0; i < c->ranks->len; i++) {
    const LsCapturedRank *r = &g_array_index (c->ranks, LsCapturedRank, i);
    ls_json_out_begin_object (&w, NULL);
    ls_json_out_uint (&w, "rank", r->rank);
    ls_json_out_uint (&w, "stands_for", r->stands_for);
    ls_json_out_uint (&w, "steps", r->steps);
    ls_json_out_uint (&w, "allocated_bytes", r->allocated_bytes);
    ls_json_out_uint (&w, "reserved_bytes", r->reserved_bytes);
    ls_json_out_uint (&w, "needed_bytes", r->needed_bytes);
    ls_json_out_string (&w, "error", r->error);
    ls_json_out_string (&w, "trace", r->trace);
    if (same_before (c, i))
      ls_json_out_uint (&w, "same_as", same_before (c, i)->rank);
    else
      ls_json_out_null (&w, "same_as");
    ls_json_out_end_object (&w);
  }
  ls_json_out_end_array (&w);
  ls_json_out_begin_array (&w, "peak");
  for (guint i = 0; i < c->rows->len; i++) {
    const LsCapturedRow *row = &g_array_index (c->rows, LsCapturedRow, i);
    ls_json_out_begin_object (&w, NULL);
    ls_json_out_string (&w, "kind", row->kind);
    ls_json_out_string (&w, "phase", row->phase);
    ls_json_out_string (&w, "operator", row->operator);
    ls_json_out_string (&w, "line", row->line);
    ls_json_out_uint (&w, "bytes", row->bytes);
    ls_json_out_uint (&w, "blocks", row->blocks);
    ls_json_out_end_object (&w);
  }
  ls_json_out_end_array (&w);
  return ls_json_out_close (&w);
}

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
  static const char *const heads[] = { "step", "memory", "of", "" };
  for (guint i = 0; i < G_N_ELEMENTS (heads); i++)
    ls_text_table_add (&t, "%s", heads[i]);
  for (guint i = 0; i < all->layouts->len; i++) {
    const LsCaptureLayout *l = &g_array_index (all->layouts, LsCaptureLayout, i);
    for (guint k = 0; k < all->axes->len; k++)
      ls_text_table_add (&t, "%s", l->values[k]);
    if (isnan (l->step_time_s))
      ls_text_table_add (&t, "%s", "-");
    else
      ls_text_table_take (&t, ls_text_time (l->step_time_s));
    ls_text_table_add (&t, "%.2f GiB", (double) l->needed_bytes / GIB);
    ls_text_table_add (&t, "%.2f GiB", (double) l->total_bytes / GIB);
    ls_text_table_add (&t, "%s", l->error ? l->error : l->fits ? "fits" : "does not fit");
  }
  g_string_append_printf (
      out, "captured in %u layouts, replayed on %s; a step has as many tokens as the program gives it\n\n",
      all->layouts->len, all->cluster);
  ls_text_table_print (&t, 2, out);
  g_string_free (columns, TRUE);
  return g_string_free (out, FALSE);
}

char *
ls_capture_layouts_to_json (const LsCaptureLayouts *all)
{
  LsJsonOut w;
  ls_json_out_open_as (&w, "captured-layouts");
  ls_json_out_string (&w, "cluster", all->cluster);
  ls_json_out_begin_array (&w, "layouts");
  for (guint i = 0; i < all->layouts->len; i++) {
    const LsCaptureLayout *l = &g_array_index (all->layouts, LsCaptureLayout, i);
    ls_json_out_begin_object (&w, NULL);
    ls_json_out_begin_array (&w, "values");
    for (guint k = 0; k < all->axes->len; k++) {
      g_autofree char *text
          = g_strdup_printf ("%s=%s", g_array_index (all->axes, LsCaptureAxis, k).key, l->values[k]);
      ls_json_out_string (&w, NULL, text);
    }
    ls_json_out_end_array (&w);
    ls_json_out_double (&w, "step_time_s", l->step_time_s);
    ls_json_out_bool (&w, "fits", l->fits);
    ls_json_out_uint (&w, "needed_bytes", l->needed_bytes);
    ls_json_out_uint (&w, "total_bytes", l->total_bytes);
    ls_json_out_string (&w, "error", l->error);
    ls_json_out_end_object (&w);
  }
  ls_json_out_end_array (&w);
  return ls_json_out_close (&w);
}
