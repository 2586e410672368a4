#include "job/job_interval.h"

#include <math.h>
#include <string.h>

#include "analysis/interval.h"
#include "data/machines/machines.h"
#include "data/text/override.h"
#include "job/job_from.h"
#include "job/job_steps.h"
#include "job/softwares.h"

#define NAME          "residuals"
#define NAME_TEXTBOOK "residuals-textbook" /* the same runs, whatever their programs, simulated as textbook */

static const char *
usual_name (const LsJobSpec *spec, const LsJobResult *r)
{
  const char *software = r ? r->strategy.program.software
      : spec->software     ? spec->software->name
                           : spec->strategy.program.software;
  return !software || strcmp (software, LS_SOFTWARE_TEXTBOOK) == 0 ? NAME_TEXTBOOK : NAME;
}

/* Without a name a missing file is no mistake: there is nothing to make an interval of. */
gboolean
ls_job_residuals_load (const LsJobSpec *spec, const LsJobResult *result, LsResiduals **ret_residuals,
                       GError **error)
{
  *ret_residuals = NULL;
  if (g_strcmp0 (spec->residuals, "none") == 0)
    return TRUE;
  const char *name = spec->residuals ? spec->residuals : usual_name (spec, result);
  if (!spec->residuals && !ls_residuals_exist (name)) {
    *ret_residuals = ls_residuals_new ();
    return TRUE;
  }
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  *ret_residuals = ls_residuals_load (name, diags);
  return *ret_residuals || ls_diag_list_to_error (diags, error);
}

/* ---- what a job has ---- */

static bool
is_across (const LsJobResult *r)
{
  return ls_gpus_span_nodes (r->cluster, r->plan->gpu_of_rank, r->plan->n_ranks);
}

/* Bytes/s of the NICs of a node, for each of its GPUs; 0: one node is enough. */
static double
fabric_rate (const LsJobResult *r, const LsClusterSpec *c)
{
  return !ls_cluster_traits (c)->is_slice && is_across (r)
      ? c->nics.n * c->nics.port.bandwidth_bytes_per_s / c->gpus_per_node
      : 0;
}

/* NULL: as almost all published runs, of which only the others are told. */
static const char *
transport_word (const LsJobResult *r, const LsClusterSpec *c)
{
  if (!is_across (r))
    return NULL;
  return c->nics.transport == LS_NIC_TCP ? "tcp" : c->nics.is_staged ? "host-memory" : NULL;
}

void
ls_job_traits (const LsJobResult *r, const LsClusterSpec *cluster, LsTraits *ret)
{
  const LsStrategy *s = &r->strategy;
  uint32_t n = r->plan->n_ranks;
  *ret = (LsTraits) { .chip = ls_cluster_chip_word (cluster, 1), .chips = ls_cluster_chip_word (cluster, 2) };
  ret->word[LS_ASPECT_FORMAT] = ls_dtype_name ((LsDtype) s->dtype);
  ret->word[LS_ASPECT_NODE]
      = n > 1 && cluster->gpus_per_node > 1 ? ls_cluster_traits (cluster)->word (cluster) : NULL;
  ret->word[LS_ASPECT_BACKEND] = s->dp > 1 ? ls_dp_kind_name (s->dp_kind) : NULL;
  ret->word[LS_ASPECT_SCHEDULE] = s->pp > 1 ? g_intern_string (s->schedule) : NULL;
  ret->word[LS_ASPECT_CONTEXT] = s->cp > 1 ? "on" : NULL;
  ret->word[LS_ASPECT_OFFLOAD] = s->memory.offload != LS_OFFLOAD_NONE ? "on" : NULL;
  ret->word[LS_ASPECT_EXPERTS] = r->model.moe.n_experts > 0 ? "on" : NULL;
  ret->word[LS_ASPECT_TRANSPORT] = transport_word (r, cluster);
  ret->figure[LS_ASPECT_GPUS - LS_N_WORD_ASPECTS] = n;
  ret->figure[LS_ASPECT_FABRIC - LS_N_WORD_ASPECTS] = fabric_rate (r, cluster);
  ret->figure[LS_ASPECT_GUESSED - LS_N_WORD_ASPECTS] = r->guessed_share;
  ret->figure[LS_ASPECT_TENSOR - LS_N_WORD_ASPECTS] = s->tp;
  ret->figure[LS_ASPECT_PARAMS - LS_N_WORD_ASPECTS]
      = r->model.name ? (double) ls_model_params (&r->model, r->model.vocab) : 0;
}

/* ---- its interval ---- */

/* Whether a change of the cluster's file is of what its accelerator computes or reads in a second. */
static bool
changes_rates (const char *asked)
{
  static const char *const keys[] = { "gpu.peak_flops", "gpu.hbm_bandwidth", "gpu.sm=" };
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    if (ls_override_changes (asked, keys[i], ""))
      return true;
  return false;
}

/* What measured runs cannot tell of a job, whosever they are; NULL: they may. */
static const char *
why_none (const LsJobSpec *spec, const LsJobResult *r)
{
  if (!r->model.name)
    return "the trace does not say what is trained";
  if (spec->network != LS_JOB_NETWORK_FLOW && spec->network != LS_JOB_NETWORK_ALL)
    return "the measured runs were compared with --network flow";
  return NULL;
}

/* What no published run is or has, and no aspect says; NULL: nothing. */
static const char *
unlike_all (const LsJobSpec *spec, const LsJobResult *r)
{
  const LsModel *m = &r->model;
  const LsStrategy *s = &r->strategy;
  const struct {
    bool holds;
    const char *what;
  } rows[] = {
    { changes_rates (spec->cluster), "is on an accelerator whose rates were changed" },
    { r->cluster->kind_of_host, "is on nodes of several kinds" },
    { r->hardware->calibration_of, "tells of kernels with the calibration of another GPU" },
    { s->layout.micro_batches_per_replica, "has replicas with unequal numbers of micro-batches" },
    { s->docs.lengths, "has documents of known lengths in a sequence" },
    { m->sides.encoder_layers > 0, "has an encoder" },
    { ls_model_is_compressed (m) || ls_model_n_streams (m) > 1,
      "has attention to compressed keys or several residual streams" },
    { m->moe.attention_experts > 0, "has experts of attention" },
    { m->layers.shared_blocks > 0, "has blocks that layers share" },
    { ls_model_has_beside (m), "has inputs of layers, shared keys and values, LAuReL or sparse MLPs" },
    { m->attn.difference || m->attn.kv_conv + m->attn.qk_conv > 0,
      "has differences of attention or convolutions of keys" },
    { ls_model_has_lists (m), "has layers that differ in width one by one" },
    { m->mixer.kind != LS_MIXER_NONE, "has layers without attention" },
  };
  guint i = 0;
  while (i < G_N_ELEMENTS (rows) && !rows[i].holds)
    i++;
  return i < G_N_ELEMENTS (rows) ? rows[i].what : NULL;
}

static void
find_published (const LsResiduals *residuals, const LsIntervalJob *job, const char *name, LsInterval *ret)
{
  if (residuals->name)
    ls_interval_find (residuals, job, ret);
  else
    *ret = (LsInterval) { .software = job->software,
                          .none = g_strdup_printf ("there is no file %s.json of measured runs", name) };
}

static bool
is_fitted (const LsFitted *f)
{
  return f->compute > 0 || f->overlap > 0 || f->intra_node > 0 || f->inter_node > 0 || f->host_launch > 0;
}

/* What was said besides the cluster, so that errors of its fit are not the job's: other published runs to
 * compare with, other figures than those that the fit multiplied. NULL: nothing. */
static const char *
flag_beside (const LsJobSpec *spec)
{
  if (spec->residuals)
    return "--residuals";
  if (spec->gpu_calibration)
    return "--gpu-calibration";
  return spec->nccl ? "--nccl" : NULL;
}

static void
apply_own_runs (const LsJobSpec *spec, const LsFitted *f, const LsIntervalJob *job, LsInterval *interval)
{
  const char *flag = flag_beside (spec);
  if (f->runs.n > 0 && flag)
    interval->remark
        = g_strdup_printf ("your %u runs (%s) do not count next to %s", f->runs.n, f->runs.file, flag);
  else if (f->runs.n > 0)
    ls_own_runs_interval (&f->runs, job, interval);
  else if (is_fitted (f))
    interval->remark = g_strdup ("the fit of this cluster does not say how far its runs were off");
}

/* ---- what is not known of its machine ---- */

/* Of the parts from..to of the step, up to the last. */
static double
share_of (const LsReport *r, LsPart from, LsPart to)
{
  double sum = 0;
  for (int part = from; part <= (int) to; part++)
    sum += r->breakdown_s[part];
  return r->step_time_s > 0 ? sum / r->step_time_s : 0;
}

/* Of each part of a machine; never NULL. */
typedef struct {
  const LsKnown *kernels, *inside, *across;
} Known;

/* What the user gives, unless it is what it has anyway, replaces what is known; what the job does not use is
 * as good as measured. Fits of kernels are of 16 bits: products of fp32 by other units are as far off as
 * those scaled from another GPU. */
static Known
known_of (const LsJobSpec *spec, const LsHardware *hardware, int dtype, uint32_t n_gpus, bool is_across)
{
  static const LsKnown measured, fp32 = { LS_KNOWN_SCALED, "products in 16 bits", 0.3 };
  const LsClusterSpec *c = &hardware->spec;
  g_autofree char *own = ls_hardware_nccl_name (&c->gpu);
  bool has_nccl = spec->nccl && strcmp (spec->nccl, own) != 0 && !ls_hardware_has_other_nccl (hardware);
  bool has_kernels = spec->gpu_calibration && g_strcmp0 (spec->gpu_calibration, c->gpu.calibration) != 0
      && !hardware->calibration_of;
  bool is_fp32
      = dtype == LS_DTYPE_FP32 && c->gpu.kernels_known.error < fp32.error && !ls_cluster_traits (c)->runs_xla;
  return (Known) {
    .kernels = has_kernels ? &measured
        : is_fp32          ? &fp32
                           : &c->gpu.kernels_known,
    .inside = has_nccl || n_gpus == 1 ? &measured : &c->gpu.collectives_known,
    .across = has_nccl || !is_across ? &measured : &c->network.known,
  };
}

static GString *
words_of (const Known *known)
{
  GString *words = g_string_new (NULL);
  ls_append_known (words, "kernels", known->kernels);
  ls_append_known (words, "collectives in a node", known->inside);
  ls_append_known (words, "collectives across nodes", known->across);
  return words;
}

void
ls_note_roofline (const LsHardware *hardware, GPtrArray *notes)
{
  if (!hardware->calibration.kind[LS_KERNEL_GEMM].is_fitted)
    ls_note (notes,
             "no kernel of %s was measured: they take what its data sheet promises, "
             "a bound that real ones do not reach; with your own: lockstep calibrate",
             hardware->spec.gpu.name);
}

void
ls_note_machine (const LsJobSpec *spec, const LsHardware *hardware, uint32_t n_gpus, GPtrArray *notes)
{
  bool is_across = n_gpus > ls_cluster_taken (&hardware->spec);
  const Known known = known_of (spec, hardware, spec->strategy.dtype, n_gpus, is_across);
  g_autoptr (GString) words = words_of (&known);
  ls_note_network (&hardware->spec, is_across, notes);
  ls_cluster_doubts (&hardware->spec, notes);
  ls_note_known (words, notes);
  ls_note_roofline (hardware, notes);
}

/* Kernels by their share of the step, exposed communication by its own. */
static void
widen_for_machine (const LsJobSpec *spec, const LsJobResult *r, LsInterval *interval)
{
  const Known known = known_of (spec, r->hardware, r->strategy.dtype, r->plan->n_ranks, is_across (r));
  g_autoptr (GString) words = words_of (&known);
  if (words->len == 0)
    return;
  double error = known.kernels->error * share_of (&r->report, LS_PART_FORWARD, LS_PART_SLOWDOWN)
      + fmax (known.inside->error, known.across->error)
          * share_of (&r->report, LS_PART_EXPOSED_TP, LS_PART_EXPOSED_EP);
  ls_interval_widen (interval, error, words->str);
}

static void
lengthen_for_missing (const LsJobSpec *spec, const LsJobResult *r, LsInterval *interval)
{
  guint at = 0;
  for (const LsMissing *m; (m = ls_job_missing (ls_job_software (spec, r), &r->model, &r->strategy, &at));)
    if (m->times > 1)
      ls_interval_lengthen (interval, m->times, m->what);
}

/* Releases before had another attention on Hopper: FlashAttention-2, and then an earlier one of cuDNN's
 * (NVIDIA/TransformerEngine@32db3928, of December 2023). */
#define YEAR_OF_ATTENTION 2025

/* A launch file whose options are of several years: the interval holds what earlier ones ran. */
static void
widen_for_release (const LsJobSpec *spec, const LsJobResult *r, LsInterval *interval)
{
  const LsImported *from = spec->from;
  bool may_be_older = from && from->first_year > 0 && from->first_year < YEAR_OF_ATTENTION
      && from->last_year >= YEAR_OF_ATTENTION && r->strategy.use.attention == LS_ATTENTION_FLASH
      && r->strategy.use.attention_kernel == LS_ATTENTION_KERNEL_CUDNN
      && !ls_job_says (spec, "attention_kernel");
  if (!may_be_older || interval->none)
    return;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsJobSpec older;
  ls_job_spec_copy (spec, &older);
  older.no_notes = true;
  g_autoptr (LsJobResult) other
      = ls_job_spec_set (&older, "attention_kernel", "fa2", diags) ? ls_job_spec_run (&older, NULL) : NULL;
  ls_job_spec_clear (&older);
  if (!other)
    return;
  double ratio = other->report.step_time_s / r->report.step_time_s;
  g_autofree char *before = interval->remark;
  interval->low *= fmin (1, ratio);
  interval->high *= fmax (1, ratio);
  interval->remark = g_strdup_printf (
      "%s%sits options are those of %u to %u: it holds attention_kernel fa2 too "
      "(--set attention_kernel=fa2), nearer to what ran before %u",
      before ? before : "", before ? "; " : "", from->first_year, from->last_year, YEAR_OF_ATTENTION);
}

void
ls_job_interval (const LsJobSpec *spec, const LsJobResult *r, const LsResiduals *residuals,
                 const char *without, LsInterval *ret)
{
  const char *none = why_none (spec, r);
  *ret = (LsInterval) { .none = g_strdup (none) };
  if (none)
    return;
  const char *architecture = ls_hardware_architecture (r->hardware);
  const LsSoftwareSpec *named = ls_job_software (spec, r);
  const char *like = named ? named->runs_like : NULL,
             *software = ls_softwares_runs_like (like, &r->strategy, architecture);
  LsIntervalJob job = { .architecture = architecture,
                        .software = software,
                        .mfu = ls_job_result_mfu (r, false),
                        .unlike = unlike_all (spec, r),
                        .without = without };
  ls_job_traits (r, &r->hardware->spec, &job.traits);
  find_published (residuals, &job, usual_name (spec, r), ret);
  apply_own_runs (spec, &r->hardware->spec.fitted, &job, ret);
  if (ret->n_runs > 0)
    return;
  widen_for_machine (spec, r, ret);
  lengthen_for_missing (spec, r, ret);
  widen_for_release (spec, r, ret);
}
