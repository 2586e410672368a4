#include "show/run/write_run.h"

#include <math.h>

#include "job/assumptions.h"
#include "show/text_table.h"

#define GIB 1073741824.0

/* --- whether it fits -------------------------------------------------------------------------------- */

char *
ls_headroom_verdict (const LsHeadroom *h, uint64_t needed_bytes, uint64_t capacity_bytes)
{
  uint64_t wanted = needed_bytes + (h->is_asked ? h->bytes : 0);
  if (wanted > capacity_bytes)
    return g_strdup_printf ("does not fit: %.2f GiB too much%s", (double) (wanted - capacity_bytes) / GIB,
                            needed_bytes <= capacity_bytes ? ", with the headroom" : "");
  double free_gib = (double) (capacity_bytes - needed_bytes) / GIB;
  if (!ls_headroom_is_left (h, needed_bytes, capacity_bytes))
    return g_strdup_printf ("fits, but leaves %.2f of a headroom of %.2f GiB", free_gib,
                            (double) h->bytes / GIB);
  return g_strdup_printf ("fits, %.2f GiB free", free_gib);
}

void
ls_headroom_print (const LsHeadroom *h, guint indent, GString *out)
{
  if (h->bytes == 0)
    return;
  g_autofree char *text = ls_headroom_text (h);
  g_string_append_printf (out, "%*sheadroom %s\n", (int) indent, "", text);
}

static const LsMemoryRow *
row_at (const LsMemoryTable *t, guint i)
{
  return &g_array_index (t->rows, LsMemoryRow, i);
}

static double
states_of (const uint64_t bytes[LS_N_MEM])
{
  return (double) (bytes[LS_MEM_PARAMETERS] + bytes[LS_MEM_GRADIENTS] + bytes[LS_MEM_OPTIMIZER]);
}

static double
states_formula (const LsMemoryFormula *f)
{
  return f->parameters + f->gradients + f->optimizer;
}

/* --- text ----------------------------------------------------------------------- */

static bool
is_caching (const LsMemoryTable *t)
{
  return t->memory->options.allocator == LS_MEMORY_CACHING;
}

/* Categories that hold something on some rank, as words. */
static guint
columns_of (const LsMemoryTable *t, int ret_categories[LS_N_MEM])
{
  guint n = 0;
  for (int c = 0; c < LS_N_MEM; c++)
    for (guint i = 0; i < t->rows->len; i++)
      if (row_at (t, i)->m->category_peak[c] > 0) {
        ret_categories[n++] = c;
        break;
      }
  return n;
}

static void
add_titles (LsTextTable *table, const LsMemoryTable *t, const int *categories, guint n)
{
  ls_text_table_add (table, "stage\vrank\vranks");
  for (guint i = 0; i < n; i++)
    ls_text_table_take (
        table, g_strdelimit (g_strdup (ls_mem_category_name ((LsMemCategory) categories[i])), "_", ' '));
  ls_text_table_add (table, "peak");
  if (is_caching (t))
    ls_text_table_add (table, "reserved");
  ls_text_table_add (table, "of %.2f GiB\vat ms\vin", (double) t->capacity_bytes / GIB);
}

static char *
place_of (const LsMemoryRow *r)
{
  if (!r->peak_op)
    return g_strdup ("throughout");
  return g_strdup_printf ("%s, micro-batch %u: %s", r->peak_segment, r->peak_mb, r->peak_op);
}

static void
add_row (LsTextTable *table, const LsMemoryTable *t, const LsMemoryRow *r, const int *categories, guint n)
{
  ls_text_table_add (table, "%u\v%u\v%u", r->stage, r->m->rank, r->m->count);
  for (guint i = 0; i < n; i++)
    ls_text_table_add (table, "%.2f", (double) r->m->at_peak[categories[i]] / GIB);
  ls_text_table_add (table, "%.2f", (double) r->m->peak_bytes / GIB);
  if (is_caching (t))
    ls_text_table_add (table, "%.2f", (double) r->m->reserved_bytes / GIB);
  ls_text_table_add (table, "%.1f %%",
                     100 * (double) r->m->needed_bytes / (double) MAX (t->capacity_bytes, 1));
  if (r->m->peak_at == LS_TIME_NEVER)
    ls_text_table_add (table, "-");
  else
    ls_text_table_add (table, "%.3f", 1e3 * ls_time_to_s (r->m->peak_at));
  ls_text_table_take (table, place_of (r));
}

static void
add_ranks (GString *out, const LsMemoryTable *t)
{
  int categories[LS_N_MEM];
  guint n = columns_of (t, categories);
  g_autofree char *numbers = g_strnfill (6 + n + (is_caching (t) ? 1 : 0), 'r');
  g_autofree char *align = g_strconcat (numbers, "l", NULL);
  LsTextTable table;
  ls_text_table_init (&table, align);
  add_titles (&table, t, categories, n);
  for (guint i = 0; i < t->rows->len; i++)
    add_row (&table, t, row_at (t, i), categories, n);
  g_string_append_printf (out, "GiB on the %s clock at the peak of each class of ranks%s\n",
                          ls_memory_clock_name (t->memory->options.clock),
                          t->memory->is_timed ? "" : ", in the order of programs");
  ls_text_table_print (&table, 2, out);
}

static void
add_formula (LsTextTable *table, double formula, double simulated)
{
  if (isnan (formula)) {
    for (int i = 0; i < 3; i++)
      ls_text_table_add (table, i == 1 ? "%.2f" : "-", simulated / GIB);
    return;
  }
  ls_text_table_add (table, "%.2f\v%.2f\v%+.1f %%", formula / GIB, simulated / GIB,
                     formula > 0 ? 100 * (simulated / formula - 1) : 0);
}

static bool
any_formula (const LsMemoryTable *t)
{
  for (guint i = 0; i < t->rows->len; i++)
    if (!isnan (states_formula (&row_at (t, i)->formula)))
      return true;
  return false;
}

static void
add_formulas (GString *out, const LsMemoryTable *t)
{
  LsTextTable table;
  if (!any_formula (t))
    return;
  ls_text_table_init (&table, "rrrrrrrr");
  ls_text_table_add (&table,
                     "stage\vrank\vstates: formula\vsimulated\v\vlayers' activations: formula\vsimulated\v");
  for (guint i = 0; i < t->rows->len; i++) {
    const LsMemoryRow *r = row_at (t, i);
    ls_text_table_add (&table, "%u\v%u", r->stage, r->m->rank);
    add_formula (&table, states_formula (&r->formula), states_of (r->m->category_peak));
    add_formula (&table, r->formula.activations, (double) r->m->kept_by_layers);
  }
  g_string_append (out,
                   "\nFormulas, GiB  states as in ZeRO (Rajbhandari et al. 2020), what layers keep as in "
                   "Korthikanti et al. 2022\n");
  ls_text_table_print (&table, 2, out);
}

void
ls_memory_advice_print (const LsMemoryAdvice *a, GString *out)
{
  if (!a)
    return;
  bool is_enough = ls_what_if_n_fit (a->tried) > 0;
  g_string_append_printf (out, "\nShort by %.2f GiB. ", (double) a->tried->now.short_bytes / GIB);
  if (is_enough)
    g_string_append (out, "These changes make it fit, the fastest first");
  else
    g_string_append_printf (out,
                            "No change, nor up to %d together, makes it fit; these leave the least too much",
                            LS_ADVICE_MAX_CHANGES);
  g_string_append_printf (out, " (%u simulated", a->tried->rows->len);
  if (a->n_left_out > 0)
    g_string_append_printf (out, ", %u that might do left out", a->n_left_out);
  g_string_append (out, ")\n");
  ls_what_if_print_savings (a->tried, is_enough, is_enough ? 0 : LS_ADVICE_N_NEAREST, out);
}

static void
add_verdict (GString *out, const LsMemoryTable *t)
{
  uint64_t needed = ls_memory_fullest (t->memory)->needed_bytes;
  g_autofree char *verdict = ls_headroom_verdict (t->headroom, needed, t->capacity_bytes);
  *verdict = g_ascii_toupper (*verdict);
  g_string_append_printf (out, "\n%s; beside it %.2f GiB for the CUDA context\n", verdict,
                          (double) t->context_bytes / GIB);
  ls_headroom_print (t->headroom, 0, out);
}

char *
ls_memory_to_text (const LsMemoryTable *t)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "%s\n%s\n\n", t->title, t->subtitle);
  add_ranks (out, t);
  add_formulas (out, t);
  add_verdict (out, t);
  ls_memory_advice_print (t->advice, out);
  return g_string_free (out, FALSE);
}

/* --- JSON ------------------------------------------------------------------------ */

void
ls_json_advice (LsJsonOut *w, const LsMemoryAdvice *a)
{
  if (!a)
    return;
  ls_json_out_begin_object (w, "advice");
  ls_json_out_uint (w, "n_left_out", a->n_left_out);
  ls_json_what_if (w, a->tried);
  ls_json_out_end_object (w);
}

static uint64_t
needed_bytes (const LsMemoryTable *t)
{
  return ls_memory_fullest (t->memory)->needed_bytes;
}

#include "show/memory_keys.h"
