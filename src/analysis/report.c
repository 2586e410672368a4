#include "analysis/report.h"

#include <math.h>
#include <string.h>

#include "analysis/conservation.h"
#include "strategy/shard.h"

/* --- memory that is to stay free: what takes it is in no category of what is simulated ----------- */

#define GIB 1073741824.0

void
ls_headroom_clear (LsHeadroom *h)
{
  if (!h)
    return;
  for (guint i = 0; h->parts && i < h->parts->len; i++) {
    g_free (g_array_index (h->parts, LsHeadroomPart, i).what);
    g_free (g_array_index (h->parts, LsHeadroomPart, i).source);
  }
  g_clear_pointer (&h->parts, g_array_unref);
  g_free (h->program);
  *h = (LsHeadroom) { 0 };
}

bool
ls_headroom_is_left (const LsHeadroom *h, uint64_t needed_bytes, uint64_t capacity_bytes)
{
  return needed_bytes <= capacity_bytes && h->bytes <= capacity_bytes - needed_bytes;
}

static void
append_gib (GString *out, uint64_t bytes)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append (out, g_ascii_formatd (text, sizeof text, "%.2f", (double) bytes / GIB));
}

char *
ls_headroom_text (const LsHeadroom *h)
{
  GString *out = g_string_new (NULL);
  append_gib (out, h->bytes);
  g_string_append (out, " GiB");
  if (h->program)
    g_string_append_printf (out, " for %s", h->program);
  for (guint i = 0; h->parts && i < h->parts->len; i++) {
    const LsHeadroomPart *p = &g_array_index (h->parts, LsHeadroomPart, i);
    g_string_append_printf (out, "%s%s ", i == 0 ? ": " : ", ", p->what);
    append_gib (out, p->bytes);
  }
  return g_string_free (out, FALSE);
}

/* --- every number of a run's result, computed from its timeline ---------------------------------- */

/* What is trained is not known: neither are tokens and FLOPs. */
static void
fill_no_speed (LsReport *r)
{
  r->tokens_per_s = r->flops_per_gpu = r->tokens_per_s_per_gpu = NAN;
  r->mfu = r->hfu = r->mfu_all_pairs = r->hfu_all_pairs = NAN;
}

static uint32_t
sequence (const LsModel *m, const LsStrategy *s)
{
  return s->seq ? s->seq : m->seq;
}

/* The vocabulary counts padded, as in Megatron-LM's own figure. */
static double
step_flops (const LsModel *m, const LsStrategy *s, bool is_causal)
{
  uint32_t seq = sequence (m, s);
  return ls_trained_flops (m, s, seq, is_causal) - ls_dropped_flops (m, s, seq);
}

/* GPUs of each kind: of these, [n]; NULL: of the cluster's, which are n. */
static void
count_kinds (const LsCluster *c, const LsPlan *plan, uint32_t n, uint32_t ret_n[LS_MAX_NODE_KINDS])
{
  if (!c->kind_of_host) {
    ret_n[0] = n;
    return;
  }
  for (uint32_t i = 0; i < n && plan; i++)
    ret_n[ls_cluster_kind_of (c, ls_cluster_host_of (c, ls_plan_gpu (plan, i)))]++;
  for (uint32_t host = 0; host < c->spec.n_nodes && !plan; host++)
    ret_n[ls_cluster_kind_of (c, host)] += ls_cluster_gpus_of (c, host);
}

/* Of the GPUs of all ranks over a step; no plan: the mean of the cluster's GPUs for each. */
static double
peak_flops (const LsStrategy *s, const LsCluster *c, const LsPlan *plan, uint32_t n_ranks, double step_s)
{
  uint32_t n_of_kind[LS_MAX_NODE_KINDS] = { 0 }, n = plan ? n_ranks : c->n_gpus;
  count_kinds (c, plan, n, n_of_kind);
  double peak = 0;
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (&c->spec); k++)
    peak += ls_cluster_spec_of_kind (&c->spec, k)->gpu.peak_flops[s->dtype] * ((double) n_of_kind[k] / n)
        * n_ranks * step_s;
  g_assert_cmpfloat (peak, >, 0);
  return peak;
}

double
ls_mfu (const LsModel *m, const LsStrategy *s, const LsCluster *c, const LsPlan *plan, uint32_t n_ranks,
        double step_s, bool is_causal)
{
  return step_flops (m, s, is_causal) / peak_flops (s, c, plan, n_ranks, step_s);
}

static void
fill_speed (LsReport *r, const LsTimeline *t, const LsModel *m, const LsStrategy *s, const LsCluster *c)
{
  double peak = peak_flops (s, c, t->plan, t->n_ranks, r->step_time_s);
  r->tokens_per_s = (double) s->global_batch * sequence (m, s) / r->step_time_s;
  r->mfu = step_flops (m, s, true) / peak;
  r->hfu = r->mfu + ls_plan_model_flops (t->plan, true, true) / peak;
  r->mfu_all_pairs = step_flops (m, s, false) / peak;
  r->hfu_all_pairs = r->mfu_all_pairs + ls_plan_model_flops (t->plan, true, false) / peak;
  r->flops_per_gpu = step_flops (m, s, false) / (t->n_ranks * r->step_time_s);
  r->tokens_per_s_per_gpu = r->tokens_per_s / t->n_ranks;
  r->n_params = ls_model_params (m, m->vocab);
  r->n_active_params = ls_model_active_params (m, m->vocab);
  const LsLora lora = ls_strategy_lora (s, m);
  r->n_adapter_params = ls_lora_params (m, &lora);
}

static void
fill_breakdown (LsReport *r, const LsTimeline *t)
{
  LsTime sum[LS_N_PARTS], bubbles[LS_N_BUBBLES];
  ls_breakdown (t, sum, bubbles);
  for (int part = 0; part < LS_N_PARTS; part++)
    r->breakdown_s[part] = ls_time_to_s (sum[part]) / t->n_ranks;
  for (int b = 0; b < LS_N_BUBBLES; b++)
    r->bubbles_s[b] = ls_time_to_s (bubbles[b]) / t->n_ranks;
  r->bubble_frac = r->breakdown_s[LS_PART_BUBBLE] / r->step_time_s;
}

static void
fill_memory (LsReport *r, const LsMemory *memory, const LsTimeline *t, const LsCluster *c)
{
  const LsClassMemory *fullest = ls_memory_fullest (memory);
  g_assert (fullest);
  const LsGpu *gpu = ls_cluster_gpu_spec (c, ls_plan_gpu (t->plan, fullest->rank));
  r->peak_rank = fullest->rank;
  r->peak_bytes = fullest->peak_bytes;
  r->needed_bytes = fullest->needed_bytes;
  r->capacity_bytes = ls_memory_capacity (gpu);
  r->context_bytes = MIN (gpu->reserved_bytes, gpu->hbm_bytes);
  r->fits = r->needed_bytes <= r->capacity_bytes;
  memcpy (r->by_category, fullest->category_peak, sizeof r->by_category);
  memcpy (r->at_peak, fullest->at_peak, sizeof r->at_peak);
}

static void
fill_cost_share (LsReport *r, const double cost_share[4])
{
  double all = cost_share[0] + cost_share[1] + cost_share[2];
  if (all <= 0)
    return;
  r->share_measured = cost_share[0] / all;
  r->share_fitted = cost_share[1] / all;
  r->share_roofline = cost_share[2] / all;
  r->share_extrapolated = cost_share[3] / all;
}

void
ls_report_init (LsReport *r, const LsTimeline *t, const LsMemory *memory, const LsModel *m,
                const LsStrategy *s, const LsCluster *c, const double cost_share[4])
{
  *r = (LsReport) {
    .step_time_s = ls_time_to_s (t->window_end - t->window_start),
    .first_step_s = ls_time_to_s (t->first_step),
    .n_ranks = t->n_ranks,
    .n_steps = t->n_steps,
    .n_op_instances = ls_plan_n_op_instances (t->plan),
    .digest = t->digest,
    .chip = ls_cluster_chip_word (&c->spec, 1),
    .n_segments = t->n_segments,
    .n_coarse = t->n_coarse,
  };
  for (uint32_t row = 0; row < t->n_rows; row++)
    r->n_classes += t->multiplicity[row] > 0;
  if (t->is_sampled) /* one of each role is recorded, all classes were simulated */
    r->n_classes = t->n_classes;
  if (m)
    fill_speed (r, t, m, s, c);
  else
    fill_no_speed (r);
  fill_breakdown (r, t);
  fill_memory (r, memory, t, c);
  ls_link_use_report (r, t, c);
  fill_cost_share (r, cost_share);
}

void
ls_report_clear (LsReport *r)
{
  for (guint i = 0; i < r->n_links; i++)
    g_free (r->links[i].name);
  g_free (r->links);
  for (guint i = 0; i < r->n_link_groups; i++)
    g_free (r->link_groups[i].name);
  g_free (r->link_groups);
  for (guint i = 0; i < r->n_networks; i++)
    g_free (r->networks[i].refused);
  g_free (r->networks);
  ls_headroom_clear (&r->headroom);
  *r = (LsReport) { 0 };
}
