/* job/job_notes.c — what keeps a job from what its schedule promises; knobs that were set and make no
 * difference. */
#include <math.h>
#include <string.h>
#include <lockstep/units.h>

#include "compute/around.h"
#include "compute/measured.h"
#include "data/jobs/emit.h"
#include "data/jobs/imported.h"
#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "data/text/override.h"
#include "data/traces/traces.h"
#include "job/job_from.h"
#include "job/job_interval.h"
#include "job/job_steps.h"
#include "job/softwares.h"
#include "model/expert_load.h"
#include "model/mixer.h"
#include "schedules/sched.h"
#include "strategy/shard.h"
#include "strategy/strategy.h"

/* ---- job notes program ---- */

/* Notes on the program that a job names: that it does not run there, or cannot run such a job. */

/* "GPUs" of "gpu". */
static char *
runs_on_words (const LsSoftwareSpec *software)
{
  if (g_str_equal (software->runs_on, LS_ARCHITECTURES_OF_GPUS))
    return g_strdup ("GPUs");
  return g_str_equal (software->runs_on, LS_ARCHITECTURE_TPU)
      ? g_strdup ("TPUs")
      : g_strdup_printf ("accelerators of architecture %s", software->runs_on);
}

/* The refusals of the writer of its jobs, a line "error: KNOB: WHY" each behind the first, as one. */
static char *
in_one_line (const char *refusals)
{
  static const char word[] = "error: ";
  g_auto (GStrv) lines = g_strsplit (refusals, "\n", -1);
  g_autoptr (GString) all = g_string_new (NULL);
  for (guint i = 1; lines[i]; i++) {
    const char *line = g_str_has_prefix (lines[i], word) ? lines[i] + strlen (word) : lines[i];
    g_string_append_printf (all, "%s%s", all->len > 0 ? "; " : "", line);
  }
  return g_string_free (g_steal_pointer (&all), FALSE);
}

/* A job that names a program, without asking that it be able to run it (--for). What a file of the program
 * says, it ran. Without writers nothing is known of it. */
static void
note_what_it_cannot (const LsJobSpec *spec, LsJobResult *r)
{
  g_autoptr (GError) refused = NULL;
  if (!spec->software || !spec->software->emit || !*ls_emit_targets () || spec->program || spec->from
      || ls_software_check (spec->software, &r->model, &r->strategy, &refused))
    return;
  g_autofree char *what = in_one_line (refused->message);
  ls_note (r->notes,
           "software %s: %s cannot express this job, which is simulated as if it "
           "could (--for %s refuses it): %s",
           r->strategy.program.software, spec->software->program, spec->software->emit, what);
}

/* Whether the job is run in that way (LS_SOFTWARE_WAYS). */
static bool
is_run_by (const LsStrategy *s, const char *way)
{
  const struct {
    const char *way;
    bool is_used;
  } ways[] = { { "tp", s->tp > 1 }, { "pp", s->pp > 1 },          { "cp", s->cp > 1 },
               { "ep", s->ep > 1 }, { "sp", s->sp && s->tp > 1 }, { "fp8", s->dtype == LS_DTYPE_FP8 } };
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++)
    if (strcmp (ways[i].way, way) == 0)
      return ways[i].is_used;
  g_assert_not_reached ();
}

/* Of programs for which no jobs are written: their files say what they lack. */
static void
note_what_it_lacks (const LsJobSpec *spec, LsJobResult *r)
{
  const GArray *lacks = spec->software && !spec->from ? spec->software->lacks : NULL;
  g_autoptr (GString) used = g_string_new (NULL);
  for (guint i = 0; lacks && i < lacks->len; i++) {
    g_auto (GStrv) ways = g_strsplit (g_array_index (lacks, LsLacking, i).ways, ",", -1);
    for (char **way = ways; *way; way++)
      if (is_run_by (&r->strategy, *way))
        g_string_append_printf (used, "%s%s", used->len > 0 ? ", " : "", *way);
  }
  if (used->len > 0)
    ls_note (r->notes, "software %s: %s of that release has no %s; this job is simulated as if it had",
             r->strategy.program.software, spec->software->program, used->str);
}

/* --- what is not simulated of it ------------------------------------------------------------------ */

static bool
has_condition (const LsModel *m, const LsStrategy *s, const char *condition)
{
  g_auto (GStrv) pair = g_strsplit (condition, "=", 2);
  const LsField *of_strategy = ls_field_find (ls_strategy_fields, pair[0]);
  g_autofree char *value = of_strategy ? ls_field_text (of_strategy, s, NULL)
                                       : ls_field_text (ls_field_find (ls_model_fields, pair[0]), m, NULL);
  return ls_software_condition_holds (pair[1], value ? value : "");
}

const LsMissing *
ls_job_missing (const LsSoftwareSpec *software, const LsModel *m, const LsStrategy *s, guint *at)
{
  const GArray *misses = software && m->name ? software->misses : NULL;
  while (misses && *at < misses->len) {
    const LsMissing *missing = &g_array_index (misses, LsMissing, (*at)++);
    char **condition = missing->when;
    while (*condition && has_condition (m, s, *condition))
      condition++;
    if (!*condition)
      return missing;
  }
  return NULL;
}

void
ls_note_missing (const LsSoftwareSpec *software, const LsModel *m, const LsStrategy *s, uint64_t memory_bytes,
                 GPtrArray *notes)
{
  guint at = 0;
  for (const LsMissing *x; (x = ls_job_missing (software, m, s, &at));) {
    g_autofree char *bytes = ls_format_bytes ((guint64) (x->memory * (double) memory_bytes));
    GString *line = g_string_new ("warning: ");
    g_string_append_printf (line, "%s is not simulated as it is: %s", software->program, x->what);
    if (x->times > 1)
      g_string_append_printf (line, "; such steps were measured up to %.3g times as long as simulated",
                              x->times);
    if (x->memory != 1)
      g_string_append_printf (line, "; of such memory %.3g times as much was measured: that would be %s here",
                              x->memory, bytes);
    g_string_append_printf (line, " (%s)", x->source);
    g_ptr_array_add (notes, g_string_free (line, FALSE));
  }
}

void
ls_job_note_program (const LsJobSpec *spec, LsJobResult *r)
{
  if (!r->model.name || r->trace)
    return;
  const LsSoftwareSpec *program = ls_job_software (spec, r);
  note_what_it_cannot (spec, r);
  note_what_it_lacks (spec, r);
  ls_note_missing (program, &r->model, &r->strategy, r->report.needed_bytes, r->notes);
  if (!program || ls_software_names_architecture (program->runs_on, ls_hardware_architecture (r->hardware)))
    return;
  g_autofree char *on = runs_on_words (program);
  ls_note (r->notes, "software %s: %s runs on %s, not on %s; it is simulated there as if it did",
           r->strategy.program.software, program->program, on, r->cluster->spec.gpu.name);
}

/* ---- job notes recompute ---- */

/* Of a chunk of a pipeline stage, the most. */
static uint32_t
most_layers_of_chunk (const LsJobResult *r)
{
  uint32_t n = r->strategy.pp * r->strategy.vpp, most = 0;
  g_autofree uint32_t *layers = g_new0 (uint32_t, n);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!ls_chunk_layers (&r->strategy, &r->model, layers, diags))
    return UINT32_MAX;
  for (uint32_t i = 0; i < n; i++)
    most = MAX (most, layers[i]);
  return most;
}

/* As Megatron-LM takes it: of more layers than there are all run again. */
static void
note_recomputed_layers (LsJobResult *r)
{
  const LsStrategy *s = &r->strategy;
  uint32_t most = most_layers_of_chunk (r), asked = s->memory.recompute_layers;
  for (uint32_t i = 0; s->memory.recompute_stages && i < s->pp; i++)
    asked = MAX (i == 0 ? 0 : asked, s->memory.recompute_stages[i]);
  if (s->recompute == LS_RECOMPUTE_FULL && asked > most)
    ls_note (r->notes,
             "%u layers are to be recomputed, and no stage has more than "
             "%u at once: these all are",
             asked, most);
}

#define LEAST_SHARE 0.01 /* of a step that is worth a line */

/* In a whole backward the collective of an input gradient runs beside the GEMM of the weight gradient
 * (lower/layers/lower_operator.c); I has none. */
static void
note_tensor_parallel (LsJobResult *r)
{
  const LsStrategy *s = &r->strategy;
  double exposed = r->report.breakdown_s[LS_PART_EXPOSED_TP];
  if (s->tp == 1 || !s->mp.tp_async || s->mp.tp_overlap || exposed < LEAST_SHARE * r->report.step_time_s)
    return;
  ls_note (r->notes,
           "%s puts weight gradients off: tensor-parallel collectives of backwards "
           "have no GEMM of them to run together with,"
           " as they have in 1f1b (exposed tp %.1f %% of the step)",
           s->schedule, 100 * exposed / r->report.step_time_s);
}

void
ls_job_note_schedule (LsJobResult *r)
{
  const LsSched *sched = r->model.name ? ls_sched_find (r->strategy.schedule) : NULL;
  if (!sched || !sched->is_split || !r->notes || r->strategy.pp == 1)
    return;
  note_tensor_parallel (r);
  if (sched->bounded && !r->report.fits)
    ls_note (r->notes,
             "%s holds as many activations as make it shorter, whatever a GPU has: %s "
             "hold fewer",
             sched->name, sched->bounded);
}

static void
note_tcp (const LsClusterSpec *c, GPtrArray *notes)
{
  if (c->nics.socket_bytes_per_s == LS_SOCKET_RATE) /* none of the user's own */
    ls_note (
        notes,
        "sockets carry what crosses nodes: %.3g GB/s of each NIC at most, what a core of a CPU receives; "
        "another rate is --cluster NAME:node.nics.socket_rate=RATE, and what you measured lockstep calibrate "
        "--nccl LOG",
        c->nics.socket_bytes_per_s / 1e9);
}

void
ls_append_known (GString *words, const char *what, const LsKnown *known)
{
  if (known->by == LS_KNOWN_MEASURED)
    return;
  const char *from = known->by == LS_KNOWN_SCALED ? "scaled from " : "from data sheets";
  const char *of = known->by == LS_KNOWN_SCALED ? (known->of ? known->of : "another machine") : "";
  g_string_append_printf (words, "%s%s %s%s (%.0f %%)", words->len > 0 ? ", " : "", what, from, of,
                          100 * known->error);
}

void
ls_note_known (const GString *words, GPtrArray *notes)
{
  if (words->len > 0)
    ls_note (notes,
             "not measured on this machine, with what a time is typically "
             "off for that: %s",
             words->str);
}

/* Chips that are no slice, nor slices alike, lie in slices of which the last has idle ones. What is cut over
 * all of them then goes round in one ring, where each could hold a copy (prefer_xla() in job.c). */
static void
note_slices (const LsJobSpec *spec, LsJobResult *r)
{
  const LsClusterSpec *c = &r->cluster->spec;
  const LsStrategy *s = &r->strategy;
  uint32_t n = r->plan->n_ranks, of_slice = c->gpus_per_node, n_slices = n / of_slice + 1;
  bool is_chosen = spec->slice[0] > 0 || spec->n_nodes > 0 || r->hardware->spec.torus.is_given;
  if (!ls_cluster_traits (c)->is_slice || n % of_slice == 0 || is_chosen)
    return;
  bool is_across
      = n_slices > 1 && s->zero_stage == 3 && (s->data.zero_group == 0 || s->data.zero_group > of_slice);
  g_autofree char *across = is_across
      ? g_strdup_printf ("; what is cut over slices that are not alike goes round all chips in one ring, "
                         "by a NIC of each slice: %u chips would be a copy in each",
                         n_slices * of_slice)
      : g_strdup ("");
  ls_note (r->notes,
           "%u chips are no whole slice%s: they lie in %u of %u chips, of which %u "
           "are idle%s",
           n, n_slices > 1 ? "s" : "", n_slices, of_slice, n_slices * of_slice - n, across);
}

/* A file of ours says no number of nodes: they are as many as a job needs. */
void
ls_job_note_nodes (const LsJobSpec *spec, LsJobResult *r)
{
  note_slices (spec, r);
  const char *counted = ls_allocation_note (r->strategy.layout.allocation);
  if (counted)
    g_ptr_array_add (r->notes, g_strdup (counted));
  uint32_t said = r->hardware->spec.n_nodes, taken = r->cluster->spec.n_nodes,
           per_node = ls_cluster_taken (&r->cluster->spec);
  if (spec->n_nodes > 1 && !r->strategy.layout.allocation && r->plan->n_ranks <= per_node)
    ls_note (r->notes, "--nodes %u has no effect here: %u ranks fill the first node%s", spec->n_nodes,
             r->plan->n_ranks, r->plan->n_ranks < per_node ? " in part" : "");
  if (spec->n_nodes == 0 && said > 1 && taken > said)
    ls_note (r->notes,
             "the cluster says %u nodes, the job takes %u: it is simulated on as many; "
             "--nodes %u holds it to what the cluster says",
             said, taken, said);
}

/* By ls_nic_of_gpu(), rings and messages alike. */
static void
note_idle_nics (const LsClusterSpec *c, GPtrArray *notes)
{
  ls_note (notes,
           "a node has %u NICs for %u GPUs: what crosses nodes uses one of each "
           "GPU. Where NCCL sees several as one (ports of an adapter, a plugin), "
           "say so: node.nics.count %u, and the bandwidth of all in node.nics.link "
           "and fabric.link",
           c->nics.n, c->gpus_per_node, c->gpus_per_node);
}

void
ls_note_network (const LsClusterSpec *cluster, bool is_across, GPtrArray *notes)
{
  if (cluster->nics.transport == LS_NIC_TCP && is_across)
    note_tcp (cluster, notes);
  if (!ls_cluster_traits (cluster)->is_slice && is_across && cluster->nics.n > cluster->gpus_per_node)
    note_idle_nics (cluster, notes);
}

/* named: the program that the job names; NULL: none, and kernels are the textbook's. Of DeepSpeed and of
 * whatever launches what the built-in kernels do not; on TPUs kernels are a roofline anyway. */
static void
note_built_in (const LsSoftwareSpec *named, LsJobResult *r)
{
  bool is_program = named && strcmp (named->name, LS_SOFTWARE_TEXTBOOK) != 0,
       is_other
      = !ls_dp_traits (r->strategy.dp_kind)->is_megatron && !ls_cluster_traits (&r->cluster->spec)->runs_xla;
  if (!is_program || r->strategy.use.kernels || !is_other)
    return;
  ls_note (r->notes,
           "kernels are fused, as Megatron-Core and Transformer Engine launch them; "
           "what runs with --dp-kind %s may launch others:"
           " --software NAME (lockstep list software) or --kernels NAME (lockstep "
           "list kernels)",
           ls_dp_kind_name (r->strategy.dp_kind));
}

/* The implementation of attention that the job runs, where its accelerator was not measured with it.
 * is_said: by the job, not its program. */
static void
note_attention (bool is_said, LsJobResult *r)
{
  const LsStrategy *s = &r->strategy;
  bool runs = r->model.attention == LS_ATTENTION_FLASH || s->use.attention == LS_ATTENTION_FLASH;
  if (!runs || ls_hardware_has_attention (r->hardware, s->use.attention_kernel))
    return;
  bool is_fitted = r->hardware->calibration.kind[LS_KERNEL_ATTENTION_FWD].is_fitted;
  const LsField *field = ls_field_find (ls_strategy_fields, "attention_kernel");
  const LsStrategy other = { .use.attention_kernel = s->program.attention_else };
  g_autofree char *name = ls_field_text (field, s, NULL), *flag = ls_field_flag (field),
                  *runs_as = ls_field_text (field, &other, NULL);
  ls_note (r->notes, "%s%sattention by %s was not measured on %s: it takes the time of %s",
           is_said ? flag : "", is_said ? " has no effect here: " : "", name, r->cluster->spec.gpu.name,
           s->program.attention_else ? runs_as
               : is_fitted           ? "what was"
                                     : "its data sheet");
}

/* Of the implementation that the job runs: that it was not measured on this accelerator, but on another one
 * (LsKindFit.is_fitted). */
static void
note_guessed_attention (LsJobResult *r)
{
  const LsStrategy *s = &r->strategy;
  const LsCalibration *c = &r->hardware->calibration;
  bool is_fp8 = s->fp8.attention != LS_FP8_ATTENTION_NONE, runs = s->use.attention == LS_ATTENTION_FLASH;
  if (!runs || s->use.attention_kernel == LS_ATTENTION_KERNEL_AUTO)
    return;
  LsAttentionKernel kernel = is_fp8
      ? ls_cudnn_attention (LS_DTYPE_FP8, s->fp8.attention == LS_FP8_ATTENTION_MXFP8)
      : (LsAttentionKernel) s->use.attention_kernel;
  if (!ls_calibration_has_attention (c, kernel)
      || (c->kind[ls_entry_attention (kernel, 0)].is_fitted
          && c->kind[ls_entry_attention (kernel, 1)].is_fitted))
    return;
  const LsField *field = ls_field_find (ls_strategy_fields, "attention_kernel");
  g_autofree char *name = ls_field_text (field, s, NULL);
  ls_note (r->notes,
           "attention by %s%s was not measured on %s: its times are those of another accelerator, "
           "scaled, as the source in calibration %s says",
           name, is_fp8 ? " in fp8" : "", r->cluster->spec.gpu.name, c->name);
}

/* Units that multiply fp8 no faster than 16 bits: v5p and v6e convert it. */
static void
note_slow_fp8 (LsJobResult *r)
{
  const LsGpu *gpu = &r->cluster->spec.gpu;
  if (r->strategy.dtype == LS_DTYPE_FP8 && gpu->peak_flops[LS_DTYPE_FP8] <= gpu->peak_flops[LS_DTYPE_BF16])
    ls_note (r->notes,
             "fp8 on %s: its products take as long as in bf16, it has no faster "
             "units for them; what fp8 adds around them is on top",
             gpu->name);
}

/* Grouped products and fused copies of rows stand for what some software does expert by expert. */
static void
note_experts (const LsSoftwareSpec *program, LsJobResult *r)
{
  if (r->model.moe.n_experts > 0 && program && program->experts)
    ls_note (r->notes, "%s runs %s; here they run as Megatron-LM's, which is faster", program->program,
             program->experts);
}

/* Kernels of gated delta nets alone were measured (access triton-dot); products of other mixers' chunks take
 * their rate. */
static void
note_mixer (LsJobResult *r)
{
  LsMixerKernels kernels = (LsMixerKernels) ls_mixers[r->model.mixer.kind].kernels;
  const LsAccessFit *fit = &r->hardware->calibration.access[LS_ACCESS_TRITON_DOT];
  bool is_known = fit->elements_per_sm > 0, is_measured = kernels == LS_MIXER_MEASURED_CHUNKS;
  if (kernels == LS_MIXER_NO_KERNELS || (is_measured && fit->is_fitted))
    return;
  ls_note (r->notes, "no kernel of the layers without attention was measured%s: %s",
           is_measured ? " on this accelerator" : "",
           kernels == LS_MIXER_SCAN ? "their scan takes the time of its bytes and FLOPs"
               : !is_known          ? "products of their chunks take the time of a library's"
               : fit->is_fitted
               ? "products of their chunks take the rate of gated delta nets'"
               : "products of their chunks take the rate of gated delta nets' on another, scaled");
}

/* What it costs to launch one of them rests on one measurement (exec/replay/host.c). */
#define MUCH_OF_A_STEP 0.1

static void
note_lone_products (LsJobResult *r)
{
  double share = r->report.breakdown_s[LS_PART_HOST] / r->report.step_time_s;
  if (r->model.moe.n_experts > 0 && !r->strategy.experts.grouped_gemm && share > MUCH_OF_A_STEP)
    ls_note (r->notes,
             "the host takes %.0f %% of the step: products of experts are launched "
             "one by one, by one measured cost (--set host_product); "
             "--grouped-gemm launches all in one",
             100 * share);
}

/* Of Qwen3 235B in mxfp8 on B200 the host took 16 ms for a layer both ways, with 16 experts a rank, where its
 * kernels take 4.9; graphs of its smaller parts saved a tenth (tests/accuracy/DISSECTION.md, "DeepSeek-V3 and
 * Qwen3 235B on B200"). */
#define HOST_OF_A_LAYER_S 0.016

/* What a rank is busy with, or waits for, a layer and micro-batch. */
static double
layer_s (const LsJobResult *r)
{
  const LsStrategy *s = &r->strategy;
  const double *part = r->report.breakdown_s;
  double busy
      = r->report.step_time_s - part[LS_PART_BUBBLE] - part[LS_PART_OPTIMIZER] - part[LS_PART_EXPOSED_DP];
  return busy * s->pp / (MAX (1, ls_strategy_micro_batches (s, 0)) * (double) r->model.n_layers);
}

static void
note_scaled_experts (LsJobResult *r)
{
  const LsStrategy *s = &r->strategy;
  bool is_by_modules = ls_dtype_is_scaled ((LsDtype) s->dtype) && s->fp8.recipe != LS_FP8_DEEPSEEK
      && !s->experts.grouped_gemm && r->model.moe.n_experts / MAX (1, s->ep) > 1;
  if (is_by_modules && s->launch.cuda_graphs != LS_GRAPHS_STEP && layer_s (r) < HOST_OF_A_LAYER_S)
    ls_note (r->notes,
             "a layer takes %.1f ms here, both ways; the host of one measured run took "
             "%.0f ms for one with experts in mxfp8, which is not simulated: the step may "
             "wait for the host; --cuda-graphs step spares it",
             1e3 * layer_s (r), 1e3 * HOST_OF_A_LAYER_S);
}

void
ls_job_note_kernels (const LsJobSpec *spec, LsJobResult *r)
{
  if (!r->model.name || !r->notes || r->trace)
    return;
  note_built_in (ls_job_software (spec, r), r);
  note_attention (spec->said && g_hash_table_contains (spec->said, "attention_kernel"), r);
  note_experts (ls_job_software (spec, r), r);
  note_lone_products (r);
  note_scaled_experts (r);
  note_mixer (r);
  note_guessed_attention (r);
  note_slow_fp8 (r);
  note_recomputed_layers (r);
}

void
ls_note_documents (const LsStrategy *s, const LsModel *m, GPtrArray *notes)
{
  g_autoptr (LsPacking) packing = NULL;
  if (!ls_packing_new (s, m, &packing, NULL) || !packing)
    return;
  g_autofree char *busiest = s->docs.draw == LS_LENGTHS_EACH && s->dp > 1
      ? g_strdup_printf ("; the busiest copy has %.3f of the mean", packing->busiest_copy)
      : NULL;
  ls_note (notes,
           "lengths %s: %.1f documents in a sequence leave %.1f %% of its "
           "attention; FLOPs and MFU count these, Megatron-LM all of it%s",
           s->docs.lengths, packing->n_documents / s->global_batch, 100 * packing->mean.pairs,
           busiest ? busiest : "");
  if (packing->n_longer > 0)
    ls_note (notes,
             "lengths %s: documents longer than a sequence of %u tokens (--seq; %u of the "
             "step) are cut, and their parts do not see each other",
             s->docs.lengths, s->seq, packing->n_longer);
}

void
ls_note_drops (const LsStrategy *s, const LsModel *m, GPtrArray *notes)
{
  if (m->moe.n_experts == 0 || (s->experts.capacity <= 0 && s->experts.padding == LS_EXPERT_PADDING_NONE))
    return;
  g_autofree char *why = NULL;
  g_autofree double *share = ls_expert_shares (s->experts.load, m, &why);
  LsShard shard = ls_strategy_shard (s, m);
  shard.experts.share = share;
  double kept = ls_expert_kept_share (m, &shard), blank = ls_expert_blank_share (m, &shard);
  double dropped = 1 - kept;
  if (blank > 0)
    ls_note (notes,
             "%.1f %% of the rows that experts compute are zeros "
             "(expert_padding); FLOPs and MFU leave these out",
             100 * blank / (kept + blank));
  if (dropped > 0)
    ls_note (notes,
             "expert_capacity %g: experts drop %.1f %% of the tokens that are sent to "
             "them; FLOPs and MFU leave these out, tokens/s and Megatron-LM count all",
             s->experts.capacity, 100 * dropped);
}

void
ls_note_nccl (const char *nccl, const LsHardware *h, const LsStrategy *s, GPtrArray *notes)
{
  for (guint i = 0; h->environment && i < h->environment->len; i++)
    ls_note (notes, "%s", (char *) h->environment->pdata[i]);
  if (s && h->nccl.max_ctas > 0
      && (s->mp.tp_max_ctas | s->mp.cp_max_ctas | s->mp.ep_max_ctas | s->mp.dp_max_ctas | s->mp.pp_max_ctas))
    ls_note (notes, "--set *_max_ctas hold for their calls, not max_ctas=%u of the file of --nccl",
             h->nccl.max_ctas);
  if (nccl && ls_hardware_has_other_nccl (h))
    ls_note (notes, "--nccl %s is of %s; %s is of %s, on which it was not measured", nccl,
             h->nccl.tables.generation, h->spec.gpu.name, h->own_generation);
}

void
ls_job_note_contradictions (const LsJobResult *r, const LsMeasured *m, const char *source, GPtrArray *notes)
{
  const LsModel *model = r->model.name ? &r->model : NULL;
  g_autoptr (GPtrArray) words = ls_measured_contradictions (m, &r->report, model, &r->strategy);
  if (words->len == 0)
    return;
  g_ptr_array_add (words, NULL);
  g_autofree char *all = g_strjoinv ("; ", (char **) words->pdata);
  ls_note (notes,
           "warning: %s contradicts this job: %s. Its length, batch, model or number "
           "of %ss may be another",
           m->source ? m->source : source, all, r->report.chip);
}

void
ls_job_note_calibration (const LsJobSpec *spec, LsJobResult *r)
{
  bool has_kernels = ls_plan_has_ops (r->plan, LS_TAKES_GPU, false),
       has_messages = r->plan->n_ranks > 1 && ls_plan_has_ops (r->plan, LS_TAKES_NETWORK, false);
  if (spec->gpu_calibration && !has_kernels)
    ls_note (r->notes, "--gpu-calibration %s has no effect here: all kernels take the times of the trace",
             spec->gpu_calibration);
  if (spec->nccl && !has_messages)
    ls_note (r->notes, "--nccl %s has no effect here: no message takes a time of the network", spec->nccl);
  if (r->hardware->calibration_of && has_kernels)
    ls_note (r->notes,
             "--gpu-calibration %s is of kernels on %s; on %s they take as large a "
             "share of its peak rates here, which was not measured",
             spec->gpu_calibration, r->hardware->calibration_of, r->cluster->spec.gpu.name);
}

void
ls_job_note_drawn_speeds (const LsJobSpec *spec, LsJobResult *r)
{
  const LsCalibration *c = &r->hardware->calibration;
  const LsGpu *gpu = &r->hardware->spec.gpu;
  uint32_t n = r->plan->n_ranks;
  double slower = ls_clock (c, gpu, 1) / ls_clock (c, gpu, n) - 1;
  if (spec->slow.sigma > 0 && slower >= 0.0005)
    ls_note (r->notes,
             "--slow draws speeds around that of a mean %s; without it all are as "
             "fast as the slowest of %u in the mean, whose matrix products take "
             "%.1f %% longer",
             ls_cluster_chip_word (&r->cluster->spec, 1), n, 100 * slower);
}

/* --- knobs that were set and make no difference -------------------------------------------------- */

typedef struct {
  const LsJobSpec *spec;
  const LsJobResult *job;
  const LsHardware *hardware;
  LsStrategy blank; /* what knobs are by default */
  char *plan;       /* of the job, as text: made when it is asked for */
} Search;

/* --- the job without a knob --- */

static GHashTable *
said_but (GHashTable *said, const LsField *knob)
{
  GHashTable *rest = g_hash_table_new (g_str_hash, g_str_equal);
  GHashTableIter keys;
  gpointer key;
  if (said)
    for (g_hash_table_iter_init (&keys, said); g_hash_table_iter_next (&keys, &key, NULL);)
      if (strcmp (key, knob->key) != 0)
        g_hash_table_add (rest, key);
  return rest;
}

/* As the spec gives it, but for one knob, which is as the software that it names has it. */
static void
strategy_without (const Search *x, const LsField *knob, LsStrategy *ret_strategy)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  const LsSoftwareSpec *named = x->spec->software;
  const LsStrategy *usual = named ? &named->defaults : &x->blank;
  ls_strategy_init (ret_strategy);
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    g_autofree char *value
        = f->file_only ? NULL : ls_field_text (f, f == knob ? usual : &x->spec->strategy, NULL);
    if (value)
      ls_field_set_text (ls_strategy_fields, ret_strategy, f->key, value, diags);
  }
  ls_strategy_lend_own (ret_strategy, usual);
  g_autoptr (GHashTable) said = said_but (x->spec->said, knob);
  ls_softwares_settle (x->spec->software, x->hardware, said, ret_strategy);
}

static LsMesh
mesh_of (const LsJobResult *r)
{
  return (LsMesh) { r->strategy.tp, r->strategy.cp, r->strategy.dp, r->strategy.pp };
}

/* Whether GEMMs launch a block for each SM, if not of some kinds of nodes then maybe of others. */
static bool
takes_second_waves (const LsHardware *h)
{
  LsGemms gemms = ls_around_gemms (&h->calibration.around, h->spec.gpu.persistent_gemms, false);
  return gemms == LS_GEMMS_PERSISTENT || ls_cluster_spec_n_kinds (&h->spec) > 1;
}

/* What GEMMs are told of SMs that communication will hold makes a difference to those that launch a block for
 * each SM, or where something of it was measured (exec/replay/kernel_run.c). */
static bool
heeds_margins (const LsHardware *h)
{
  const LsAround *a = &h->calibration.around;
  LsGemms gemms = ls_around_gemms (a, h->spec.gpu.persistent_gemms, false);
  double saved = ls_around_lost (a, gemms) - ls_around_told (a, gemms);
  return takes_second_waves (h) || a->priority_wait > 0 || fabs (saved) > 0;
}

/* Of what the GPUs heed, but for who does it. */
static char *
plan_text (const Search *x, const LsJobResult *r)
{
  const LsTraceHead head
      = { .name = "", .source = "", .no_margins = !heeds_margins (x->hardware), .no_ranks = true };
  return ls_trace_format (r->plan, &head, NULL);
}

/* An order that is searched for costs more than the answer is worth; an order from a file, kernels of another
 * implementation, and what an allocator does at the limit are not in the plan. Another batch is always
 * another plan. */
static bool
can_compare (const Search *x, const LsField *f)
{
  static const char *const others[]
      = { "attention_kernel", "cuda_allocator", "dynamic_gemms", "global_batch", NULL };
  const LsSched *sched = ls_sched_find (x->job->strategy.schedule);
  return !x->spec->order && !(sched && ls_sched_is_searched (sched)) && !g_strv_contains (others, f->key);
}

/* NULL: it is none. On another mesh ranks do something else, and it has no plan. */
static LsJobResult *
job_without (const Search *x, const LsField *f)
{
  LsStrategy without;
  strategy_without (x, f, &without);
  g_autoptr (LsJobResult) r = ls_job_settle_beside (x->job, x->hardware, x->spec->n_nodes, &without, NULL);
  ls_strategy_clear (&without);
  if (!r)
    return NULL;
  const LsMesh mesh = mesh_of (r), own = mesh_of (x->job);
  bool is_same_mesh = memcmp (&mesh, &own, sizeof mesh) == 0;
  return !is_same_mesh || ls_job_lower (r, x->hardware, NULL) ? g_steal_pointer (&r) : NULL;
}

/* Plans of other sizes have other texts, which are long. */
static bool
has_same_sizes (const LsPlan *a, const LsPlan *b)
{
  bool is_same = a->n_ranks == b->n_ranks && a->n_segments == b->n_segments && a->n_roles == b->n_roles
      && a->n_kernels == b->n_kernels && a->n_comms == b->n_comms;
  for (uint32_t s = 0; is_same && s < a->n_segments; s++)
    is_same = a->segments[s].n_ops == b->segments[s].n_ops;
  for (uint32_t p = 0; is_same && p < a->n_roles; p++)
    is_same = a->programs[p].n_instances == b->programs[p].n_instances;
  return is_same;
}

static bool
has_same_plan (Search *x, const LsJobResult *without)
{
  if (!without->plan || !has_same_sizes (without->plan, x->job->plan)
      || !ls_plan_has_same_ranks (without->plan, x->job->plan))
    return false;
  g_autofree char *text = plan_text (x, without);
  if (!x->plan)
    x->plan = plan_text (x, x->job);
  return text && g_strcmp0 (text, x->plan) == 0;
}

/* Why the value makes no difference; NULL: it makes one, or is what the knob would be anyway. */
static char *
find_reason (Search *x, const LsField *f, const char *value)
{
  const char *why = strcmp (f->key, "dynamic_gemms") == 0 && !takes_second_waves (x->hardware)
      ? "GEMMs of this accelerator take no second wave"
      : ls_strategy_idle (&x->job->strategy, &x->job->model, f->key);
  g_autoptr (LsJobResult) without = can_compare (x, f) ? job_without (x, f) : NULL;
  if (!without)
    return g_strdup (why);
  g_autofree char *anyway = ls_field_text (f, &without->strategy, NULL);
  if (anyway && g_ascii_strcasecmp (anyway, value) == 0) /* "1F1B" is 1f1b */
    return NULL;
  bool is_other_program
      = g_strcmp0 (without->strategy.program.software, x->job->strategy.program.software) != 0;
  if (is_other_program
      && !has_same_plan (x, without)) /* the way to be data parallel says whose kernels run */
    return NULL;
  if (why || !has_same_plan (x, without))
    return g_strdup (why);
  return anyway ? g_strdup_printf ("every rank does the same with %s, which is assumed without it", anyway)
                : g_strdup ("every rank does the same without it");
}

/* --- notes --- */

/* The option of the launch file which alone decides a key, with its value; NULL: none does. */
static char *
option_of (const LsImported *from, const char *key)
{
  const LsRemark *o = ls_import_remark (from, LS_REMARK_OPTION, key);
  return o ? g_strjoin (o->value && *o->value ? " " : NULL, o->text, o->value, NULL) : NULL;
}

char *
ls_job_said_as (const LsJobSpec *spec, const LsField *f)
{
  bool is_said = spec->said && g_hash_table_contains (spec->said, f->key);
  if (!is_said)
    return NULL;
  if (ls_job_has_from (spec, f, &spec->strategy))
    return option_of (spec->from, f->key);
  bool is_time = f->kind == LS_FIELD_TIME; /* whose text is in picoseconds */
  g_autofree char *value = ls_field_text (f, &spec->strategy, NULL);
  return is_time ? ls_field_flag (f) : ls_field_option (f, value);
}

static void
note_if_idle (Search *x, const LsField *f, GPtrArray *notes)
{
  g_autofree char *value = ls_field_text (f, &x->spec->strategy, NULL),
                  *usual = ls_field_text (f, &x->blank, NULL);
  if (!value || g_strcmp0 (value, usual) == 0)
    return;
  g_autofree char *said = ls_job_said_as (x->spec, f);
  bool is_host = strcmp (f->topic, "host") == 0;
  bool has_own_note = strcmp (f->topic, "measured") == 0; /* ls_note_nccl() */
  g_autofree char *why = !said || has_own_note || (x->spec->trace && !is_host) ? NULL
      : is_host ? g_strdup (ls_job_host_idle (x->job, f))
                : find_reason (x, f, value);
  if (why)
    ls_note (notes, "%s has no effect here: %s", said, why);
}

void
ls_idle_notes (const LsJobSpec *spec, const LsJobResult *prepared, const LsHardware *hardware,
               GPtrArray *notes)
{
  Search x = { spec, prepared, hardware, .plan = NULL };
  ls_strategy_init (&x.blank);
  for (const LsField *f = ls_strategy_fields; f->key; f++)
    if (!f->file_only)
      note_if_idle (&x, f, notes);
  ls_strategy_clear (&x.blank);
  g_free (x.plan);
}
