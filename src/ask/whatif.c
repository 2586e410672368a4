#include "ask/whatif.h"

#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "base/list.h"
#include "base/order.h"
#include "compute/measured.h"
#include "data/jobs/job_files.h"
#include "data/text/override.h"
#include "job/assumptions.h"
#include "job/job_from.h"
#include "job/price.h"
#include "job/softwares.h"
#include "schedules/sched.h"
#include "strategy/strategy.h"

/* --- the single changes to a job that are worth trying, and what they cost -------------------------- */

typedef struct {
  const LsJobSpec *spec;
  const LsJobResult *r;
  const LsStrategy *s; /* resolved */
  const char *idea, *cost;
  bool needs_more;
  GPtrArray *changes; /* LsChange */
} Proposals;

/* A change without settings yet, which the proposals own. */
static LsChange *
propose (Proposals *p)
{
  LsChange *change = ls_change_new (p->idea, p->cost, p->needs_more);
  g_ptr_array_add (p->changes, change);
  return change;
}

/* A change of one knob. */
static void
propose_one (Proposals *p, const char *key, const char *value)
{
  ls_change_set (propose (p), key, "%s", value);
}

/* The batch of the job, where it would otherwise follow from what is changed. It does not under the order of
 * a file, which fixes all that it follows from. */
static void
keep_batch (const Proposals *p, LsChange *change)
{
  if (p->spec->strategy.global_batch == 0 && !p->spec->order)
    ls_change_set (change, "global-batch", "%u", p->s->global_batch);
}

/* --- pipeline ------------------------------------------------------------------------- */

/* The vpp with which the schedule can run, the job's own first; 0: none of these. Where chunks are stages
 * of replicas, a rank holds one stage of each. */
static uint32_t
vpp_for (const LsSched *sched, const LsStrategy *s)
{
  if (sched->placement == LS_PLACE_PIPES)
    return 1;
  LsSchedShape shape = { .pp = s->pp, .n_micro_batches = ls_strategy_most_micro_batches (s) };
  const uint32_t tried[] = { s->vpp, 1, 2, 0 };
  for (guint i = 0; i < G_N_ELEMENTS (tried); i++) {
    shape.vpp = tried[i];
    if (!ls_sched_refusal (sched, &shape))
      return ls_sched_n_chunks (sched, &shape);
  }
  return 0;
}

static void
propose_schedules (Proposals *p)
{
  const LsSched *sched;
  for (guint i = 0; p->s->pp > 1 && (sched = ls_sched_at (i)); i++) {
    uint32_t vpp = strcmp (sched->name, p->s->schedule) != 0 ? vpp_for (sched, p->s) : 0;
    if (vpp == 0)
      continue;
    LsChange *change = propose (p);
    ls_change_set (change, "schedule", "%s", sched->name);
    if (vpp != p->s->vpp)
      ls_change_set (change, "vpp", "%u", vpp);
  }
}

/* All values of a field with names but the job's own and those below first, which are "as by default". */
static void
propose_names (Proposals *p, const char *key, int own, int first)
{
  const LsField *field = ls_field_find (ls_strategy_fields, key);
  for (const LsEnumName *name = field->names; name->name; name++)
    if (name->value != own && name->value >= first)
      propose_one (p, key, name->name);
}

/* --- one number, twice and half of it ----------------------------------------------------- */

/* Of a batch twice alone; beside another micro-batch the batch stays. */
static void
propose_sizes (Proposals *p)
{
  const LsStrategy *s = p->s;
  const struct {
    const char *idea, *key;
    uint32_t own, least; /* 0: it has none; less is not proposed */
    bool moves_batch;
  } rows[] = {
    { "pipeline chunks", "vpp", s->vpp > 1 ? s->vpp : 0, 2 },
    { "expert layout", "ep", p->r->model.moe.n_experts > 0 ? s->ep : 0, 1 },
    { "micro-batch", "micro-batch", s->micro_batch, 1, true },
    { "batch", "global-batch", s->global_batch, UINT32_MAX },
  };
  for (guint i = 0; i < 2 * G_N_ELEMENTS (rows); i++) {
    uint32_t own = rows[i / 2].own, value = i % 2 == 0 ? 2 * own : own % 2 == 0 ? own / 2 : 0;
    if (value == 0 || (value < own && value < rows[i / 2].least) || strcmp (rows[i / 2].idea, p->idea) != 0)
      continue;
    LsChange *change = propose (p);
    ls_change_set (change, rows[i / 2].key, "%u", value);
    if (rows[i / 2].moves_batch)
      keep_batch (p, change);
  }
}

/* --- layout --------------------------------------------------------------------------- */

typedef struct {
  const char *key;
  uint32_t value;
} Degree;

/* A pipeline, and copies, of a job that has said that it has none. */
static void
allow (const Proposals *p, LsChange *change, const char *key)
{
  const LsStrategy *said = &p->spec->strategy;
  if (strcmp (key, "pp") == 0 && p->s->pp == 1) {
    if (said->schedule && ls_sched_find (said->schedule) == ls_sched_usual (1, 1))
      ls_change_set (change, "schedule", "%s", ls_sched_usual (2, 1)->name);
    if (said->mp.p2p == LS_P2P_NONE)
      ls_change_set (change, "p2p", "auto");
  } else if (strcmp (key, "tp") != 0 && said->dp_kind == LS_DP_NONE)
    ls_change_set (change, "dp-kind", "auto");
}

/* Twice of one degree for half of another. */
static void
propose_exchange (Proposals *p, Degree up, Degree down)
{
  if (down.value % 2 != 0)
    return;
  LsChange *change = propose (p);
  ls_change_set (change, up.key, "%u", 2 * up.value);
  ls_change_set (change, down.key, "%u", down.value / 2);
  if (p->s->vpp > 1 && strcmp (down.key, "pp") == 0 && down.value == 2)
    ls_change_set (change, "vpp", "1");
  allow (p, change, up.key);
  keep_batch (p, change);
}

static void
propose_layouts (Proposals *p)
{
  const LsStrategy *s = p->s;
  const Degree degrees[] = { { "tp", s->tp }, { "pp", s->pp }, { "dp", s->dp }, { "cp", s->cp } };
  for (guint up = 0; up < G_N_ELEMENTS (degrees); up++)
    for (guint down = 0; down < G_N_ELEMENTS (degrees); down++)
      if (up != down)
        propose_exchange (p, degrees[up], degrees[down]);
}

/* Beside another micro-batch, for which a pipeline needs several chunks; each token once. */
static void
propose_exchanges_of_tokens (Proposals *p)
{
  const LsStrategy *s = p->s;
  if (p->r->model.moe.n_experts == 0 || s->ep == 1)
    return;
  LsChange *change = propose (p);
  ls_change_set (change, "ep-overlap", s->mp.ep_overlap ? "0" : "1");
  if (!s->mp.ep_overlap)
    ls_change_set (change, "delay-wgrad", "1");
  else if (s->mp.delay_wgrad)
    ls_change_set (change, "delay-wgrad", "0");
  if (!s->mp.ep_overlap && s->pp > 1 && s->vpp == 1)
    ls_change_set (change, "vpp", "2");
  if (!s->mp.ep_overlap && s->experts.shared_overlap)
    ls_change_set (change, "shared-overlap", "0");
  if (!s->mp.ep_overlap && p->r->model.moe.shared_ffn > 0)
    ls_change_set (propose (p), "shared-overlap", s->experts.shared_overlap ? "0" : "1");
  propose_names (p, "dispatcher", s->experts.dispatcher, LS_DISPATCHER_ALL_TO_ALL);
}

/* --- batch, memory, precision ---------------------------------------------------------- */

static void
propose_parts (Proposals *p, uint32_t parts)
{
  const LsStrategy *s = p->s, of = { .memory.recompute_parts = parts };
  g_autofree char *text = ls_field_text (ls_field_find (ls_strategy_fields, "recompute_parts"), &of, NULL);
  if (s->recompute == LS_RECOMPUTE_SELECTIVE && (s->memory.recompute_parts & parts) == parts)
    return;
  LsChange *change = propose (p);
  ls_change_set (change, "recompute", "selective");
  ls_change_set (change, "recompute-parts", "%s", text);
}

/* What its program can run again, else what frees most for its time. The inside of attention, which is
 * proposed without its name, frees nothing where it is flash attention. Parts are of layers without
 * adapters. */
static void
propose_cheap_parts (Proposals *p)
{
  const LsSoftwareSpec *software = p->spec->program ? p->spec->program
      : p->spec->software                           ? p->spec->software
                                                    : ls_softwares_textbook ();
  const GArray *range = software ? software->ranges.values[ls_space_axis ("recompute_parts")] : NULL;
  uint32_t core = p->s->use.attention == LS_ATTENTION_FLASH ? 0 : LS_RECOMPUTE_CORE,
           usual = core | LS_RECOMPUTE_NORM | LS_RECOMPUTE_ACTIVATION;
  if (p->s->lora.rank > 0)
    return;
  for (guint i = 0; i < (range ? range->len : 1); i++) {
    uint32_t parts = range ? g_array_index (range, LsStrategy, i).memory.recompute_parts : 0;
    if (parts != LS_RECOMPUTE_CORE)
      propose_parts (p, parts == 0 ? usual : parts);
  }
}

static void
propose_recompute (Proposals *p)
{
  propose_names (p, "recompute", p->s->recompute, LS_RECOMPUTE_NONE);
  propose_cheap_parts (p);
}

/* --- data parallelism and overlap ------------------------------------------------------ */

/* There all is XLA's. */
static bool
runs_xla (const Proposals *p)
{
  return ls_cluster_traits (&p->r->cluster->spec)->runs_xla;
}

static void
set_backend (const Proposals *p, LsChange *change, int kind, uint32_t zero)
{
  ls_change_set (change, "dp-kind", "%s", ls_dp_kind_name (kind));
  ls_change_set (change, "zero", "%u", zero);
  if (kind != p->s->dp_kind && p->spec->software)
    ls_change_need (change, "other software");
}

static void
propose_backends (Proposals *p)
{
  static const struct {
    int kind;
    uint32_t zero;
  } tried[] = {
    { LS_DP_MEGATRON, 0 },  { LS_DP_MEGATRON, 1 },  { LS_DP_DDP, 0 },
    { LS_DP_DEEPSPEED, 1 }, { LS_DP_DEEPSPEED, 2 }, { LS_DP_DEEPSPEED, 3 },
    { LS_DP_FSDP1, 3 },     { LS_DP_FSDP2, 3 },     { LS_DP_XLA_FSDP, 3 },
  };
  for (guint i = 0; p->s->dp > 1 && i < G_N_ELEMENTS (tried); i++)
    if ((tried[i].kind != p->s->dp_kind || tried[i].zero != p->s->zero_stage)
        && (tried[i].kind == LS_DP_XLA_FSDP) == runs_xla (p))
      set_backend (p, propose (p), tried[i].kind, tried[i].zero);
}

/* The optimizer with ZeRO-2 or more, parameters with ZeRO-3. */
static void
propose_offload (Proposals *p)
{
  const LsStrategy *s = p->s;
  const LsEnumName *name = ls_field_find (ls_strategy_fields, "offload")->names;
  for (; !runs_xla (p) && name->name; name++) {
    if (name->value == s->memory.offload)
      continue;
    LsChange *change = propose (p);
    ls_change_set (change, "offload", "%s", name->name);
    if (name->value != LS_OFFLOAD_NONE)
      set_backend (p, change, LS_DP_DEEPSPEED,
                   MAX (s->zero_stage, name->value == LS_OFFLOAD_PARAMETERS ? 3 : 2));
  }
  if (s->memory.offload != LS_OFFLOAD_NONE)
    propose_names (p, "offload_to", s->memory.offload_to, 0);
}

static void
propose_overlap (Proposals *p)
{
  const LsStrategy *s = p->s;
  if (s->dp > 1)
    propose_one (p, "dp-overlap", s->data.overlap ? "0" : "1");
  if (s->tp < 2)
    return;
  LsChange *change = propose (p);
  ls_change_set (change, "tp-overlap", s->mp.tp_overlap ? "0" : "1");
  if (!s->mp.tp_overlap && !s->sp)
    ls_change_set (change, "sp", "1");
}

static void
propose_host (Proposals *p)
{
  LsChange *change = propose (p);
  ls_change_set (change, "host-launch", "0us");
  ls_change_set (change, "host-comm", "0us");
}

/* --- kernels and number formats --------------------------------------------------------- */

/* Those that the accelerator was measured with. */
static void
propose_attention_kernels (Proposals *p)
{
  const LsCalibration *known = &p->r->hardware->calibration;
  const LsEnumName *names = ls_field_find (ls_strategy_fields, "attention_kernel")->names;
  for (; p->s->use.attention == LS_ATTENTION_FLASH && names->name; names++)
    if (names->value != p->s->use.attention_kernel
        && ls_calibration_has_attention (known, (LsAttentionKernel) names->value))
      propose_one (p, "attention-kernel", names->name);
}

/* Lists that the program can run in the place of its own. */
static void
propose_kernels (Proposals *p)
{
  const GPtrArray *lists = ls_recipes_all ();
  for (guint i = 0; p->s->use.recipes && i < lists->len; i++) {
    const LsRecipes *list = lists->pdata[i];
    if (g_strcmp0 (list->variant_of, p->s->use.recipes->name) == 0
        && ls_recipes_fit_alone (list, &p->r->model))
      propose_one (p, "kernels", list->name);
  }
}

/* --- one knob, one other value ---------------------------------------------------------- */

static const char *
other (bool is_on)
{
  return is_on ? "0" : "1";
}

/* All of the idea that may be of use, where it makes a difference. Of documents of different lengths:
 * sequences of like work at the same time. */
static void
propose_switches (Proposals *p)
{
  const LsStrategy *s = p->s;
  const double *peak = p->r->cluster->spec.gpu.peak_flops;
  uint32_t node = ls_cluster_taken (&p->r->hardware->spec);
  g_autofree char *of_node = g_strdup_printf ("%u", node), *zero_of_node = g_strdup_printf ("3@%u", node);
  const struct {
    const char *idea;
    bool may;
    const char *knob, *value; /* NULL: all names but its own, from the first on */
    int own, first;
  } rows[] = {
    { "pipeline transfers", s->pp > 1, "p2p", NULL, s->mp.p2p, LS_P2P_BATCHED },
    { "order of documents", true, "lengths_balance",
      s->docs.balance == LS_LENGTHS_SORTED ? "none" : "sorted" },
    { "partitioned activations", true, "partition_activations", other (s->memory.partition_activations) },
    { "sequence parallelism", true, "sp", other (s->sp) },
    { "parameter gathers", true, "limit_all_gathers", other (s->data.limit_all_gathers) },
    { "parameter gathers", true, "forward_prefetch", other (s->data.forward_prefetch > 0) },
    { "parameter gathers", true, "reshard_after_forward", other (s->data.reshard_after_forward > 0) },
    { "parameter gathers", s->data.reshard_after_forward != node, "reshard_after_forward", of_node },
    { "parameter gathers", s->zero_stage == 3 && s->data.zero_group == 0, "zero", zero_of_node },
    { "parameter gathers", true, "gather_overlap", other (s->data.gather_overlap > 0) },
    { "offloaded activations", true, "offload_activations", other (s->memory.offload_activations) },
    { "attention", s->use.attention != LS_ATTENTION_FLASH, "attention", "flash" },
    { "number format", s->dtype != LS_DTYPE_BF16 && peak[LS_DTYPE_BF16] > 0, "dtype", "bf16" },
    { "number format", s->dtype != LS_DTYPE_FP16 && peak[LS_DTYPE_FP16] > 0, "dtype", "fp16" },
    { "number format", s->dtype != LS_DTYPE_FP8 && peak[LS_DTYPE_FP8] > 0, "dtype", "fp8" },
    { "number format", s->dtype != LS_DTYPE_NVFP4 && peak[LS_DTYPE_NVFP4] > 0, "dtype", "nvfp4" },
    { "fp8", true, "fp8_recipe", NULL, s->fp8.recipe, 0 },
    { "fp8", true, "fp8_params", other (s->fp8.params) },
    { "gradient format", s->opt.grad_dtype != LS_DTYPE_BF16, "grad_dtype", "bf16" },
    { "gradient format", s->opt.grad_dtype != LS_DTYPE_FP32, "grad_dtype", "fp32" },
    { "gradient accumulation", s->use.grad_apart, "grad_apart", "0" },
    { "gradient accumulation", true, "grad_fusion", other (s->use.grad_fusion) },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    if (strcmp (rows[i].idea, p->idea) != 0 || ls_strategy_idle (s, &p->r->model, rows[i].knob)
        || !rows[i].may)
      continue;
    else if (rows[i].value)
      propose_one (p, rows[i].knob, rows[i].value);
    else
      propose_names (p, rows[i].knob, rows[i].own, rows[i].first);
}

/* --- machine --------------------------------------------------------------------------- */

static void
propose_clusters (Proposals *p)
{
  const GArray *successors = p->r->hardware->spec.successors;
  if (ls_plan_has_ops (p->r->plan, LS_TAKES_GPU, true)) /* which would take as long there */
    return;
  for (guint i = 0; successors && i < successors->len; i++) {
    LsChange *change = propose (p);
    ls_change_set (change, "cluster", "%s", g_array_index (successors, char *, i));
    if (!p->spec->trace)
      ls_change_set (change, "gpus", "%u", p->r->plan->n_ranks);
    if (p->spec->gpu_calibration) /* which was measured on another machine */
      ls_change_set (change, "gpu-calibration", "own");
    if (p->spec->nccl)
      ls_change_set (change, "nccl", "own");
  }
}

/* "KEY=VALUE", with twice the rate of a link. */
static void
append_twice (GString *changes, const char *key, const LsLinkSpec *link)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append_printf (
      changes, "%s%s.bandwidth=%sGB/s", changes->len > 0 ? "," : "", key,
      g_ascii_formatd (number, sizeof number, "%.10g", 2 * link->bandwidth_bytes_per_s / 1e9));
}

/* The cluster with these changes besides those that it has. */
static void
propose_links_of (Proposals *p, const GString *changes)
{
  g_autofree char *changed = ls_override_add (p->spec->cluster, changes->str);
  propose_one (p, "cluster", changed);
}

/* Twice the NICs, with the PCIe links to them where these would limit, and twice the NVLinks. */
static void
propose_links (Proposals *p)
{
  const LsClusterSpec *s = &p->r->cluster->spec;
  if (!ls_cluster_traits (s)->has_counts)
    return;
  g_autoptr (GString) nics = g_string_new (NULL), nvlinks = g_string_new (NULL);
  if (s->nics.n > 0 && s->n_nodes > 1) {
    append_twice (nics, "node.nics.link", &s->nics.port);
    if (2 * s->nics.port.bandwidth_bytes_per_s * s->nics.port.efficiency
        > s->server.pcie.bandwidth_bytes_per_s * s->server.pcie.efficiency)
      append_twice (nics, "node.pcie.link", &s->server.pcie);
    propose_links_of (p, nics);
  }
  if (ls_server_has_nvlink (&s->server)) {
    append_twice (nvlinks, s->server.nvswitch_planes > 0 ? "node.nvswitch.link" : "node.nvlink_mesh.link",
                  &s->server.nvlink);
    propose_links_of (p, nvlinks);
  }
}

/* --- all of them ------------------------------------------------------------------------ */

#define NUMERICS "numerics: check that it converges"
#define KERNELS  "other kernels"
#define BOUND    "a bound: what CUDA graphs can give at most"

static const struct {
  const char *idea, *cost;
  void (*propose) (Proposals *p);
  bool of_machine; /* it changes nothing that a trace has fixed */
} ideas[] = {
  { "pipeline schedule", NULL, propose_schedules },
  { "pipeline chunks", NULL, propose_sizes },
  { "pipeline transfers", NULL, propose_switches },
  { "layout", NULL, propose_layouts },
  { "expert layout", NULL, propose_sizes },
  { "exchange of tokens", NULL, propose_exchanges_of_tokens },
  { "micro-batch", NULL, propose_sizes },
  { "order of documents", "sequences in another order", propose_switches },
  { "recomputation", NULL, propose_recompute },
  { "partitioned activations", NULL, propose_switches },
  { "sequence parallelism", NULL, propose_switches },
  { "overlap", NULL, propose_overlap },
  { "parameter gathers", NULL, propose_switches },
  { "data parallelism", NULL, propose_backends },
  { "offloading", "memory of the host", propose_offload },
  { "offloaded activations", "memory of the host", propose_switches },
  { "attention", KERNELS, propose_switches },
  { "attention kernel", KERNELS, propose_attention_kernels },
  { "kernels", KERNELS, propose_kernels },
  { "number format", NUMERICS, propose_switches },
  { "fp8", NUMERICS, propose_switches },
  { "gradient format", NUMERICS, propose_switches },
  { "gradient accumulation", KERNELS, propose_switches },
  { "batch", "a larger batch: more tokens to the same loss", propose_sizes },
  { "host", BOUND, propose_host, true },
  { "links", "other links", propose_links, true },
  { "cluster", "other accelerators", propose_clusters, true },
};

/* Without what needs another order: it is made for ranks, chunks and micro-batches. */
static void
keep_order (GPtrArray *changes)
{
  static const char *const keys[] = { "schedule", "pp", "vpp", "dp", "micro-batch", "global-batch", NULL };
  for (guint i = changes->len; i-- > 0;) {
    bool is_other = false;
    for (const char *const *key = keys; *key; key++)
      is_other |= ls_change_setting (changes->pdata[i], *key) != NULL;
    if (is_other)
      g_ptr_array_remove_index (changes, i);
  }
}

/* Which kinds of change are not proposed for this job, and why: a static sentence; NULL: all are. */
static const char *
changes_left_out (const LsJobSpec *spec)
{
  return spec->trace
      ? "Changes of the machine and its host alone: all else a trace has fixed, and other accelerators "
        "where it has times of kernels."
      : spec->order ? "Changes of schedule, pp, vpp, dp, micro-batch and batch are left out: the order of a "
                      "file fixes them."
                    : NULL;
}

GPtrArray *
ls_changes_propose (const LsJobSpec *spec, const LsJobResult *r)
{
  Proposals p = {
    spec, r, &r->strategy, NULL, NULL, false, g_ptr_array_new_with_free_func ((GDestroyNotify) ls_change_free)
  };
  bool is_fixed = !r->model.name || spec->trace;
  for (guint i = 0; i < G_N_ELEMENTS (ideas); i++) {
    if (is_fixed && !ideas[i].of_machine)
      continue;
    p.idea = ideas[i].idea;
    p.cost = ideas[i].cost;
    p.needs_more = p.cost && strcmp (p.cost, KERNELS) != 0;
    ideas[i].propose (&p);
  }
  if (spec->order)
    keep_order (p.changes);
  return p.changes;
}

/* --- which of them makes it faster ------------------------------------------------------------------ */

LsWhatIfRow
ls_what_if_row (const LsJobResult *r)
{
  const LsReport *p = &r->report;
  uint64_t wanted = p->needed_bytes + (p->headroom.is_asked ? p->headroom.bytes : 0),
           usual = p->needed_bytes + p->headroom.bytes;
  const LsPrice none = LS_PRICE_NOT_GIVEN, price = ls_price_of_cluster (&none, &r->cluster->spec);
  double exposed_s = 0;
  for (int i = LS_PART_EXPOSED_TP; i <= LS_PART_EXPOSED_COPY; i++)
    exposed_s += p->breakdown_s[i];
  return (LsWhatIfRow) {
    .step_time_s = p->step_time_s,
    .tokens_per_s = p->tokens_per_s,
    .exposed_s = exposed_s,
    .bubble_s = p->breakdown_s[LS_PART_BUBBLE],
    .needed_bytes = p->needed_bytes,
    .capacity_bytes = p->capacity_bytes,
    .short_bytes = wanted > p->capacity_bytes ? wanted - p->capacity_bytes : 0,
    .fits = p->fits,
    .lacking_bytes = p->fits && usual > p->capacity_bytes ? usual - p->capacity_bytes : 0,
    .usd_per_gpu_hour = price.usd_per_gpu_hour,
    .usd_per_million_tokens = 1e6 * ls_price_usd (&price, r->plan->n_ranks, p->tokens_per_s),
  };
}

/* --- simulating ------------------------------------------------------------------------- */

typedef struct {
  const LsJobSpec *spec;
  LsChange **changes;
  LsWhatIfRow *rows; /* each change has a place of its own */
} Tries;

/* The job with the change; NULL with the reason. */
static LsJobResult *
simulate (const LsJobSpec *spec, LsChange *change, GError **error)
{
  LsJobSpec changed;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJobResult) r = NULL;
  bool is_made = ls_change_make (change, spec, &changed, diags);
  changed.options.steady = changed.no_notes = true;
  changed.network = spec->network == LS_JOB_NETWORK_ALL ? LS_JOB_NETWORK_FLOW : spec->network;
  if (is_made)
    r = ls_job_spec_run (&changed, error);
  else
    ls_diag_list_to_error (diags, error);
  if (r && g_strcmp0 (changed.software_name, spec->software_name) != 0
      && !ls_software_check (changed.software, &r->model, &r->strategy, error))
    g_clear_pointer (&r, ls_job_result_free);
  ls_job_spec_clear (&changed);
  return g_steal_pointer (&r);
}

char *
ls_what_if_reason (const GError *error)
{
  g_auto (GStrv) lines = g_strsplit (error->message, "\n", -1);
  GString *out = g_string_new (NULL);
  for (char **line = lines; *line; line++) {
    const char *text = g_str_has_prefix (*line, "error: ") ? *line + strlen ("error: ") : *line;
    bool goes_on = out->len > 0 && out->str[out->len - 1] == ':';
    g_string_append_printf (out, "%s%s", goes_on ? " " : out->len > 0 && *text ? "; " : "", text);
  }
  return g_string_free (out, FALSE);
}

static void
try_one (guint i, gpointer data)
{
  const Tries *t = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) r = simulate (t->spec, t->changes[i], &error);
  t->rows[i] = r ? ls_what_if_row (r) : (LsWhatIfRow) { .refused = ls_what_if_reason (error) };
  t->rows[i].change = ls_change_text (t->changes[i]);
  t->rows[i].cluster = g_strdup (ls_change_setting (t->changes[i], "cluster"));
  if (r && t->rows[i].cluster) {
    ls_what_if_assume_headroom (t->spec, "headroom %s", r);
    t->rows[i].rests_on = g_array_ref (r->assumptions);
  }
  t->rows[i].idea = t->changes[i]->idea;
  t->rows[i].cost = t->changes[i]->cost;
}

void
ls_what_if_simulate (const LsJobSpec *spec, const GPtrArray *changes, guint n_threads,
                     const LsProgress *progress, LsWhatIf *w)
{
  guint first = w->rows->len;
  g_array_set_size (w->rows, first + changes->len);
  LsWhatIfRow *rows = &g_array_index (w->rows, LsWhatIfRow, first);
  Tries tries = { spec, (LsChange **) changes->pdata, rows };
  ls_parallel (changes->len, n_threads, try_one, &tries, progress);
  for (guint i = 0; i < changes->len; i++) {
    double faster = isnan (w->now.tokens_per_s) ? w->now.step_time_s / rows[i].step_time_s
                                                : rows[i].tokens_per_s / w->now.tokens_per_s;
    rows[i].number = first + i;
    rows[i].gain = rows[i].refused ? NAN : faster - 1;
  }
}

/* --- ranking ---------------------------------------------------------------------------- */

/* Most gain first, refused ones last; of equals that which was proposed first. */
static gint
compare_rows (gconstpointer x, gconstpointer y)
{
  const LsWhatIfRow *a = x, *b = y;
  if (!a->refused != !b->refused)
    return a->refused ? 1 : -1;
  if (!a->refused && a->gain != b->gain)
    return a->gain > b->gain ? -1 : 1;
  return LS_ORDER (a->number, b->number);
}

bool
ls_what_if_has_other_price (const LsWhatIf *w, const LsWhatIfRow *row)
{
  double now = w->now.usd_per_million_tokens * w->now.tokens_per_s,
         then = row->usd_per_million_tokens * row->tokens_per_s;
  return !row->refused && (isnan (then) != isnan (now) || fabs (then - now) > 1e-9 * now);
}

/* The first on that cluster, or NULL with another price; NULL: there is none. most: of those that do not fit,
 * and that do, with such a gain; NULL: all. */
static const LsWhatIfRow *
row_on (const LsWhatIf *w, const char *cluster, double least_gain, const guint *most)
{
  guint n[2] = { 0 };
  for (guint i = 0; i < w->rows->len; i++) {
    const LsWhatIfRow *row = &g_array_index (w->rows, LsWhatIfRow, i);
    bool is_shown = !most || (row->gain >= least_gain && n[row->fits]++ < most[row->fits]),
         is_it = cluster ? g_strcmp0 (row->cluster, cluster) == 0 : ls_what_if_has_other_price (w, row);
    if (is_shown && is_it && !row->refused)
      return row;
  }
  return NULL;
}

/* What the row's job has otherwise than `own`; not whose times it has, which its cluster says. */
static void
assume_otherwise (const LsWhatIfRow *row, bool is_shown, const GArray *own, GArray *all)
{
  static const char *const of_machine[] = { "gpu_calibration", "nccl", "clock_spread", NULL };
  g_autofree char *bare = ls_override_bare (row->cluster);
  guint first = all->len;
  ls_assumptions_add_beside (&all, row->rests_on, own);
  for (guint i = all->len; i-- > first;) {
    LsAssumption *a = &g_array_index (all, LsAssumption, i);
    g_autofree char *words = a->words, *value = a->value;
    a->words = words && is_shown ? g_strconcat (words, " on ", bare, NULL) : NULL;
    a->value = g_strconcat (value, " on ", bare, NULL);
    a->says_instead = true;
    if (g_strv_contains (of_machine, a->key))
      g_array_remove_index (all, i);
  }
}

void
ls_what_if_assume_others (const LsJobSpec *spec, const LsWhatIf *w, double least_gain, const guint *most,
                          LsJobResult *r)
{
  const char *file = "the accelerator's file";
  const LsClusterSpec *c = &r->cluster->spec;
  const GArray *successors = r->hardware->spec.successors;
  g_autoptr (GArray) before = NULL;
  ls_assumptions_add_beside (&before, r->assumptions, NULL);
  g_autofree char *own = ls_cluster_change (spec->cluster, c, "gpu.usd_per_hour", "USD");
  ls_price_assume_hour (&(LsPrice) { .usd_per_gpu_hour = w->now.usd_per_gpu_hour },
                        row_on (w, NULL, least_gain, most) ? "$%s for an hour of a GPU" : NULL,
                        ls_cluster_is_changed (spec->cluster, "gpu.usd_per_hour") ? NULL : file, own,
                        &r->assumptions);
  for (guint i = 0; successors && i < successors->len; i++) {
    const char *cluster = g_array_index (successors, char *, i);
    const LsWhatIfRow *row = row_on (w, cluster, 0, NULL);
    const bool is_shown = row_on (w, cluster, least_gain, most) != NULL;
    g_autofree char *bare = ls_override_bare (cluster),
                    *words = row && isnan (row->usd_per_gpu_hour)
        ? g_strdup_printf ("price of one of %s %%s", bare)
        : g_strconcat ("$%s for one of ", bare, NULL),
                    *path = g_strdup_printf ("successors.%u", i),
                    *dearer = ls_override_add (cluster, "gpu.usd_per_hour=USD"),
                    *other = ls_cluster_change (spec->cluster, c, path, dearer);
    if (row)
      assume_otherwise (row, is_shown, before, r->assumptions);
    if (row && ls_what_if_has_other_price (w, row))
      ls_price_assume_hour (&(LsPrice) { .usd_per_gpu_hour = row->usd_per_gpu_hour }, is_shown ? words : NULL,
                            ls_override_changes (cluster, "gpu", "usd_per_hour=") ? NULL : file, other,
                            &r->assumptions);
  }
}

void
ls_what_if_assume_headroom (const LsJobSpec *spec, const char *words, LsJobResult *r)
{
  const LsHeadroom *h = &r->report.headroom;
  const char *why = h->is_asked ? "the program's" : "noted, not demanded";
  for (guint i = 0; words && r->assumptions && i < r->assumptions->len; i++) {
    LsAssumption *a = &g_array_index (r->assumptions, LsAssumption, i);
    if (!r->model.name
        && g_str_equal (a->key, "software")) { /* of a trace, which rests on it for this alone */
      why = "the trace says no program; noted, not demanded";
      g_clear_pointer (&a->words, g_free);
    }
  }
  ls_assumptions_add (&r->assumptions, "headroom", ls_headroom_text (h), words,
                      spec->headroom.is_set ? NULL : why, "--headroom SIZE");
}

static LsWhatIf *
simulate_all (const LsJobSpec *spec, LsJobResult *r, const GPtrArray *changes, guint top, guint n_threads,
              const LsProgress *progress)
{
  const guint most[2] = { top, top };
  LsWhatIf *w = g_new (LsWhatIf, 1);
  ls_what_if_assume_headroom (spec, "headroom %s", r);
  *w = (LsWhatIf) { .now = ls_what_if_row (r),
                    .rows = ls_list_new (sizeof (LsWhatIfRow), ls_what_if_row_clear),
                    .knobs = r->knobs ? g_array_ref (r->knobs) : NULL };
  ls_what_if_simulate (spec, changes, n_threads, progress, w);
  g_array_sort (w->rows, compare_rows);
  ls_what_if_assume_others (spec, w, LS_LEAST_GAIN, top > 0 ? most : NULL, r);
  w->assumptions = g_array_ref (r->assumptions);
  return w;
}

LsWhatIf *
ls_what_if_new (const LsJobSpec *spec, LsJobResult *r, guint top, guint n_threads, const LsProgress *progress,
                GError **error)
{
  g_autoptr (GPtrArray) changes = ls_changes_propose (spec, r);
  if (changes->len == 0)
    return ls_fail_null (error, LS_ERROR_UNSUPPORTED, "a trace has fixed what could be changed");
  LsWhatIf *w = simulate_all (spec, r, changes, top, n_threads, progress);
  w->left_out = changes_left_out (spec);
  return w;
}

LsWhatIf *
ls_what_if_softwares (const LsJobSpec *spec, LsJobResult *r, guint n_threads, const LsProgress *progress,
                      GError **error)
{
  g_autoptr (GPtrArray) changes = g_ptr_array_new_with_free_func ((GDestroyNotify) ls_change_free);
  const GPtrArray *programs = ls_softwares ();
  const char *architecture = ls_hardware_architecture (r->hardware);
  int dp_kind = r->strategy.dp_kind;
  /* A single copy is data parallel in no way, which all have; what nobody said is each program's own. */
  bool is_free = dp_kind == LS_DP_NONE || !ls_job_says (spec, "dp_kind");
  for (guint i = 0; r->model.name && i < programs->len; i++) {
    const LsSoftwareSpec *program = programs->pdata[i];
    if ((!is_free && !ls_software_has_dp_kind (program, dp_kind))
        || !ls_software_names_architecture (program->architectures, architecture)
        || !ls_software_names_architecture (program->runs_on, architecture))
      continue;
    LsChange *change = ls_change_new ("another program", NULL, false);
    ls_change_set (change, "software", "%s", program->name);
    g_ptr_array_add (changes, change);
  }
  if (changes->len == 0)
    return ls_fail_null (error, LS_ERROR_UNSUPPORTED,
                         r->model.name ? "no program that is known has --dp-kind %s on such accelerators"
                                       : "a trace has fixed its program (%s)",
                         ls_dp_kind_name (r->strategy.dp_kind));
  LsWhatIf *w = simulate_all (spec, r, changes, 0, n_threads, progress);
  w->mixes_programs = true;
  return w;
}

void
ls_what_if_row_clear (gpointer row)
{
  ls_clear_3_texts (row);
  g_clear_pointer (&((LsWhatIfRow *) row)->rests_on, g_array_unref);
}

void
ls_what_if_free (LsWhatIf *w)
{
  if (!w)
    return;
  g_array_unref (w->rows);
  g_clear_pointer (&w->assumptions, g_array_unref);
  g_clear_pointer (&w->knobs, g_array_unref);
  g_free (w);
}

guint
ls_what_if_n_fit (const LsWhatIf *w)
{
  guint n = 0;
  for (guint i = 0; i < w->rows->len; i++) {
    const LsWhatIfRow *row = &g_array_index (w->rows, LsWhatIfRow, i);
    n += !row->refused && row->fits;
  }
  return n;
}
