#include "ask/collective/tune.h"

#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "base/list.h"
#include "base/order.h"
#include "cluster/places.h"
#include "job/assumptions.h"
#include "network/coll.h"

/* --- what the tables say ---------------------------------------------------------------------------- */

static const char *const op_names[LS_N_COLL_KINDS] = {
  [LS_COLL_ALL_REDUCE] = "allreduce",
  [LS_COLL_ALL_GATHER] = "allgather",
  [LS_COLL_REDUCE_SCATTER] = "reducescatter",
  [LS_COLL_BROADCAST] = "broadcast",
  [LS_COLL_REDUCE] = "reduce",
};

/* Ours, and as the table has it; whether NCCL takes all of its channels for any size (2.30.7 src/enqueue.cc,
 * topoGetAlgoInfo). */
static const struct {
  const char *name, *table_name;
  bool has_all_channels;
} algorithms[] = {
  { "ring", "ring", false },          { "tree", "tree", false }, { "nvls", "nvls", true },
  { "nvls-tree", "nvls_tree", true }, { "pat", "pat", false },   { "collnet", "collnet_direct", false },
};
/* The first: SHARP wants a plug-in of its own. */
#define N_TRIED 5

static const char *const protocols[LS_N_PROTOCOLS]
    = { [LS_PROTOCOL_SIMPLE] = "simple", [LS_PROTOCOL_LL] = "ll", [LS_PROTOCOL_LL128] = "ll128" };

/* Whose example plug-in reads the table, and what becomes of a call that no row is of: nChannels is 1 or 0
 * (as without a plug-in) unless a row says it. NCCL 2.30.7 plugins/tuner/example/plugin.c; RCCL
 * ext-tuner/example/plugin.c (commit 2a59f8d). */
static const char *const plugins[][2] = { { "NCCL", "run on one channel" }, { "RCCL", "run as without it" } };

const char *
ls_tune_op_name (uint32_t kind)
{
  return op_names[kind];
}

/* That of a plan; algorithm NULL: the table has none such. ctas: at most; 0: any. */
static LsTuneWay
way_of (const LsCollPlan *plan, const LsNccl *nccl, uint32_t ctas)
{
  LsTuneWay way = { NULL, NULL, (uint32_t) lround (plan->sm_share / nccl->sm_share_per_channel) };
  for (guint i = 0; i < G_N_ELEMENTS (algorithms); i++)
    if (strcmp (algorithms[i].name, plan->algorithm) == 0) {
      way.algorithm = algorithms[i].table_name;
      way.channels = algorithms[i].has_all_channels ? nccl->channels_nvls : way.channels;
    }
  for (guint p = LS_PROTOCOL_SIMPLE; p < LS_N_PROTOCOLS; p++)
    if (strcmp (ls_protocol_names[p], plan->protocol) == 0)
      way.protocol = protocols[p];
  way.channels = ctas > 0 ? MIN (way.channels, ctas) : way.channels;
  return way;
}

/* --- the calls of jobs -------------------------------------------------------------------------------- */

/* Groups that lie alike on the cluster of a job. */
typedef struct {
  uint64_t a, b; /* by which they are known */
  const LsJobResult *job;
  uint32_t n_ranks, n_nodes;
  uint32_t *gpus; /* [n_ranks] of the first; owned */
} Place;

/* Calls of a size on one of them. */
typedef struct {
  guint place;
  double weight; /* how many, times the share of the job's ranks that take part */
} Use;

/* What a table can tell apart. */
typedef struct {
  uint32_t kind, n_nodes, n_ranks;
  uint64_t bytes;
  uint32_t max_ctas; /* 0: any */
  uint64_t n;
  double weight; /* of all uses */
  GArray *uses;  /* Use         */
} Call;

static const LsSortKey by_call[] = { { LS_RISING (Call, kind) },
                                     { LS_RISING (Call, n_nodes) },
                                     { LS_RISING (Call, n_ranks) },
                                     { LS_RISING (Call, bytes) },
                                     { 0 } };
static const LsSortKey by_place[] = { { LS_RISING (Place, a) }, { LS_RISING (Place, b) }, { 0 } };

static const LsSortKey by_use[] = { { LS_RISING (Use, place) }, { 0 } };

/* Of a role's program, whoever its communicators are. */
typedef struct {
  uint32_t slot, kind, max_ctas;
  uint64_t bytes, n;
} RoleCall;

static const LsSortKey by_role_call[] = { { LS_RISING (RoleCall, slot) },
                                          { LS_RISING (RoleCall, kind) },
                                          { LS_RISING (RoleCall, max_ctas) },
                                          { LS_RISING (RoleCall, bytes) },
                                          { 0 } };

typedef struct {
  LsTune *tune;
  GArray *places, *calls;
  const LsJobResult *job;           /* whose calls are gathered */
  bool has_others[LS_N_COLL_KINDS]; /* calls that no tuner is asked about */
  bool has_no_places;               /* groups of a cluster that are not told apart */
  guint n_large;                    /* calls too large to plan */
} Tuner;

static void
place_clear (gpointer place)
{
  g_free (((Place *) place)->gpus);
}

static void
call_clear (gpointer call)
{
  g_array_unref (((Call *) call)->uses);
}

/* RoleCall. */
static GArray *
calls_of_role (Tuner *x, uint32_t role)
{
  const LsPlan *plan = x->job->plan;
  const LsProgram *program = &plan->programs[role];
  GArray *calls = g_array_new (FALSE, TRUE, sizeof (RoleCall));
  g_autofree uint32_t *n_uses = ls_program_uses (plan, program, program->n_lead);
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (uint32_t i = 0; n_uses[s] > 0 && i < plan->segments[s].n_ops; i++) {
      const LsOp *op = &plan->segments[s].ops[i];
      if (op->kind != LS_OP_COLLECTIVE)
        continue;
      const RoleCall like
          = { .slot = op->slot, .kind = op->coll, .max_ctas = op->max_ctas, .bytes = op->bytes };
      if (!op_names[op->coll] || op->algorithm != LS_ALGORITHM_CHOOSE)
        x->has_others[op->coll] = true;
      else
        ((RoleCall *) ls_list_like (calls, by_role_call, &like))->n += n_uses[s];
    }
  return calls;
}

/* Where the members of a communicator lie: an index of `places`. */
static guint
place_of (Tuner *x, LsLie *lie, uint32_t comm)
{
  const LsPlan *plan = x->job->plan;
  const LsCommunicator c = ls_plan_communicator (plan, comm);
  Place like = { .job = x->job, .n_ranks = c.n_ranks, .gpus = g_new (uint32_t, c.n_ranks) };
  g_autoptr (GHashTable) nodes = g_hash_table_new (NULL, NULL);
  LsSig where = ls_sig_of (x->tune->n_jobs);
  for (uint32_t i = 0; i < c.n_ranks; i++) {
    like.gpus[i] = ls_plan_gpu (plan, ls_comm_rank (&c, i));
    g_hash_table_add (nodes, GUINT_TO_POINTER (ls_cluster_host_of (x->job->cluster, like.gpus[i])));
  }
  like.n_nodes = g_hash_table_size (nodes);
  ls_sig_add_sig (&where,
                  lie ? ls_lie_of (lie, NULL, like.gpus, c.n_ranks)
                      : ls_sig_of ((uint64_t) like.n_nodes << 32 | c.n_ranks));
  like.a = where.a;
  like.b = where.b;
  const guint n_before = x->places->len;
  const Place *place = ls_list_like (x->places, by_place, &like);
  if (x->places->len == n_before)
    g_free (like.gpus);
  return (guint) (place - (const Place *) (gpointer) x->places->data);
}

static void
add_call (Tuner *x, const RoleCall *r, guint at)
{
  const Place *place = &g_array_index (x->places, Place, at);
  const Call like = { r->kind, place->n_nodes, place->n_ranks, r->bytes, r->max_ctas, 0, 0, NULL };
  Call *call = ls_list_like (x->calls, by_call, &like);
  if (!call->uses)
    call->uses = g_array_new (FALSE, TRUE, sizeof (Use));
  if (r->max_ctas > 0 && (call->max_ctas == 0 || r->max_ctas < call->max_ctas))
    call->max_ctas = r->max_ctas;
  Use *use = ls_list_like (call->uses, by_use, &(Use) { .place = at });
  const double weight = (double) r->n * place->n_ranks / x->job->plan->n_ranks;
  use->weight += weight;
  call->weight += weight;
  call->n += r->n;
}

/* Those of a rank on communicators that no rank before it is in. */
static void
add_calls_of_rank (Tuner *x, const GArray *calls, uint32_t rank, LsLie *lie, GHashTable *first_of)
{
  guint places[LS_N_SLOTS];
  memset (places, -1, sizeof places);
  for (guint i = 0; i < calls->len; i++) {
    const RoleCall *call = &g_array_index (calls, RoleCall, i);
    const uint32_t comm = ls_plan_comm_of (x->job->plan, rank, (LsSlot) call->slot);
    gpointer first = comm == UINT32_MAX ? NULL : g_hash_table_lookup (first_of, GUINT_TO_POINTER (comm));
    if (comm != UINT32_MAX && !first)
      g_hash_table_insert (first_of, GUINT_TO_POINTER (comm), first = GUINT_TO_POINTER (rank + 1));
    if (first != GUINT_TO_POINTER (rank + 1) || ls_plan_communicator (x->job->plan, comm).n_ranks == 1)
      continue;
    if (places[call->slot] == G_MAXUINT)
      places[call->slot] = place_of (x, lie, comm);
    add_call (x, call, places[call->slot]);
  }
}

static void
add_job (Tuner *x, const LsJobResult *job)
{
  const LsPlan *plan = job->plan;
  LsLie lie_at, *lie = ls_lie_init (&lie_at, job->cluster) ? &lie_at : NULL;
  g_autoptr (GHashTable) first_of = g_hash_table_new (NULL, NULL);
  g_autoptr (GPtrArray) roles = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  x->job = job;
  x->has_no_places = x->has_no_places || !lie;
  x->tune->n_jobs++;
  for (uint32_t role = 0; role < plan->n_roles; role++)
    g_ptr_array_add (roles, calls_of_role (x, role));
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
    add_calls_of_rank (x, roles->pdata[ls_plan_role (plan, rank)], rank, lie, first_of);
  if (lie)
    ls_lie_clear (lie);
}

/* --- the best way of each ----------------------------------------------------------------------------- */

/* Seconds of all uses of a call, by that way (algorithm NULL, protocol AUTO, no ctas: NCCL's own), each
 * weighted; INFINITY: one cannot be done so. ret_way: of the first use. */
static double
time_way (const Tuner *x, const Call *call, const char *algorithm, LsProtocol protocol, uint32_t ctas,
          LsTuneWay *ret_way)
{
  double sum = 0;
  for (guint i = 0; i < call->uses->len; i++) {
    const Use *use = &g_array_index (call->uses, Use, i);
    const Place *place = &g_array_index (x->places, Place, use->place);
    const LsCluster *c = place->job->cluster;
    const LsNccl *nccl = &place->job->hardware->nccl;
    const LsCollRequest request = { .kind = (LsCollKind) call->kind,
                                    .gpus = place->gpus,
                                    .n = place->n_ranks,
                                    .bytes = call->bytes,
                                    .algorithm = algorithm,
                                    .protocol = protocol,
                                    .max_ctas = ctas };
    if ((algorithm && !ls_coll_is_of_tuner (c, nccl, &request))
        || !ls_coll_check_size (c, nccl, &request, LS_NETWORK_FLOW, NULL))
      return INFINITY;
    g_autoptr (LsArena) arena = ls_arena_new ();
    const LsCollPlan *plan = ls_coll_plan (c, nccl, &request, LS_NETWORK_FLOW, arena);
    sum += use->weight * ls_time_to_s (ls_coll_time_alone (c, plan));
    if (i == 0)
      *ret_way = way_of (plan, ls_nccl_among (nccl, ls_coll_kinds (c, place->gpus, place->n_ranks)), ctas);
  }
  return sum;
}

/* Starts with its usual way in `best`; all channels that NCCL opens are tried, then 1, 2, 4, ... of them. */
static void
try_all (const Tuner *x, const Call *call, LsTuneWay *best, double *best_s)
{
  static const LsProtocol tried[] = { LS_PROTOCOL_LL, LS_PROTOCOL_LL128, LS_PROTOCOL_SIMPLE };
  for (guint i = 0; i < N_TRIED * G_N_ELEMENTS (tried); i++) {
    const char *algorithm = algorithms[i / G_N_ELEMENTS (tried)].name;
    uint32_t most = UINT32_MAX;
    for (uint32_t ctas = call->max_ctas, next = 1; ctas < most; ctas = next, next *= 2) {
      LsTuneWay way = { 0 };
      double s = time_way (x, call, algorithm, tried[i % G_N_ELEMENTS (tried)], ctas, &way);
      most = isinf (s) ? 0 : next == 1 ? way.channels : most;
      if (s < *best_s) {
        *best = way;
        *best_s = s;
      }
    }
  }
}

static bool
is_same_way (const LsTuneWay *a, const LsTuneWay *b)
{
  return a->algorithm == b->algorithm && a->protocol == b->protocol && a->channels == b->channels;
}

/* After rows of smaller calls: with the last of them, or as one of its own. */
static void
add_row (LsTune *tune, const Call *call, const LsTuneRow *row)
{
  LsTuneRow *last = tune->rows->len > 0 ? &g_array_index (tune->rows, LsTuneRow, tune->rows->len - 1) : NULL;
  if (last && (last->kind != row->kind || last->n_nodes != row->n_nodes || last->n_ranks != row->n_ranks))
    last = NULL;
  if (last && is_same_way (&last->best, &row->best) && is_same_way (&last->usual, &row->usual)) {
    last->best_s += row->best_s;
    last->usual_s += row->usual_s;
    last->n_calls += row->n_calls;
    last->last = call->bytes;
    return;
  }
  LsTuneRow own = *row;
  if (last) {
    last->to = (uint64_t) sqrt ((double) last->last * (double) call->bytes);
    last->to = MAX (last->to, last->last);
    own.from = last->to + 1;
  }
  ls_list_add (tune->rows, &own);
}

static void
tune_call (Tuner *x, const Call *call)
{
  LsTune *tune = x->tune;
  LsTuneRow row = { .kind = call->kind,
                    .n_nodes = call->n_nodes,
                    .n_ranks = call->n_ranks,
                    .to = LS_TUNE_ANY_BYTES,
                    .first = call->bytes,
                    .last = call->bytes,
                    .n_calls = call->n };
  double usual_s = time_way (x, call, NULL, LS_PROTOCOL_AUTO, call->max_ctas, &row.usual);
  if (isinf (usual_s) || !row.usual.algorithm) {
    x->n_large++;
    return;
  }
  double best_s = usual_s;
  row.best = row.usual;
  try_all (x, call, &row.best, &best_s);
  tune->usual_s += usual_s;
  tune->best_s += best_s;
  row.usual_s = usual_s / call->weight * (double) call->n;
  row.best_s = best_s / call->weight * (double) call->n;
  add_row (tune, call, &row);
}

/* --- the whole ---------------------------------------------------------------------------------------- */

static void
note_left_out (const Tuner *x)
{
  GPtrArray *notes = x->tune->notes;
  for (guint kind = 0; kind < LS_N_COLL_KINDS; kind++)
    if (x->has_others[kind])
      ls_note (notes, "%s is not in the table: NCCL asks no tuner about it",
               ls_coll_kind_name ((LsCollKind) kind));
  if (x->n_large > 0)
    ls_note (notes, "%u kinds of calls are too large to be tried, or by no way of NCCL: not in the table",
             x->n_large);
  if (x->has_no_places)
    ls_note (notes,
             "groups of as many ranks and nodes count as the first of them: where they lie in such a "
             "fabric is not compared");
}

/* Of several jobs what they have in common once. Speeds of kernels and memory have no part in it. */
static void
note_job (const LsTune *tune, LsJobResult *job)
{
  static const char *const idle[] = { "gpu_calibration", "clock_spread", "recorded", NULL };
  ls_assumptions_drop (job->assumptions, idle);
  ls_assumptions_drop_memory (job);
  char *rests = ls_assumptions_text (job->assumptions);
  if (rests)
    g_ptr_array_add (job->notes, rests);
  for (guint i = 0; i < job->notes->len; i++)
    if (!g_ptr_array_find_with_equal_func (tune->notes, job->notes->pdata[i], g_str_equal, NULL))
      ls_note (tune->notes, "%s", (const char *) job->notes->pdata[i]);
}

static gboolean
add_spec (Tuner *x, const LsJobSpec *spec, GPtrArray *jobs, GError **error)
{
  LsTune *tune = x->tune;
  LsJobResult *job = ls_job_spec_prepare (spec, error);
  if (!job)
    return FALSE;
  g_ptr_array_add (jobs, job);
  const LsClusterSpec *c = &job->cluster->spec;
  if (!ls_cluster_traits (c)->has_nccl)
    return ls_fail (error, LS_ERROR_CONFLICT, "--tune: a %s has no NCCL, whose tuner would read the table",
                    ls_cluster_traits (c)->name);
  if (tune->cluster && strcmp (tune->cluster, c->name) != 0)
    return ls_fail (error, LS_ERROR_CONFLICT, "--tune: a table is of one cluster; got jobs on %s and on %s",
                    tune->cluster, c->name);
  if (!tune->cluster)
    tune->cluster = g_strdup (c->name);
  const guint plugin = job->hardware->nccl.tables.gcn != NULL;
  tune->library = plugins[plugin][0];
  tune->unlisted = plugins[plugin][1];
  note_job (tune, job);
  add_job (x, job);
  return TRUE;
}

LsTune *
ls_tune_new (const LsJobSpec *specs, guint n, GError **error)
{
  g_autoptr (LsTune) tune = g_new0 (LsTune, 1);
  g_autoptr (GPtrArray) jobs = g_ptr_array_new_with_free_func ((GDestroyNotify) ls_job_result_free);
  g_autoptr (GArray) places = ls_list_new (sizeof (Place), place_clear),
                     calls = ls_list_new (sizeof (Call), call_clear);
  tune->rows = g_array_new (FALSE, TRUE, sizeof (LsTuneRow));
  tune->notes = g_ptr_array_new_with_free_func (g_free);
  Tuner x = { .tune = tune, .places = places, .calls = calls };
  for (guint i = 0; i < n; i++)
    if (!add_spec (&x, &specs[i], jobs, error))
      return NULL;
  ls_sort_by (calls, by_call);
  for (guint i = 0; i < calls->len; i++)
    tune_call (&x, &g_array_index (calls, Call, i));
  note_left_out (&x);
  if (tune->rows->len == 0)
    return ls_fail_null (error, LS_ERROR_CONFLICT,
                         "--tune: no job has collectives between GPUs that NCCL asks a tuner about");
  return g_steal_pointer (&tune);
}

void
ls_tune_free (LsTune *tune)
{
  if (!tune)
    return;
  g_free (tune->cluster);
  g_clear_pointer (&tune->rows, g_array_unref);
  g_clear_pointer (&tune->notes, g_ptr_array_unref);
  g_free (tune);
}
