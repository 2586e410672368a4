#include "show/run/write_report.h"

#include <math.h>

#include "job/assumptions.h"
#include "show/run/write_run.h"
#include "show/tell_import.h"

static void
add_text (LsJsonOut *w, const char *key, const char *text)
{
  if (text)
    ls_json_out_string (w, key, text);
}

static void
add_breakdown (LsJsonOut *w, const LsReport *r)
{
  ls_json_out_begin_object (w, "breakdown_s");
  for (int part = 0; part < LS_N_PARTS; part++)
    ls_json_out_double (w, ls_part_name ((LsPart) part), r->breakdown_s[part]);
  ls_json_out_end_object (w);
}

static void
add_bubbles (LsJsonOut *w, const LsReport *r)
{
  ls_json_out_begin_object (w, "bubble_parts_s");
  for (int b = 0; b < LS_N_BUBBLES; b++)
    ls_json_out_double (w, ls_bubble_name ((LsBubble) b), r->bubbles_s[b]);
  ls_json_out_end_object (w);
}

void
ls_json_bytes_by_category (LsJsonOut *w, const char *key, const uint64_t bytes[LS_N_MEM])
{
  ls_json_out_begin_object (w, key);
  for (int c = 0; c < LS_N_MEM; c++)
    ls_json_out_uint (w, ls_mem_category_name ((LsMemCategory) c), bytes[c]);
  ls_json_out_end_object (w);
}

static void
add_retries (LsJsonOut *w, const LsRetriesReport *x)
{
  if (!x->is_known) {
    ls_json_out_null (w, "allocator_retries");
    return;
  }
  ls_json_out_begin_object (w, "allocator_retries");
  ls_json_out_uint (w, "n", x->n);
  ls_json_out_uint (w, "freed_bytes", x->freed_bytes);
  ls_json_out_uint (w, "taken_bytes", x->taken_bytes);
  ls_json_out_uint (w, "reserved_bytes", x->reserved_bytes);
  ls_json_out_uint (w, "limit_bytes", x->limit_bytes);
  ls_json_out_double (w, "lost_s", x->lost_s);
  ls_json_out_bool (w, "charged", x->n > 0 && !x->is_out_of_memory && !x->is_refused);
  ls_json_out_bool (w, "out_of_memory", x->is_out_of_memory);
  ls_json_out_end_object (w);
}

static void
add_memory (LsJsonOut *w, const LsReport *r)
{
  ls_json_out_begin_object (w, "memory");
  ls_json_out_uint (w, "rank", r->peak_rank);
  ls_json_out_uint (w, "peak_bytes", r->peak_bytes);
  ls_json_out_uint (w, "needed_bytes", r->needed_bytes);
  ls_json_out_uint (w, "capacity_bytes", r->capacity_bytes);
  ls_json_out_uint (w, "context_bytes", r->context_bytes);
  ls_json_out_bool (w, "fits", r->fits);
  ls_json_headroom (w, &r->headroom, r->needed_bytes, r->capacity_bytes);
  add_retries (w, &r->retries);
  ls_json_bytes_by_category (w, "by_category", r->by_category);
  ls_json_bytes_by_category (w, "at_peak", r->at_peak);
  ls_json_out_end_object (w);
}

static void
add_links (LsJsonOut *w, const LsReport *r)
{
  ls_json_out_begin_array (w, "links");
  for (guint i = 0; i < r->n_links; i++) {
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "name", r->links[i].name);
    ls_json_out_double (w, "utilisation", r->links[i].utilisation);
    ls_json_out_double (w, "bytes", r->links[i].bytes);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

static void
add_link_groups (LsJsonOut *w, const LsReport *r)
{
  ls_json_out_begin_array (w, "link_groups");
  for (guint i = 0; i < r->n_link_groups; i++) {
    const LsLinkGroup *g = &r->link_groups[i];
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "name", g->name);
    ls_json_out_uint (w, "n", g->n);
    ls_json_out_double (w, "max_utilisation", g->max_utilisation);
    ls_json_out_double (w, "mean_utilisation", g->mean_utilisation);
    ls_json_out_double (w, "bytes", g->bytes);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

static void
add_network (LsJsonOut *w, const LsReport *r, const LsNetworkTime *n)
{
  ls_json_out_begin_object (w, n->name);
  ls_json_out_string (w, "refused", n->refused);
  ls_json_out_double (w, "step_time_s", n->refused ? NAN : n->step_time_s);
  ls_json_out_double (w, "difference_pct",
                      n->refused ? NAN : 100 * (n->step_time_s / r->networks[0].step_time_s - 1));
  ls_json_out_begin_object (w, "breakdown_s");
  for (int part = 0; part < LS_N_PARTS; part++)
    ls_json_out_double (w, ls_part_name ((LsPart) part), n->refused ? NAN : n->breakdown_s[part]);
  ls_json_out_end_object (w);
  ls_json_out_end_object (w);
}

static void
add_networks (LsJsonOut *w, const LsReport *r)
{
  if (r->n_networks == 0)
    return;
  ls_json_out_begin_object (w, "network_all");
  for (guint i = 0; i < r->n_networks; i++)
    add_network (w, r, &r->networks[i]);
  ls_json_out_end_object (w);
}

void
ls_json_assumptions (LsJsonOut *w, const GArray *assumptions)
{
  if (!assumptions)
    return;
  ls_json_out_begin_array (w, "assumptions");
  for (guint i = 0; i < assumptions->len; i++) {
    const LsAssumption *a = &g_array_index (assumptions, LsAssumption, i);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "key", a->key);
    ls_json_out_string (w, "value", a->value);
    ls_json_out_string (w, "why", a->why);
    ls_json_out_string (w, "instead", a->instead);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

static void
add_named (LsJsonOut *w, const char *what, const char *name, const char *source)
{
  if (!name)
    return;
  ls_json_out_begin_object (w, what);
  ls_json_out_string (w, "name", name);
  add_text (w, "source", source);
  ls_json_out_end_object (w);
}

static void
add_kernel_times (LsJsonOut *w, const LsReport *r)
{
  ls_json_out_begin_object (w, "kernel_time_frac");
  ls_json_out_double (w, "measured", r->share_measured);
  ls_json_out_double (w, "fitted", r->share_fitted);
  ls_json_out_double (w, "roofline", r->share_roofline);
  ls_json_out_double (w, "extrapolated", r->share_extrapolated);
  ls_json_out_end_object (w);
}

static void
add_provenance (LsJsonOut *w, const LsReport *r, const LsReportProvenance *p)
{
  g_autofree char *digest = g_strdup_printf ("%016" G_GINT64_MODIFIER "x", (guint64) r->digest);
  ls_json_out_begin_object (w, "provenance");
  add_text (w, "version", p->version);
  add_named (w, "trace", p->trace, p->trace_source);
  add_named (w, "model", p->model, p->model_source);
  add_named (w, "cluster", p->cluster, p->cluster_source);
  add_named (w, "strategy", p->strategy, p->strategy_source);
  if (p->from)
    ls_import_add_provenance (p->from, w);
  add_text (w, "software", p->software);
  add_named (w, "calibration", p->calibration, p->calibration_source);
  add_named (w, "network", p->network, p->network_source);
  add_text (w, "options", p->options);
  add_kernel_times (w, r);
  ls_json_out_string (w, "digest", digest);
  ls_json_out_end_object (w);
}

static void
add_interval (LsJsonOut *w, const LsReport *r, const LsInterval *i)
{
  ls_json_out_begin_object (w, "interval");
  g_autofree char *label = ls_interval_label (i);
  ls_json_out_string (w, "label", label);
  ls_json_out_uint (w, "level_pct", (uint64_t) lround (100 * LS_INTERVAL_LEVEL));
  ls_json_out_double (w, "low_s", i->none ? NAN : i->low * r->step_time_s);
  ls_json_out_double (w, "high_s", i->none ? NAN : i->high * r->step_time_s);
  ls_json_out_uint (w, "n_runs", i->n_runs);
  ls_json_out_string (w, "runs", i->runs);
  ls_json_out_uint (w, "n_sources", i->n_sources);
  ls_json_out_string (w, "software", i->none ? NULL : i->software);
  ls_json_out_double (w, "stretch", i->none ? NAN : i->stretch);
  ls_json_out_string (w, "wider", i->wider);
  ls_json_out_string (w, "remark", i->remark);
  ls_json_out_string (w, "none", i->none);
  ls_json_out_end_object (w);
}

/* A number that the log does not say is null. */
static void
add_logged (LsJsonOut *w, const char *key, double value)
{
  ls_json_out_double (w, key, value > 0 ? value : NAN);
}

static void
add_measured (LsJsonOut *w, const LsReport *r, const LsMeasured *m, const GPtrArray *findings)
{
  ls_json_out_begin_object (w, "measured");
  ls_json_out_double (w, "step_time_s", m->step_s);
  ls_json_out_double (w, "error_pct", 100 * (r->step_time_s / m->step_s - 1));
  ls_json_out_string (w, "source", m->source);
  add_logged (w, "flops_per_gpu", m->flops_per_gpu);
  add_logged (w, "tokens_per_s", m->tokens_per_s);
  add_logged (w, "tokens_per_s_per_gpu", m->tokens_per_s_per_gpu);
  add_logged (w, "memory_bytes", m->memory_bytes);
  ls_json_out_begin_array (w, "findings");
  for (guint i = 0; i < findings->len; i++)
    ls_json_out_string (w, NULL, g_ptr_array_index (findings, i));
  ls_json_out_end_array (w);
  ls_json_out_end_object (w);
}

char *
ls_report_to_json (const LsReport *r, const LsReportProvenance *p, const LsReportExtras *extras)
{
  LsJsonOut w;
  ls_json_out_open_as (&w, "run");
  ls_json_out_double (&w, "step_time_s", r->step_time_s);
  ls_json_assumptions (&w, p->assumptions);
  if (extras && extras->interval)
    add_interval (&w, r, extras->interval);
  if (extras && extras->measured && extras->measured->step_s > 0)
    add_measured (&w, r, extras->measured, extras->findings);
  ls_json_out_double (&w, "first_step_s", r->first_step_s);
  ls_json_out_double (&w, "tokens_per_s", r->tokens_per_s);
  ls_json_out_double (&w, "mfu", r->mfu);
  ls_json_out_double (&w, "mfu_causal", r->mfu);
  ls_json_out_double (&w, "mfu_all_pairs", r->mfu_all_pairs);
  ls_json_out_double (&w, "hfu", r->hfu);
  ls_json_out_double (&w, "hfu_all_pairs", r->hfu_all_pairs);
  ls_json_out_double (&w, "flops_per_gpu", r->flops_per_gpu);
  ls_json_out_double (&w, "tokens_per_s_per_gpu", r->tokens_per_s_per_gpu);
  ls_json_out_double (&w, "params", r->n_params > 0 ? (double) r->n_params : NAN);
  ls_json_out_double (&w, "active_params", r->n_params > 0 ? (double) r->n_active_params : NAN);
  if (r->n_adapter_params > 0)
    ls_json_out_double (&w, "adapter_params", (double) r->n_adapter_params);
  ls_json_out_uint (&w, "n_ranks", r->n_ranks);
  ls_json_out_uint (&w, "n_classes", r->n_classes);
  ls_json_out_uint (&w, "n_steps", r->n_steps);
  ls_json_out_uint (&w, "n_op_instances", r->n_op_instances);
  ls_json_out_uint (&w, "n_segments", r->n_segments);
  ls_json_out_uint (&w, "n_segments_in_one_piece", r->n_coarse);
  ls_json_out_double (&w, "bubble_frac", r->bubble_frac);
  add_breakdown (&w, r);
  add_bubbles (&w, r);
  add_memory (&w, r);
  add_links (&w, r);
  add_link_groups (&w, r);
  add_networks (&w, r);
  if (extras && extras->critical_path)
    ls_critical_to_json (extras->critical_path, &w);
  if (extras && extras->sensitivity)
    ls_sensitivity_to_json (extras->sensitivity, &w);
  if (extras && extras->faults)
    ls_faults_to_json (extras->faults, &w);
  if (extras && extras->ecmp)
    ls_ecmp_to_json (extras->ecmp, &w);
  if (extras && extras->what_if) {
    ls_json_out_begin_object (&w, "what_if");
    ls_json_what_if (&w, extras->what_if);
    ls_json_out_end_object (&w);
  }
  if (extras && extras->step_spread)
    ls_spread_to_json (extras->step_spread, &w);
  add_provenance (&w, r, p);
  return ls_json_out_close (&w);
}
