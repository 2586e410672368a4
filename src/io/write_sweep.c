#include "io/write_sweep.h"

#include <math.h>

#include "io/field_write.h"
#include "io/json_out.h"
#include "io/read_strategy.h"
#include "io/text_table.h"

void
ls_sweep_row_clear (LsSweepRow *row)
{
  ls_strategy_clear (&row->strategy);
  g_free (row->knobs);
  g_free (row->why);
}

/* "5,4x11,3x4"; NULL: even. */
static char *
layers_text (const LsStrategy *s)
{
  return ls_field_text (ls_field_find (ls_strategy_fields, "layers_per_chunk"), s, NULL);
}

/* --- JSON ---------------------------------------------------------------------------- */

static void
write_config (LsJsonOut *w, const LsStrategy *s)
{
  ls_json_out_begin_object (w, "config");
  ls_json_out_uint (w, "gpus", s->gpus);
  ls_json_out_uint (w, "tp", s->tp);
  ls_json_out_uint (w, "pp", s->pp);
  ls_json_out_uint (w, "dp", s->dp);
  ls_json_out_uint (w, "cp", s->cp);
  ls_json_out_uint (w, "ep", s->ep);
  ls_json_out_uint (w, "vpp", s->vpp);
  ls_json_out_bool (w, "sp", s->sp);
  ls_json_out_uint (w, "zero", s->zero_stage);
  ls_json_out_string (w, "dp_kind", ls_dp_kind_name (s->dp_kind));
  ls_json_out_string (w, "schedule", s->schedule);
  ls_json_out_uint (w, "micro_batch", s->micro_batch);
  ls_json_out_uint (w, "global_batch", s->global_batch);
  ls_json_out_string (w, "recompute", ls_recompute_name (s->recompute));
  ls_json_out_bool (w, "tp_overlap", s->tp_overlap);
  g_autofree char *layers = layers_text (s);
  ls_json_out_string (w, "layers_per_chunk", layers);
  ls_json_out_end_object (w);
}

static void
write_row (LsJsonOut *w, const char *key, const LsSweepRow *r)
{
  ls_json_out_begin_object (w, key);
  write_config (w, &r->strategy);
  ls_json_out_double (w, "step_time_s", ls_time_to_s (r->step));
  ls_json_out_int (w, "step_time_ps", r->step);
  ls_json_out_double (w, "tokens_per_s", r->tokens_per_s);
  ls_json_out_double (w, "mfu", r->mfu);
  ls_json_out_uint (w, "memory_bytes", r->memory_bytes);
  ls_json_out_double (w, "exposed_s", r->exposed_s);
  ls_json_out_double (w, "bubble_s", r->bubble_s);
  ls_json_out_double (w, "usd_per_trillion_tokens", r->usd_per_trillion);
  ls_json_out_double (w, "kwh_per_trillion_tokens", r->kwh_per_trillion);
  ls_json_out_string (w, "knobs", r->knobs);
  if (r->why)
    ls_json_out_string (w, "why", r->why);
  ls_json_out_end_object (w);
}

static void
write_rows (LsJsonOut *w, const char *key, const GArray *rows)
{
  ls_json_out_begin_array (w, key);
  for (guint i = 0; i < rows->len; i++)
    write_row (w, NULL, &g_array_index (rows, LsSweepRow, i));
  ls_json_out_end_array (w);
}

static void
write_counts (LsJsonOut *w, const LsSweepCounts *c)
{
  ls_json_out_begin_object (w, "counts");
  ls_json_out_uint (w, "enumerated", c->enumerated);
  ls_json_out_uint (w, "illegal", c->illegal);
  ls_json_out_uint (w, "infeasible", c->infeasible);
  ls_json_out_uint (w, "pruned", c->pruned);
  ls_json_out_uint (w, "simulated", c->simulated);
  if (c->left > 0)
    ls_json_out_uint (w, "left", c->left);
  ls_json_out_end_object (w);
}

/* The rule of thumb is that of the last. */
static void
write_groups (LsJsonOut *w, const GArray *groups)
{
  const LsSweepGroup *last = &g_array_index (groups, LsSweepGroup, groups->len - 1);
  if (last->rule) {
    write_row (w, "rule_of_thumb", last->rule);
    ls_json_out_uint (w, "rule_of_thumb_rank", last->rule_rank);
    ls_json_out_bool (w, "rule_of_thumb_rank_exact", last->is_rule_rank_exact);
  }
  ls_json_out_begin_array (w, "scaling");
  for (guint i = 0; i < groups->len; i++) {
    const LsSweepGroup *g = &g_array_index (groups, LsSweepGroup, i);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_uint (w, "gpus", g->gpus);
    ls_json_out_uint (w, "global_batch", g->global_batch);
    ls_json_out_double (w, "step_time_s", g->first ? ls_time_to_s (g->first->step) : NAN);
    ls_json_out_double (w, "tokens_per_s", g->first ? g->first->tokens_per_s : NAN);
    ls_json_out_double (w, "tokens_per_s_per_gpu", g->tokens_per_s_per_gpu);
    ls_json_out_double (w, "mfu", g->first ? g->first->mfu : NAN);
    ls_json_out_double (w, "of_fewest_gpus", g->of_fewest_gpus);
    ls_json_out_double (w, "of_largest_batch", g->of_largest_batch);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

char *
ls_sweep_to_json (const LsSweepReport *r)
{
  GString *text = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, text, 2);
  ls_json_out_begin_object (&w, NULL);
  write_counts (&w, &r->counts);
  ls_json_out_double (&w, "wall_s", r->wall_s);
  ls_json_out_double (&w, "simulate_s", r->simulate_s);
  write_rows (&w, "best", r->best);
  if (r->front)
    write_rows (&w, "pareto", r->front);
  write_groups (&w, r->groups);
  ls_json_out_begin_object (&w, "price");
  ls_json_out_double (&w, "usd_per_gpu_hour", r->usd_per_gpu_hour);
  ls_json_out_double (&w, "gpu_watts", r->gpu_watts);
  ls_json_out_double (&w, "pue", r->pue);
  ls_json_out_end_object (&w);
  if (r->is_interrupted)
    ls_json_out_bool (&w, "interrupted", true);
  ls_json_out_end_object (&w);
  g_string_append_c (text, '\n');
  return g_string_free (text, FALSE);
}

/* --- text ------------------------------------------------------------------------------ */

static void
add_figure (LsTextTable *t, const char *format, double value)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  ls_text_table_add (t, "%s", isnan (value) ? "-" : g_ascii_formatd (buffer, sizeof buffer, format, value));
}

static void
add_layout (LsTextTable *t, const LsStrategy *s)
{
  ls_text_table_add (t, "%u", s->gpus);
  ls_text_table_add (t, "%u", s->global_batch);
  ls_text_table_add (t, "%u%s%s", s->tp, s->sp ? "+sp" : "", s->tp_overlap ? "+o" : "");
  g_autofree char *chunks = s->vpp > 1 ? g_strdup_printf (" x %u", s->vpp) : g_strdup ("");
  g_autofree char *layers = layers_text (s);
  ls_text_table_add (t, layers ? "%u%s: %s" : "%u%s", s->pp, chunks, layers);
  ls_text_table_add (t, s->cp > 1 || s->ep > 1 ? "%u, cp %u, ep %u" : "%u", s->dp, s->cp, s->ep);
  ls_text_table_add (t, "%u", s->micro_batch);
  ls_text_table_add (t, "%u %s", s->zero_stage, ls_dp_kind_name (s->dp_kind));
  ls_text_table_add (t, "%s", s->schedule);
  ls_text_table_add (t, "%s", ls_recompute_name (s->recompute));
}

static void
add_row (LsTextTable *t, const LsSweepRow *r)
{
  add_layout (t, &r->strategy);
  add_figure (t, "%.4g", ls_time_to_s (r->step));
  add_figure (t, "%.0f", r->tokens_per_s);
  add_figure (t, "%.1f", 100 * r->mfu);
  add_figure (t, "%.1f", (double) r->memory_bytes / (double) (UINT64_C (1) << 30));
  add_figure (t, "%.3g", r->exposed_s);
  add_figure (t, "%.3g", r->bubble_s);
  ls_text_table_note (t, r->why);
}

#define LAYOUT_COLUMNS "rrlllrlll"

static void
append_table (GString *out, const GArray *rows)
{
  static const char *const heads[] = { "gpus", "batch", "tp", "pp", "dp", "mb", "zero", "schedule", "recompute", "step s",
                                       "tokens/s", "MFU %", "GiB", "exposed s", "bubble s" };
  LsTextTable t;
  ls_text_table_init (&t, LAYOUT_COLUMNS "rrrrrr");
  for (guint i = 0; i < G_N_ELEMENTS (heads); i++)
    ls_text_table_add (&t, "%s", heads[i]);
  for (guint i = 0; i < rows->len; i++)
    add_row (&t, &g_array_index (rows, LsSweepRow, i));
  ls_text_table_print (&t, 2, out);
}

static void
append_cost (GString *out, const LsSweepReport *r)
{
  const LsSweepRow *best = &g_array_index (r->best, LsSweepRow, 0);
  char a[G_ASCII_DTOSTR_BUF_SIZE], b[G_ASCII_DTOSTR_BUF_SIZE], c[G_ASCII_DTOSTR_BUF_SIZE];
  if (!isnan (best->usd_per_trillion))
    g_string_append_printf (out, "\n  a trillion tokens cost $%s at $%s for an hour of a GPU (--gpu-hour)\n",
                            g_ascii_formatd (a, sizeof a, "%.0f", best->usd_per_trillion),
                            g_ascii_formatd (b, sizeof b, "%.2f", r->usd_per_gpu_hour));
  if (!isnan (best->kwh_per_trillion))
    g_string_append_printf (out, "  and take %s kWh at %s W for a GPU (--gpu-watts), PUE %s (--pue)\n",
                            g_ascii_formatd (a, sizeof a, "%.0f", best->kwh_per_trillion),
                            g_ascii_formatd (b, sizeof b, "%.0f", r->gpu_watts), g_ascii_formatd (c, sizeof c, "%.2f", r->pue));
}

static void
append_rule (GString *out, const LsSweepGroup *g)
{
  if (!g->rule) {
    g_string_append (out, "\nThe rule of thumb (TP in the node, PP across, DP the rest): none that is legal fits.\n");
    return;
  }
  g_autoptr (GArray) one = g_array_new (FALSE, FALSE, sizeof (LsSweepRow)); /* borrows */
  g_array_append_vals (one, g->rule, 1);
  g_string_append_printf (out, "\nThe rule of thumb (TP in the node, PP across, DP the rest) is number %" G_GUINT64_FORMAT "%s\n",
                          g->rule_rank, g->is_rule_rank_exact ? "" : " at best, as some were pruned");
  append_table (out, one);
}

/* What a sweep of these GPUs and this batch alone would print. */
static void
append_group (GString *out, const LsSweepReport *r, const LsSweepGroup *g)
{
  g_autoptr (GArray) rows = g_array_new (FALSE, FALSE, sizeof (LsSweepRow)); /* borrows */
  for (guint i = 0; i < r->best->len; i++) {
    const LsSweepRow *row = &g_array_index (r->best, LsSweepRow, i);
    if (row->strategy.gpus == g->gpus && row->strategy.global_batch == g->global_batch)
      g_array_append_vals (rows, row, 1);
  }
  if (rows->len == 0) {
    g_string_append (out, "None is legal and fits.\n");
    return;
  }
  append_table (out, rows);
  if (r->groups->len == 1)
    append_cost (out, r);
  append_rule (out, g);
}

static void
append_scaling (GString *out, const LsSweepReport *r)
{
  static const char *const heads[] = { "gpus", "batch", "step s", "tokens/s", "a GPU", "MFU %", "GPUs %", "batch %" };
  LsTextTable t;
  ls_text_table_init (&t, "rrrrrrrr");
  for (guint i = 0; i < G_N_ELEMENTS (heads); i++)
    ls_text_table_add (&t, "%s", heads[i]);
  for (guint i = 0; i < r->groups->len; i++) {
    const LsSweepGroup *g = &g_array_index (r->groups, LsSweepGroup, i);
    ls_text_table_add (&t, "%u", g->gpus);
    ls_text_table_add (&t, "%u", g->global_batch);
    add_figure (&t, "%.4g", g->first ? ls_time_to_s (g->first->step) : NAN);
    add_figure (&t, "%.0f", g->first ? g->first->tokens_per_s : NAN);
    add_figure (&t, "%.1f", g->tokens_per_s_per_gpu);
    add_figure (&t, "%.1f", g->first ? 100 * g->first->mfu : NAN);
    add_figure (&t, "%.1f", 100 * g->of_fewest_gpus);
    add_figure (&t, "%.1f", 100 * g->of_largest_batch);
  }
  g_string_append (out, "\nScaling of the best  tokens/s of a GPU against the fewest GPUs, and against the largest batch\n");
  ls_text_table_print (&t, 2, out);
}

char *
ls_sweep_to_text (const LsSweepReport *r)
{
  const LsSweepCounts *c = &r->counts;
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "%s\n%" G_GUINT64_FORMAT " configurations: %" G_GUINT64_FORMAT " illegal, %" G_GUINT64_FORMAT
                          " do not fit, %" G_GUINT64_FORMAT " cannot win, %" G_GUINT64_FORMAT " simulated", r->title, c->enumerated,
                          c->illegal, c->infeasible, c->pruned, c->simulated);
  if (r->is_interrupted)
    g_string_append_printf (out, "; stopped with %" G_GUINT64_FORMAT " left", c->left);
  g_string_append (out, "\n\n");
  if (r->best->len == 0) {
    g_string_append (out, "None is legal and fits.\n");
    return g_string_free (out, FALSE);
  }
  for (guint i = 0; i < r->groups->len; i++) {
    const LsSweepGroup *g = &g_array_index (r->groups, LsSweepGroup, i);
    if (r->groups->len > 1)
      g_string_append_printf (out, "%s%u GPUs, global batch %u\n", i > 0 ? "\n" : "", g->gpus, g->global_batch);
    append_group (out, r, g);
  }
  if (r->groups->len > 1) {
    append_scaling (out, r);
    append_cost (out, r);
  }
  if (r->front) {
    g_string_append (out, "\nPareto front of time, memory and cost\n");
    append_table (out, r->front);
  }
  g_string_append_printf (out, "\nThe first again: lockstep run with\n  %s\n", g_array_index (r->best, LsSweepRow, 0).knobs);
  return g_string_free (out, FALSE);
}

char *
ls_sweep_to_csv (const LsSweepReport *r)
{
  GString *out = g_string_new ("gpus,tp,pp,dp,cp,ep,vpp,sp,zero,dp_kind,schedule,micro_batch,global_batch,recompute,tp_overlap,"
                               "step_time_ps,tokens_per_s,mfu,memory_bytes,exposed_s,bubble_s,layers_per_chunk\n");
  for (guint i = 0; i < r->best->len; i++) {
    const LsSweepRow *row = &g_array_index (r->best, LsSweepRow, i);
    const LsStrategy *s = &row->strategy;
    const double figures[] = { row->tokens_per_s, row->mfu, (double) row->memory_bytes, row->exposed_s, row->bubble_s };
    g_string_append_printf (out, "%u,%u,%u,%u,%u,%u,%u,%d,%u,%s,%s,%u,%u,%s,%d,%" G_GINT64_FORMAT, s->gpus, s->tp, s->pp, s->dp,
                            s->cp, s->ep, s->vpp, s->sp, s->zero_stage, ls_dp_kind_name (s->dp_kind), s->schedule,
                            s->micro_batch, s->global_batch, ls_recompute_name (s->recompute), s->tp_overlap, row->step);
    for (guint k = 0; k < G_N_ELEMENTS (figures); k++) {
      char buffer[G_ASCII_DTOSTR_BUF_SIZE];
      g_string_append_printf (out, ",%s", g_ascii_formatd (buffer, sizeof buffer, "%.17g", figures[k]));
    }
    g_autofree char *layers = layers_text (s);
    g_string_append_printf (out, ",\"%s\"\n", layers ? layers : "auto");
  }
  return g_string_free (out, FALSE);
}
