#include "analysis/logged_step.h"

#include <math.h>

#include "analysis/conservation.h"

#define GIB 1073741824.0

void
ls_measured_clear (LsMeasured *m)
{
  if (!m)
    return;
  g_free (m->source);
  *m = (LsMeasured) { 0 };
}

void
ls_measured_copy (LsMeasured *dest, const LsMeasured *source)
{
  *dest = *source;
  dest->source = g_strdup (source->source);
}

static bool
agree (double a, double b)
{
  return fabs (a / b - 1) <= LS_MEASURED_AGREES;
}

/* --- FLOPs --- */

#define MAX_WAYS 6

/* A way to count the FLOPs of a step. */
typedef struct {
  const char *words;
  double flops;
} Way;

/* The first is that of logs of Megatron-LM. */
static guint
list_ways (const LsReport *r, const LsModel *m, const LsStrategy *s, Way ways[MAX_WAYS])
{
  double tokens = (double) s->global_batch * s->seq, whole = ls_trained_flops (m, s, s->seq, false);
  double weights = (double) r->n_active_params * tokens;
  const Way all[MAX_WAYS] = {
    { "with attention whole and nothing computed again, as Megatron-LM prints and as here", whole },
    { "with the causal half of attention", ls_trained_flops (m, s, s->seq, true) },
    { "with what is computed again", whole * r->hfu_all_pairs / r->mfu_all_pairs },
    { "without the product with the vocabulary", ls_model_flops (m, 0, s->seq, s->global_batch, false) },
    { "as 6 FLOPs a parameter and token", 6 * weights },
    { "as 8 FLOPs a parameter and token, which counts full recomputation", 8 * weights },
  };
  for (guint i = 0; i < MAX_WAYS; i++)
    ways[i] = all[i];
  return MAX_WAYS;
}

/* The way that comes nearest; of equally near ones the first. */
static guint
nearest_way (const Way *ways, guint n, double flops)
{
  guint best = 0;
  for (guint i = 1; i < n; i++)
    if (fabs (log (ways[i].flops / flops)) < fabs (log (ways[best].flops / flops)))
      best = i;
  return best;
}

static char *
explain_flops (const LsMeasured *l, const LsReport *r, const LsModel *m, const LsStrategy *s)
{
  Way ways[MAX_WAYS];
  guint n = list_ways (r, m, s, ways);
  double flops = l->flops_per_gpu * r->n_ranks * l->step_s, off = 100 * (flops / ways[0].flops - 1);
  if (agree (flops, ways[0].flops))
    return g_strdup_printf ("TFLOP/s: agree with the time and this job (%+.1f %%), counted %s", off,
                            ways[0].words);
  guint best = nearest_way (ways, n, flops);
  if (agree (flops, ways[best].flops))
    return g_strdup_printf ("TFLOP/s: fit this job (%+.1f %%) if the log counts %s; counted as here they "
                            "would be %.4g",
                            100 * (flops / ways[best].flops - 1), ways[best].words,
                            ways[0].flops / (r->n_ranks * l->step_s) / 1e12);
  return g_strdup_printf ("TFLOP/s: a step of the log has %.3g times this job's FLOPs (%.4g TFLOP/s as "
                          "counted here), which no known"
                          " way to count explains: another model, batch, sequence or number of %ss",
                          flops / ways[0].flops, ways[0].flops / (r->n_ranks * l->step_s) / 1e12, r->chip);
}

/* --- tokens --- */

/* Tokens of a step of the log over those of this job; NAN: it does not say. */
static double
token_ratio (const LsMeasured *l, const LsReport *r, const LsStrategy *s)
{
  double rate = l->tokens_per_s > 0 ? l->tokens_per_s : l->tokens_per_s_per_gpu * r->n_ranks;
  return rate > 0 ? rate * l->step_s / ((double) s->global_batch * s->seq) : NAN;
}

static char *
explain_tokens (const LsMeasured *l, const LsReport *r, const LsStrategy *s, double ratio)
{
  double tokens = (double) s->global_batch * s->seq;
  if (agree (ratio, 1))
    return g_strdup_printf ("tokens/s: agree with the time and this job's %.4g tokens a step (%+.1f %%)",
                            tokens, 100 * (ratio - 1));
  double error = r->step_time_s * ratio / l->step_s - 1;
  return g_strdup_printf ("tokens/s: a step of the log has %.4g tokens, this job %.4g: another batch (%.4g "
                          "sequences of %u) or sequence length;"
                          " at its speed this job would take %.4g s, and the error would be %+.1f %%",
                          ratio * tokens, tokens, ratio * s->global_batch, s->seq, l->step_s / ratio,
                          100 * error);
}

/* --- memory --- */

#define MAX_CAUSES 5

/* What the log may count, or the job may do, otherwise. */
typedef struct {
  const char *words;
  double bytes; /* more than is predicted */
} Cause;

static guint
list_causes (const LsReport *r, const LsStrategy *s, Cause causes[MAX_CAUSES])
{
  guint n = 0;
  double gradients = (double) r->at_peak[LS_MEM_GRADIENTS];
  causes[n++] = (Cause) { "the CUDA context, which nvidia-smi counts", (double) r->context_bytes };
  causes[n++] = (Cause) { "communication buffers and workspaces, which PyTorch's counters leave out",
                          -(double) (r->at_peak[LS_MEM_COMM_BUFFERS] + r->at_peak[LS_MEM_WORKSPACE]) };
  if (s->opt.grad_dtype != LS_DTYPE_FP32)
    causes[n++] = (Cause) { "gradients in fp32", gradients };
  else
    causes[n++] = (Cause) { "gradients in 16 bits", -gradients / 2 };
  if (s->zero_stage == 0 && s->dp > 1)
    causes[n++] = (Cause) { "an optimizer that is cut over data parallelism",
                            -(1 - 1.0 / s->dp) * (double) r->at_peak[LS_MEM_OPTIMIZER] };
  else if (s->zero_stage > 0 && s->dp > 1)
    causes[n++]
        = (Cause) { "an optimizer that is not cut", (s->dp - 1.0) * (double) r->at_peak[LS_MEM_OPTIMIZER] };
  if (s->recompute == LS_RECOMPUTE_NONE)
    causes[n++] = (Cause) { "at least most of the activations computed again",
                            -(double) r->at_peak[LS_MEM_ACTIVATIONS] };
  return n;
}

static char *
explain_memory (const LsMeasured *l, const LsReport *r, const LsStrategy *s)
{
  double predicted = (double) r->needed_bytes, more = l->memory_bytes - predicted;
  if (agree (l->memory_bytes, predicted))
    return g_strdup_printf ("memory: agrees with the %.2f GiB predicted (%+.1f %%)", predicted / GIB,
                            100 * (predicted / l->memory_bytes - 1));
  Cause causes[MAX_CAUSES];
  guint n = list_causes (r, s, causes);
  g_autoptr (GString) text = g_string_new (NULL);
  g_string_append_printf (text, "memory: %.2f GiB %s than the %.2f GiB predicted", fabs (more) / GIB,
                          more > 0 ? "more" : "less", predicted / GIB);
  for (guint i = 0, n_found = 0; i < n; i++)
    if (causes[i].bytes != 0 && agree (predicted + causes[i].bytes, l->memory_bytes))
      g_string_append_printf (text, "%s%s", n_found++ == 0 ? "; would be explained by " : ", or by ",
                              causes[i].words);
  return g_string_free (g_steal_pointer (&text), FALSE);
}

GPtrArray *
ls_measured_explain (const LsMeasured *m, const LsReport *r, const LsModel *model, const LsStrategy *s)
{
  GPtrArray *words = g_ptr_array_new_with_free_func (g_free);
  if (!model)
    return words;
  double ratio = token_ratio (m, r, s);
  if (m->flops_per_gpu > 0)
    g_ptr_array_add (words, explain_flops (m, r, model, s));
  if (!isnan (ratio))
    g_ptr_array_add (words, explain_tokens (m, r, s, ratio));
  if (m->memory_bytes > 0)
    g_ptr_array_add (words, explain_memory (m, r, s));
  return words;
}

/* --- what contradicts the job --- */

#define FAR         0.10 /* of FLOPs and tokens: programs round what they count              */
#define MEMORY_FAR  0.25 /* what is predicted of allocated memory is mostly nearer               */
#define MAX_RESERVE 1.60 /* of what is allocated: segments that are not in use come on top       */

/* Peaks of memory; what is reserved holds what is allocated. */
static void
add_memory_contradiction (GPtrArray *words, const LsMeasured *l, const LsReport *r)
{
  double predicted = (double) r->needed_bytes, more = l->memory_bytes / predicted - 1,
         reserve = l->reserved_bytes / predicted;
  if (l->memory_bytes > 0 && fabs (more) > MEMORY_FAR)
    ls_note (words, "%.2f GiB allocated where %.2f are predicted", l->memory_bytes / GIB, predicted / GIB);
  else if (l->memory_bytes == 0 && reserve > 0 && (reserve < 1 - FAR || reserve > MAX_RESERVE))
    ls_note (words, "%.2f GiB reserved where %.2f are predicted as allocated", l->reserved_bytes / GIB,
             predicted / GIB);
}

GPtrArray *
ls_measured_contradictions (const LsMeasured *m, const LsReport *r, const LsModel *model, const LsStrategy *s)
{
  GPtrArray *words = g_ptr_array_new_with_free_func (g_free);
  Way ways[MAX_WAYS];
  if (!model)
    return words;
  double ratio = token_ratio (m, r, s), logged = m->flops_per_gpu * r->n_ranks * m->step_s;
  const Way *near = ways + nearest_way (ways, list_ways (r, model, s, ways), logged > 0 ? logged : 1);
  if (logged > 0 && fabs (logged / near->flops - 1) > FAR)
    ls_note (words, "%.4g TFLOP/s of a %s where this job has %.4g in its time", m->flops_per_gpu / 1e12,
             r->chip, ways[0].flops / (r->n_ranks * m->step_s) / 1e12);
  if (fabs (ratio - 1) > FAR) /* not of NAN */
    ls_note (words, "%.4g tokens a step where this job has %.4g", ratio * s->global_batch * s->seq,
             (double) s->global_batch * s->seq);
  add_memory_contradiction (words, m, r);
  return words;
}
