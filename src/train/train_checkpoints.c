/* train/train_checkpoints.c — what a checkpoint holds, how long it takes, how often one is written. */
#include <math.h>

#include <lockstep/error.h>

#include "cluster/route.h"
#include "model/operators.h"
#include "strategy/shard.h"
#include "train/run_history.h"
#include "train/train_steps.h"

/* Of storage that was built for its cluster: BLOOM saved 2.3 TB from 384 A100 in 40 s (bigscience
 * train/tr11-176B-ml/chronicles.md). */
#define STORAGE_BYTES_PER_S_PER_GPU 150e6
#define MANY_CHECKPOINTS            1e5

/* --- how much -------------------------------------------------------------------------- */

/* FSDP keeps weights in fp32, which are the master weights too (lower/data/lower_dp_fsdp.c, MaxText:
 * lower/data/lower_dp_xla.c). Formats for matrix products are stored only where weights are kept in them. */
static LsDtype
dtype_kept (const LsStrategy *s)
{
  if (ls_dp_traits (s->dp_kind)->is_fsdp)
    return s->data.narrow_shards ? ls_strategy_weights (s) : LS_DTYPE_FP32;
  return s->fp8.params ? LS_DTYPE_FP8 : ls_strategy_weights (s);
}

/* Weights as they are kept, master weights and Adam's moments; of another optimizer without its state. */
static double
bytes_per_param (const LsStrategy *s)
{
  LsDtype kept = dtype_kept (s);
  double weight = (double) ls_dtype_bytes (kept);
  const LsAdamStates states = ls_strategy_adam (s);
  if (s->data.narrow_shards && ls_dp_traits (s->dp_kind)->is_fsdp) /* they are their own masters */
    return s->opt.kind ? weight : 3 * weight;
  bool has_master = kept != LS_DTYPE_FP32 && !ls_master_is_the_weight (states.master);
  return weight + (!s->opt.kind ? ls_adam_bytes (&states, kept) : has_master ? 4 : 0);
}

/* What it keeps of the parameters of one operator, on one rank. */
static double
state_of_operator (const LsStrategy *s, const LsOperator *op)
{
  g_autoptr (GArray) tensors = g_array_new (FALSE, FALSE, sizeof (LsTensor));
  g_autoptr (GArray) tiles = g_array_new (FALSE, FALSE, sizeof (LsTensor));
  double bytes = 0;
  ls_operator_tensors (op, !ls_dp_traits (s->dp_kind)->is_megatron, tensors);
  for (guint i = 0; i < tensors->len; i++) {
    const LsTensor *t = &g_array_index (tensors, LsTensor, i);
    const LsOptimizerPart *part = ls_optimizer_part (s->opt.kind, t);
    g_array_set_size (tiles, 0);
    ls_optimizer_tiles (part, t, tiles);
    for (guint k = 0; k < tiles->len; k++) {
      const LsTensor *tile = &g_array_index (tiles, LsTensor, k);
      bytes += (double) ls_optimizer_state_bytes (part, tile, ls_tensor_numel (tile));
    }
  }
  return bytes;
}

/* State of an optimizer that is not Adam, of the whole model, as its ranks keep it. Which state a tensor has
 * is said by its part (model/optimizer_kind.h): Muon has a momentum of matrices, and both moments of Adam of
 * embeddings, head and vectors. */
static double
state_of_model (const LsModel *m, const LsStrategy *s)
{
  if (!s->opt.kind)
    return 0;
  LsShard shard = ls_strategy_shard (s, m);
  shard.sides_are_apart = false; /* a table that several stages have is written once */
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_embedding (m, &shard, operators);
  for (uint32_t l = 0; l < m->n_layers; l++)
    ls_operators_layer (m, &shard, l, operators);
  ls_operators_head (m, &shard, !m->tied_embeddings, operators);
  double bytes = 0;
  for (guint o = 0; o < operators->len; o++) {
    const LsOperator *op = &g_array_index (operators, LsOperator, o);
    double n_parts = op->params.is_expert ? s->ep * s->experts.etp : op->params.is_replicated ? 1 : s->tp;
    bytes += op->params.is_frozen ? 0 : n_parts * state_of_operator (s, op);
  }
  return bytes;
}

static double
adapter_params (const LsModel *m, const LsStrategy *s)
{
  const LsLora lora = ls_strategy_lora (s, m);
  return (double) ls_lora_params (m, &lora);
}

/* Weights that do not learn are in no checkpoint, but in memory again before it goes on. */
static double
frozen_bytes_of (const LsModel *m, const LsStrategy *s)
{
  return adapter_params (m, s) > 0
      ? (double) ls_model_params (m, m->vocab) * (double) ls_dtype_bytes ((LsDtype) s->dtype)
      : 0;
}

/* What a checkpoint of a model holds: of what learns. */
static double
bytes_of (const LsModel *m, const LsStrategy *s)
{
  double n_adapter = adapter_params (m, s);
  return (n_adapter > 0 ? n_adapter : (double) ls_model_params (m, m->vocab)) * bytes_per_param (s)
      + state_of_model (m, s);
}

/* Parameters and state of the optimizer that the ranks hold, one by one. */
double
ls_train_checkpoint_bytes_of (const LsJobResult *job)
{
  double bytes = 0;
  if (job->model.name)
    return bytes_of (&job->model, &job->strategy);
  for (uint32_t rank = 0; rank < job->plan->n_ranks; rank++) {
    const LsProgram *p = &job->plan->programs[ls_plan_role (job->plan, rank)];
    bytes += (double) (p->static_bytes[LS_MEM_PARAMETERS] + p->static_bytes[LS_MEM_OPTIMIZER]);
  }
  return bytes;
}

/* How many ranks write it: all that share it, or those of one replica with all experts. */
static double
n_writers (const LsTrainReport *r)
{
  const LsStrategy *s = &r->job->strategy;
  if (!r->job->model.name)
    return r->n_gpus;
  return s->zero_stage > 0 ? r->n_gpus : (double) r->n_gpus / s->dp * MIN (MAX (s->ep, 1), s->dp);
}

/* --- how long -------------------------------------------------------------------------- */

/* Of one GPU to the memory of its host, while its neighbours copy too; in a node without PCIe of its own, as
 * fast as the narrowest link of its way. */
static double
copy_rate_in (const LsCluster *c, uint32_t host)
{
  const LsClusterSpec *s = ls_cluster_spec_of_kind (&c->spec, ls_cluster_kind_of (c, host));
  if (ls_link_capacity (&s->server.c2c) > 0)
    return ls_link_capacity (&s->server.c2c);
  uint32_t n = s->gpus_per_node, ports = s->server.pcie_switches > 0 ? MIN (s->server.pcie_switches, n) : n;
  double rate = ls_link_capacity (&s->server.pcie) * ports / n;
  LsRoute r = { 0 };
  if (rate <= 0)
    ls_route_host_memory (c, ls_cluster_gpu_at (c, host, 0), true, &r);
  for (uint32_t i = 0; i < r.n_hops; i++) {
    double of_link = ls_cluster_resource_capacity (c, r.hop[i].trunk) * LS_HOP_WHOLE / r.hop[i].share;
    rate = i == 0 ? of_link : fmin (rate, of_link);
  }
  return rate;
}

/* Of nodes of several kinds the slowest: all wait for it. */
static double
copy_rate (const LsCluster *c)
{
  double least = copy_rate_in (c, 0);
  for (uint32_t host = 1; c->kind_of_host && host < c->spec.n_nodes; host++)
    least = fmin (least, copy_rate_in (c, host));
  return least;
}

/* Bytes/s to the drives of a node, or through its NICs to another, for each of its GPUs that writes. */
static double
near_rate_per_gpu (const LsClusterSpec *c, bool is_local, double n_writers)
{
  double least = INFINITY;
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (c); k++) {
    const LsClusterSpec *of = ls_cluster_spec_of_kind (c, k);
    double rate = is_local ? of->server.nvme_drives * ls_link_capacity (&of->server.nvme)
                           : of->nics.n * ls_link_capacity (&of->nics.port);
    least = fmin (least, rate / MIN (of->gpus_per_node, n_writers));
  }
  return least;
}

/* Of a checkpoint that stays near: what the job waits for is the copy to the host. */
static gboolean
fill_near (LsTrainReport *r, const LsTrainSpec *spec, double storage_s, GError **error)
{
  const LsClusterSpec *c = &r->job->cluster->spec;
  LsCheckpointTimes *t = &r->checkpoint.times;
  double per_gpu = r->checkpoint.bytes / n_writers (r);
  bool is_local = spec->checkpoint_to == LS_CHECKPOINT_LOCAL;
  double rate = near_rate_per_gpu (c, is_local, n_writers (r));
  if (is_local && rate == 0)
    return ls_fail (error, LS_ERROR_CONFLICT, "the nodes of this cluster have no drives to save to");
  if (!is_local && (r->n_nodes < 2 || rate == 0))
    return ls_fail (error, LS_ERROR_CONFLICT, "there is no other node to keep a checkpoint in its memory");
  t->is_on_node = is_local;
  t->is_on_peer = !is_local;
  t->save_s = per_gpu / copy_rate (r->job->cluster);
  t->write_s = t->read_s = per_gpu / rate;
  t->storage_every = spec->storage_every;
  t->storage_write_s = t->storage_read_s = storage_s;
  return TRUE;
}

static gboolean
fill_times (LsTrainReport *r, const LsTrainSpec *spec, GError **error)
{
  LsTrainCheckpoint *c = &r->checkpoint;
  LsCheckpointTimes *t = &c->times;
  double storage_s = c->bytes / c->storage_bytes_per_s;
  if (r->job->model.name)
    t->frozen_s = frozen_bytes_of (&r->job->model, &r->job->strategy) / c->storage_bytes_per_s;
  if (spec->checkpoint_to != LS_CHECKPOINT_STORAGE)
    return fill_near (r, spec, storage_s, error);
  t->save_s = t->read_s = storage_s;
  if (spec->checkpoint_async) {
    t->save_s = c->bytes / n_writers (r) / copy_rate (r->job->cluster);
    t->write_s = storage_s;
  }
  return TRUE;
}

static void
take_given (LsCheckpointTimes *t, const LsCheckpointGiven *given)
{
  if (given->save != LS_TIME_NEVER)
    t->save_s = ls_time_to_s (given->save);
  if (given->write != LS_TIME_NEVER)
    t->write_s = ls_time_to_s (given->write);
  if (given->read != LS_TIME_NEVER) {
    t->read_s = ls_time_to_s (given->read);
    t->frozen_s = 0;
  }
}

/* --- how often ------------------------------------------------------------------------- */

LsJobUnits
ls_train_units (const LsReliability *reliability, const LsClusterSpec *cluster, uint32_t n_gpus)
{
  double n_nodes = 0, n_nics = 0;
  for (uint64_t n = 0; n < n_gpus; n_nodes++) {
    const LsClusterSpec *node
        = ls_cluster_spec_of_kind (cluster, ls_cluster_spec_kind_of (cluster, (uint32_t) n_nodes));
    n += node->gpus_per_node;
    n_nics += node->nics.n;
  }
  double n_counted = reliability->gpus_per_node > 0 ? (double) n_gpus / reliability->gpus_per_node : n_nodes;
  uint32_t rack = reliability->nodes_per_rack;
  return (LsJobUnits) { { n_gpus, n_counted, n_nics, 1, rack > 0 ? ceil (n_nodes / rack) : 0 } };
}

/* Seconds from a failure until the job works again, the mean over what ends it. */
static double
restart_s (const LsReliability *reliability, const LsJobUnits *units, double n_gpus, double read_s)
{
  double sum = 0, rate = 0;
  for (guint i = 0; i < reliability->causes->len; i++) {
    const LsFailureCause *cause = &g_array_index (reliability->causes, LsFailureCause, i);
    if (!ls_failure_ends_job (cause))
      continue;
    double of = ls_failure_rate (cause, units);
    bool trains_on = cause->effect == LS_FAILURE_CORRUPT; /* until it is noticed */
    rate += of;
    sum += of * ((trains_on ? 0 : ls_time_to_s (cause->detect)) + ls_time_to_s (cause->locate));
  }
  double place = ls_reliability_place_s (reliability, n_gpus) + read_s;
  return rate > 0 ? sum / rate + place : place;
}

double
ls_train_goodput (const LsModel *m, const LsStrategy *s, const LsClusterSpec *cluster,
                  const LsReliability *reliability)
{
  LsJobUnits units = ls_train_units (reliability, cluster, s->gpus);
  double rate = ls_reliability_rate (reliability, &units);
  if (rate == 0)
    return 1;
  double storage = STORAGE_BYTES_PER_S_PER_GPU * s->gpus, save_s = bytes_of (m, s) / storage,
         read_s = save_s + frozen_bytes_of (m, s) / storage, work_s = ls_best_interval_s (save_s, 1 / rate);
  return work_s
      / ls_expected_piece_s (work_s, save_s, restart_s (reliability, &units, s->gpus, read_s), 1 / rate);
}

static void
fill_intervals (LsTrainReport *r, const LsRunPlan *plan)
{
  LsTrainCheckpoint *c = &r->checkpoint;
  double rate = ls_reliability_rate (plan->reliability, &plan->units);
  c->mtbf_s = rate > 0 ? 1 / rate : INFINITY;
  c->restart_s = restart_s (plan->reliability, &plan->units, r->n_gpus, c->times.read_s + c->times.frozen_s);
  bool has_best = rate > 0 && c->times.save_s > 0;
  c->young_s = has_best ? ls_young_interval_s (c->times.save_s, c->mtbf_s) : NAN;
  c->daly_s = has_best ? ls_daly_interval_s (c->times.save_s, c->mtbf_s) : NAN;
  c->best_s = has_best ? ls_best_interval_s (c->times.save_s, c->mtbf_s) : NAN;
}

gboolean
ls_train_checkpoint (LsTrainReport *r, const LsTrainSpec *spec, const LsRunPlan *plan, GError **error)
{
  LsTrainCheckpoint *c = &r->checkpoint;
  c->bytes = ls_train_checkpoint_bytes_of (r->job);
  c->storage_bytes_per_s
      = spec->storage_bytes_per_s > 0 ? spec->storage_bytes_per_s : STORAGE_BYTES_PER_S_PER_GPU * r->n_gpus;
  if (!fill_times (r, spec, error))
    return FALSE;
  take_given (&c->times, &spec->given);
  fill_intervals (r, plan);
  return TRUE;
}

/* No shorter than writing takes: the next checkpoint would wait for it. */
static double
least_interval_s (const LsCheckpointTimes *t)
{
  return t->storage_every > 0 ? fmax (t->write_s, t->storage_write_s / t->storage_every) : t->write_s;
}

/* NAN: so many steps. */
static double
seconds_between (const LsTrainCheckpoint *c, const LsEvery *every)
{
  if (every->kind == LS_EVERY_SECONDS)
    return every->of;
  return every->kind == LS_EVERY_BEST && !isnan (c->best_s)
      ? every->of * fmax (c->best_s, least_interval_s (&c->times))
      : NAN;
}

/* Where nothing ends the job one behind the last step is enough; where saving costs nothing, many. */
static double
steps_between (const LsTrainCheckpoint *c, const LsEvery *every, const LsTrainPhase *p)
{
  double step_s = p->step_s * (1 + p->longer);
  if (every->kind == LS_EVERY_STEPS)
    return every->of;
  if (!isnan (seconds_between (c, every)))
    return round (seconds_between (c, every) / step_s);
  return isinf (c->mtbf_s)
      ? INFINITY
      : fmax (ceil (p->n_steps / MANY_CHECKPOINTS), ceil (least_interval_s (&c->times) / step_s));
}

void
ls_train_set_every (LsTrainReport *r, const LsEvery *every, LsRunPhase *phases)
{
  bool is_first = r->choices->len == 0;
  for (guint i = 0; i < r->phases->len; i++) {
    LsTrainPhase *p = &g_array_index (r->phases, LsTrainPhase, i);
    double steps = steps_between (&r->checkpoint, every, p);
    phases[i].every = (uint64_t) CLAMP (steps, 1, p->n_steps);
    if (is_first)
      p->every = phases[i].every;
  }
}

char *
ls_train_every_text (const LsTrainReport *r, const LsEvery *every)
{
  const LsTrainPhase *last = &g_array_index (r->phases, LsTrainPhase, r->phases->len - 1);
  double s = seconds_between (&r->checkpoint, every);
  return isnan (s) ? g_strdup_printf ("%" G_GUINT64_FORMAT, (guint64) last->every)
                   : g_strdup_printf ("%.8gs", s);
}

/* Of restarts behind failures alone: the other effects have no closed form here. */
static bool
has_closed_form (const LsRunPlan *plan, const LsCheckpointTimes *t)
{
  for (guint i = 0; i < plan->reliability->causes->len; i++) {
    int effect = g_array_index (plan->reliability->causes, LsFailureCause, i).effect;
    if (effect != LS_FAILURE_REPLACE && effect != LS_FAILURE_RESTART)
      return false;
  }
  return t->write_s == 0 && !t->is_on_node && plan->spares == LS_SPARES_ANY;
}

void
ls_train_expect (LsTrainReport *r, const LsRunPlan *plan)
{
  LsTrainCheckpoint *c = &r->checkpoint;
  const LsRunPhase *last = &plan->phases[plan->n_phases - 1];
  c->interval_s = last->step_s * (1 + last->longer) * (double) last->every;
  double ideal = 0, expected = 0;
  for (guint i = 0; i < plan->n_phases; i++) {
    const LsRunPhase *p = &plan->phases[i];
    double pieces = floor ((double) p->n_steps / (double) p->every),
           rest = (double) p->n_steps - pieces * (double) p->every;
    double step_s = p->step_s * (1 + p->longer);
    ideal += p->step_s * (double) p->n_steps;
    expected += pieces
        * ls_expected_piece_s (step_s * (double) p->every, c->times.save_s, c->restart_s, c->mtbf_s);
    if (rest > 0)
      expected += ls_expected_piece_s (step_s * rest, c->times.save_s, c->restart_s, c->mtbf_s);
  }
  c->expected_goodput = has_closed_form (plan, &c->times) ? ideal / expected : NAN;
}
