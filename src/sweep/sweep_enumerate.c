/* sweep/sweep_enumerate.c — all configurations of a sweep gone through: what is legal, may fit, and what it
 * takes at least. */
#include <math.h>
#include <string.h>

#include "base/digest.h"
#include "base/order.h"
#include "base/parallel.h"
#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "job/job_steps.h"
#include "lower/parts.h"
#include "schedules/sched.h"
#include "strategy/shard.h"
#include "sweep/sweep_state.h"

/* --- ideas --------------------------------------------------------------------------------------- */

static const char *
family_of (const char *schedule)
{
  const char *name
      = g_str_has_prefix (schedule, "interleaved-") ? schedule + strlen ("interleaved-") : schedule;
  static const struct {
    const char *prefix, *family;
  } families[] = { { "zbv", "zbv" }, { "v-", "zbv" }, { "zb", "zb" }, { "dualpipe", "dualpipe" } };
  for (guint i = 0; i < G_N_ELEMENTS (families); i++)
    if (g_str_has_prefix (name, families[i].prefix))
      return families[i].family;
  return name;
}

char *
ls_idea_text (const LsStrategy *s)
{
  return g_strdup_printf ("%u %u %u %u %u %u %u %d %d %s", s->gpus, s->global_batch, s->tp, s->pp, s->cp,
                          s->ep, s->zero_stage, s->dp_kind, s->recompute, family_of (s->schedule));
}

/* From another knob that is said: more chunks have another schedule, gathers overlap as reductions do. */
static bool
follows (const char *key, const LsStrategy *a, const LsStrategy *b)
{
  bool is_gather = strcmp (key, "gather_overlap") == 0 && a->data.overlap != b->data.overlap
      && b->data.gather_overlap == (int) b->data.overlap;
  return is_gather || (strcmp (key, "schedule") == 0 && a->vpp != b->vpp);
}

char *
ls_idea_difference (const LsStrategy *a, const LsStrategy *b)
{
  GString *out = g_string_new (NULL);
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    g_autofree char *x = f->file_only ? NULL : ls_field_text (f, a, NULL),
                    *y = f->file_only ? NULL : ls_field_text (f, b, NULL);
    if (g_strcmp0 (x, y) == 0 || follows (f->key, a, b))
      continue;
    g_autofree char *knob = g_strdelimit (g_strdup (f->key), "_", '-');
    bool is_off = f->kind == LS_FIELD_BOOL && g_strcmp0 (y, "false") == 0;
    g_string_append_printf (out, "%s%s%s", out->len > 0 ? ", " : "", is_off ? "no " : "", knob);
    if (f->kind != LS_FIELD_BOOL)
      g_string_append_printf (out, " %s", y ? y : "by itself");
  }
  return g_string_free (out, FALSE);
}

/* --- layouts of chunks --------------------------------------------------------------------------- */

/* What the times of parts depend on. No gaps: hashed and compared as bytes. */
typedef struct {
  const LsModelParts *parts;
  const LsCluster *cluster;
  uint32_t gpus, n_copies; /* the latter 0: the groups of the first rank lie alike with any */
} Key;

typedef struct {
  Key key;
  bool is_known; /* else such a job cannot be lowered          */
  guint number;  /* of the first entry with these times        */
  LsPartTimes times;
} Entry;

/* A collective of the group of the first rank, where ranks are in the usual order. */
typedef struct {
  const LsCluster *cluster;
  uint64_t bytes;
  uint32_t tp, cp, ep, etp;
  int slot, coll;
} CallKey;

/* What the layers of chunks depend on, of one model. */
typedef struct {
  const LsSched *pipes; /* NULL: its chunks are as many as the strategy says */
  uint32_t pp, vpp, placement, rule;
  guint number; /* of an entry */
} ChunksKey;

typedef struct {
  ChunksKey key;
  uint32_t *layers; /* [pp * vpp] */
} Chunks;

struct LsLayouts {
  const LsModel *model;
  const LsHardware *hardware;
  GHashTable *entries; /* Key -> Entry                                 */
  GHashTable *times;   /* Entry -> itself, one for each set of times   */
  GHashTable *chunks;  /* ChunksKey -> Chunks                          */
  GHashTable *calls;   /* CallKey -> LsTime *                          */
  LsCallTimes *call_times;
  LsPartsMemo *parts;
};

LS_DEFINE_BYTES_KEY (key, Key)
LS_DEFINE_BYTES_KEY (chunks_key, ChunksKey)
LS_DEFINE_BYTES_KEY (call_key, CallKey)

static guint
times_hash (gconstpointer entry)
{
  return ls_hash_bytes (&((const Entry *) entry)->times, sizeof (LsPartTimes));
}

static gboolean
times_equal (gconstpointer a, gconstpointer b)
{
  return memcmp (&((const Entry *) a)->times, &((const Entry *) b)->times, sizeof (LsPartTimes)) == 0;
}

static void
chunks_free (gpointer chunks)
{
  g_free (((Chunks *) chunks)->layers);
  g_free (chunks);
}

LsLayouts *
ls_layouts_new (const LsModel *m, const LsHardware *hardware, LsPartsMemo *parts)
{
  LsLayouts *l = g_new (LsLayouts, 1);
  *l = (LsLayouts) { m,
                     hardware,
                     g_hash_table_new_full (key_hash, key_equal, NULL, g_free),
                     g_hash_table_new (times_hash, times_equal),
                     g_hash_table_new_full (chunks_key_hash, chunks_key_equal, NULL, chunks_free),
                     g_hash_table_new_full (call_key_hash, call_key_equal, g_free, g_free),
                     ls_call_times_new (&hardware->nccl, false),
                     parts ? ls_parts_memo_ref (parts) : ls_parts_memo_new (m) };
  return l;
}

void
ls_layouts_free (LsLayouts *l)
{
  if (!l)
    return;
  g_hash_table_unref (l->times);
  g_hash_table_unref (l->entries);
  g_hash_table_unref (l->chunks);
  g_hash_table_unref (l->calls);
  ls_call_times_free (l->call_times);
  ls_parts_memo_unref (l->parts);
  g_free (l);
}

/* Ranks in the usual order have tp, cp, ep and etp, whose groups are timed, before all else. */
static bool
is_in_usual_order (const LsStrategy *s)
{
  return !s->layout.rank_order && !s->layout.allocation;
}

/* Costs of a job, with calls that were timed before. */
typedef struct {
  LsLowerCosts own;
  CallKey key; /* of all its calls */
  GHashTable *calls;
} KnownCosts;

static LsTime
known_kernel (const LsKernel *kernel, void *data)
{
  const LsLowerCosts *own = &((const KnownCosts *) data)->own;
  return own->kernel (kernel, own->data);
}

static LsTime
known_collective (int slot, int coll, uint64_t bytes, void *data)
{
  KnownCosts *costs = data;
  CallKey *key = &costs->key;
  key->slot = slot, key->coll = coll, key->bytes = bytes;
  LsTime *known = g_hash_table_lookup (costs->calls, key);
  if (!known) {
    LsTime time = costs->own.collective (slot, coll, bytes, costs->own.data);
    known = g_memdup2 (&time, sizeof time);
    g_hash_table_insert (costs->calls, g_memdup2 (key, sizeof *key), known);
  }
  return *known;
}

/* As a job is timed in job/job.c. */
static bool
time_parts (const LsLayouts *l, const LsStrategy *s, const LsCluster *cluster, const LsModelParts *parts,
            LsPartTimes *ret_times)
{
  LsHardware chosen;
  ls_hardware_for_job (l->hardware, s, s->gpus, &chosen);
  g_autofree uint32_t *gpus = ls_job_gpus (s, cluster, NULL);
  if (!gpus || !parts)
    return false;
  LsCostSources of = { &chosen, cluster, s, l->call_times, gpus };
  KnownCosts known = { ls_lower_costs (&of), { .cluster = cluster }, l->calls };
  CallKey *key = &known.key;
  key->tp = s->tp, key->cp = s->cp, key->ep = s->ep, key->etp = s->experts.etp;
  const LsLowerCosts costs = { known_kernel, known_collective, known.own.send, &known };
  *ret_times = ls_part_times (l->parts, parts, is_in_usual_order (s) ? &costs : &known.own);
  return true;
}

static void
set_balanced (LsLayouts *l, LsStrategy *s, const Entry *e)
{
  const LsSched *sched = ls_sched_find (s->schedule);
  ChunksKey key;
  memset (&key, 0, sizeof key);
  key.number = e->number, key.rule = (uint32_t) s->layout.layer_rule, key.pp = s->pp, key.vpp = s->vpp,
  key.placement = (uint32_t) sched->placement;
  key.pipes = sched->placement == LS_PLACE_PIPES ? sched : NULL;
  const Chunks *known = g_hash_table_lookup (l->chunks, &key);
  if (known) {
    ls_strategy_set_layers (s, known->layers);
    return;
  }
  ls_strategy_set_balanced (s, l->model, &e->times);
  Chunks *c = g_new (Chunks, 1);
  c->key = key;
  c->layers = g_memdup2 (s->layout.layers_per_chunk, s->layout.n_layers_per_chunk * sizeof *c->layers);
  g_hash_table_insert (l->chunks, &c->key, c);
}

bool
ls_layouts_balance (LsLayouts *l, LsStrategy *s, const LsCluster *cluster, uint64_t variant)
{
  Key key;
  if (!ls_chunks_want_balance (s, l->model))
    return true;
  memset (&key, 0, sizeof key);
  key.parts = ls_parts_of (l->parts, s, variant, LS_PARTS_USUAL, NULL);
  key.cluster = cluster;
  key.gpus = s->gpus;
  key.n_copies = is_in_usual_order (s) ? 0 : s->dp * s->cp;
  Entry *e = g_hash_table_lookup (l->entries, &key);
  if (!e) {
    e = g_new0 (Entry, 1);
    e->key = key;
    e->is_known = time_parts (l, s, cluster, key.parts, &e->times);
    e->number = g_hash_table_size (l->entries);
    const Entry *same = g_hash_table_lookup (l->times, e);
    if (same)
      e->number = same->number;
    else
      g_hash_table_add (l->times, e);
    g_hash_table_insert (l->entries, &e->key, e);
  }
  if (e->is_known)
    set_balanced (l, s, e);
  return e->is_known;
}

/* --- configurations gone through ----------------------------------------------------------------- */

/* The program decides as it would of a job to be written out, once its layers are known. */
static bool
can_be_emitted (const LsSweepRun *x, const LsStrategy *s, LsDiagList *why)
{
  g_autoptr (GError) error = NULL;
  if (ls_chunks_want_balance (s, &x->model)
      || ls_software_check (x->spec->job.program, &x->model, s, why ? &error : NULL))
    return true;
  g_auto (GStrv) lines = why ? g_strsplit (error->message, "\n", -1) : NULL;
  for (char **line = lines; line && *line; line++)
    if (g_str_has_prefix (*line, "error: "))
      ls_diag_fail (why, LS_ERROR_UNSUPPORTED, "%s: %s", x->spec->job.program->program,
                    *line + strlen ("error: "));
  return false;
}

/* On GPUs that the cluster has, and as many as it has ranks. */
static bool
can_be_placed (const LsStrategy *s, const LsCluster *cluster, LsDiagList *why)
{
  g_autoptr (GError) error = NULL;
  g_autofree uint32_t *gpus = s->layout.allocation ? ls_job_gpus (s, cluster, why ? &error : NULL) : NULL;
  if (gpus || !s->layout.allocation)
    return true;
  const char *what = why ? error->message : "";
  what += g_str_has_prefix (what, "error: ") ? strlen ("error: ") : 0;
  if (why)
    ls_diag_fail (why, LS_ERROR_CONFLICT, "%s", what);
  return false;
}

/* An implementation of attention that is compared with others has times of its own. */
static bool
has_attention (const LsSweepRun *x, const LsStrategy *base, const LsStrategy *s, LsDiagList *why)
{
  if (s->use.attention_kernel == base->use.attention_kernel
      || ls_hardware_has_attention (x->hardware, s->use.attention_kernel))
    return true;
  if (why)
    ls_diag_add (why, LS_ERROR_CONFLICT, NULL, 0, 0, "/attention_kernel", NULL, NULL,
                 "the accelerator was not measured with it");
  return false;
}

/* The backend of data parallelism (LsDpKind) that a configuration asks for; of one copy: none. */
static int
candidate_dp_kind (const LsSweepRun *x, const LsPoint *p)
{
  LsStrategy s = x->spec->job.strategy; /* borrows all */
  if (ls_space_is_alone (&x->spec->space, p))
    return LS_DP_NONE;
  s.dp_kind = (int) ls_space_value (&x->spec->space, p, LS_SPACE_DP_KIND);
  ls_space_set_value (&s, LS_SPACE_ZERO, ls_space_value (&x->spec->space, p, LS_SPACE_ZERO));
  return ls_strategy_dp_kind (&s);
}

uint64_t
candidate_variant (const LsSweepRun *x, const LsPoint *p)
{
  bool is_one = x->spec->job.software && !x->spec->job.from; /* whatever the backend */
  uint64_t kind = is_one ? 0 : (uint64_t) candidate_dp_kind (x, p);
  return ls_space_variant (&x->spec->space, p) * LS_N_DP_KINDS + kind;
}

const LsCluster *
candidate_cluster (const LsSweepRun *x, const LsPoint *p)
{
  LsSpaceAxis axis = x->spec->space.placement_axis;
  guint n_placements = ls_space_n (&x->spec->space, axis);
  return g_ptr_array_index (x->clusters, p->at[LS_SPACE_GPUS] * n_placements + p->at[axis]);
}

void
candidate_start (const LsSweepRun *x, const LsPoint *p, LsStrategy *ret_s)
{
  ls_space_strategy (&x->spec->space, &x->base[candidate_dp_kind (x, p)], p, ret_s);
}

/* By all but what its program can do. */
static bool
resolve (const LsSweepRun *x, const LsPoint *p, LsStrategy *s, LsDiagList *why)
{
  const LsJobSpec *job = &x->spec->job;
  const LsCluster *cluster = candidate_cluster (x, p);
  const LsStrategy *base = &x->base[candidate_dp_kind (x, p)];
  if (job->software)
    ls_software_settle (job->software, s);
  bool is_legal
      = ls_strategy_resolve (s, &x->model, ls_cluster_n_taken (cluster), ls_cluster_common (cluster), why);
  ls_space_choose_parts (&x->spec->space, p, &job->strategy, s);
  return is_legal && has_attention (x, base, s, why) && can_be_placed (s, cluster, why);
}

bool
candidate_settle (const LsSweepRun *x, const LsPoint *p, LsStrategy *s, LsDiagList *why)
{
  return resolve (x, p, s, why) && can_be_emitted (x, s, why);
}

bool
candidate_is_allowed (const LsSweepRun *x, const LsPoint *p, LsStrategy *ret_s)
{
  candidate_start (x, p, ret_s);
  return resolve (x, p, ret_s, NULL);
}

bool
candidate_strategy (const LsSweepRun *x, const LsPoint *p, LsStrategy *ret_s, LsDiagList *why)
{
  candidate_start (x, p, ret_s);
  return candidate_settle (x, p, ret_s, why);
}

uint64_t
candidate_limit (const LsSweepRun *x, const LsStrategy *s)
{
  return x->capacity_bytes - MIN (x->headroom[s->dp_kind].bytes, x->capacity_bytes);
}

void
candidate_strategy_at (const LsSweepRun *x, uint64_t index, LsStrategy *ret_s)
{
  LsPoint p;
  ls_space_point (&x->spec->space, index, &p);
  candidate_strategy (x, &p, ret_s, NULL);
}

void
candidate_settled (const LsSweepRun *x, const Candidate *c, LsStrategy *ret_s)
{
  LsPoint p;
  candidate_strategy_at (x, c->index, ret_s);
  ls_space_point (&x->spec->space, c->index, &p);
  g_autoptr (LsLayouts) layouts = ls_layouts_new (&x->model, x->hardware, NULL);
  ls_layouts_balance (layouts, ret_s, candidate_cluster (x, &p), 0);
}

/* --- by one thread ------------------------------------------------------------------------------ */

/* What it has found where it went. */
typedef struct {
  const LsSweepRun *x;
  LsBounds *bounds;
  LsLayouts *layouts;
  GArray *candidates; /* Candidate; their ideas are numbers of `ideas` */
  GHashTable *ideas;  /* text (owned) -> number */
  LsSweepCounts counts;
  Nearest nearest;
  GError *over_budget; /* of the first configuration that is, */
  uint64_t over_budget_at;
  bool is_cut;
} Part;

/* All of them. */
typedef struct {
  guint n;
  Part *parts;
  uint64_t block; /* indices of one thread, one behind the other */
} Enumeration;

static bool
is_within_budget (Part *part, const LsStrategy *s, uint64_t index)
{
  uint64_t max = part->x->options.max_memory_bytes;
  bool is_first = !part->over_budget || index < part->over_budget_at;
  g_autoptr (GError) error = NULL;
  if (ls_budget_check_passes (s, &part->x->model, max, is_first ? &error : NULL))
    return true;
  if (is_first) {
    g_clear_error (&part->over_budget);
    part->over_budget = g_steal_pointer (&error);
    part->over_budget_at = index;
  }
  return false;
}

/* The number of that idea. Owns text. */
static uint32_t
number_of (GHashTable *ideas, char *text)
{
  gpointer number = g_hash_table_lookup (ideas, text);
  if (!number) {
    number = GUINT_TO_POINTER (g_hash_table_size (ideas) + 1);
    g_hash_table_insert (ideas, g_steal_pointer (&text), number);
  }
  g_free (text);
  return GPOINTER_TO_UINT (number);
}

/* Of a configuration that is legal: kept if it may be worth a simulation. Most do not fit: how long their
 * steps take is not looked at. */
static void
keep (Part *part, const LsPoint *p, const LsStrategy *s, uint64_t index)
{
  const LsSweepRun *x = part->x;
  const LsCluster *cluster = candidate_cluster (x, p);
  uint64_t limit = candidate_limit (x, s), variant = candidate_variant (x, p);
  Candidate c = { .index = index, .bound.memory_bytes = ls_bound_memory (part->bounds, s, variant) };
  if (x->options.memory.clock == LS_MEMORY_HOST && c.bound.memory_bytes > limit) {
    part->counts.infeasible++;
    sweep_note_near (&part->nearest, &(Near) { index, c.bound.memory_bytes - limit, s->pp });
    return;
  }
  c.key = c.bound.step = ls_bound_step (part->bounds, s, cluster, variant);
  c.goodput = ls_objective_goodput (&x->objective, &x->model, s, &cluster->spec);
  c.idea = number_of (part->ideas, ls_idea_text (s));
  c.group = p->at[LS_SPACE_GPUS] * x->spec->space.values[LS_SPACE_GLOBAL_BATCH]->len
      + p->at[LS_SPACE_GLOBAL_BATCH];
  g_array_append_val (part->candidates, c);
}

/* Whether another is the same: that with an earlier value of a knob without effect, if it is legal. */
static bool
is_repeated (const LsSweepRun *x, const LsPoint *p, const LsStrategy *s)
{
  LsPoint other = *p;
  bool has_other = !ls_space_has_effect (&x->spec->space, p, s);
  for (guint a = LS_N_SPACE_AXES; a < ls_space_n_axes () && !has_other; a++) {
    bool is_idle = p->at[a] > 0 && ls_strategy_idle (s, &x->model, ls_space_axis_name ((LsSpaceAxis) a));
    for (other.at[a] = 0; is_idle && !has_other && other.at[a] < p->at[a]; other.at[a]++) {
      LsStrategy tried;
      has_other = candidate_strategy (x, &other, &tried, NULL);
      ls_strategy_clear (&tried);
    }
    other.at[a] = p->at[a];
  }
  return has_other;
}

/* However the layers of its chunks lie, which then nobody has to find. Only where these do not decide what is
 * legal, or the same as another. */
static bool
surely_does_not_fit (Part *part, const LsPoint *p, const LsStrategy *s, uint64_t index)
{
  const LsSweepRun *x = part->x;
  uint64_t limit = candidate_limit (x, s);
  if (!ls_chunks_want_balance (s, &x->model) || x->spec->job.program
      || ls_space_n (&x->spec->space, x->spec->space.layers_axis) > 1
      || x->options.memory.clock != LS_MEMORY_HOST)
    return false;
  uint64_t bytes = ls_bound_memory_of_any_layers (part->bounds, s, candidate_variant (x, p));
  if (bytes <= limit || is_repeated (x, p, s) || !is_within_budget (part, s, index))
    return false;
  part->counts.enumerated++;
  part->counts.infeasible++;
  sweep_note_near (&part->nearest, &(Near) { index, bytes - limit, s->pp });
  return true;
}

static void
look_at (Part *part, const LsPoint *p, uint64_t index)
{
  const LsSweepRun *x = part->x;
  const LsSpace *space = &x->spec->space;
  LsSweepCounts *n = &part->counts;
  LsStrategy s;
  if (!ls_space_is_distinct (space, &x->model, &x->spec->job.strategy, p))
    return;
  if (ls_space_is_refused (space, &x->model, &x->spec->job.strategy, p)) {
    n->enumerated++;
    n->illegal++;
    return;
  }
  bool is_legal = candidate_is_allowed (x, p, &s);
  if (is_legal && surely_does_not_fit (part, p, &s, index)) {
    ls_strategy_clear (&s);
    return;
  }
  is_legal = is_legal
      && ls_layouts_balance (part->layouts, &s, candidate_cluster (x, p), candidate_variant (x, p));
  bool has_other = is_legal && is_repeated (x, p, &s);
  is_legal = is_legal && (has_other || can_be_emitted (x, &s, NULL)); /* last, as it takes longest */
  n->enumerated += !has_other;
  if (!is_legal || (!has_other && !is_within_budget (part, &s, index)))
    n->illegal++;
  else if (!has_other)
    keep (part, p, &s, index);
  ls_strategy_clear (&s);
}

/* Whose block begins there. What takes long is kept by what these axes say, and is found by one thread. */
static guint
owner_of (const LsPoint *p, guint n)
{
  static const LsSpaceAxis axes[]
      = { LS_SPACE_GPUS, LS_SPACE_TP, LS_SPACE_CP, LS_SPACE_EP, LS_SPACE_MICRO_BATCH };
  guint sum = 0;
  for (guint i = 0; i < G_N_ELEMENTS (axes); i++)
    sum += p->at[axes[i]];
  return sum % n;
}

static void
look_at_block (Part *part, LsPoint p, uint64_t index, uint64_t n)
{
  for (uint64_t i = 0; i < n && !part->is_cut; i++) {
    look_at (part, &p, index + i);
    part->is_cut = is_stopped (part->x);
    ls_space_next (&part->x->spec->space, &p);
  }
}

static void
go_through (guint i, gpointer enumeration)
{
  const Enumeration *e = enumeration;
  Part *part = &e->parts[i];
  const LsSpace *space = &part->x->spec->space;
  for (uint64_t at = 0; at < space->size && !part->is_cut; at += e->block) {
    LsPoint p;
    ls_space_point (space, at, &p);
    if (owner_of (&p, e->n) == i)
      look_at_block (part, p, at, e->block);
  }
}

/* --- what all found ----------------------------------------------------------------------------- */

/* In the numbers of all. */
static void
join_candidates (LsSweepRun *x, const Part *part)
{
  g_autofree uint32_t *number = g_new0 (uint32_t, g_hash_table_size (part->ideas) + 1);
  GHashTableIter iter;
  gpointer text, own;
  g_hash_table_iter_init (&iter, part->ideas);
  while (g_hash_table_iter_next (&iter, &text, &own))
    number[GPOINTER_TO_UINT (own)] = number_of (x->ideas, g_strdup (text));
  for (guint i = 0; i < part->candidates->len; i++) {
    Candidate c = g_array_index (part->candidates, Candidate, i);
    c.idea = number[c.idea];
    g_array_append_val (x->candidates, c);
  }
}

static void
join (LsSweepRun *x, Part *part, uint64_t *first_over_budget)
{
  LsSweepCounts *n = &x->report.counts;
  n->enumerated += part->counts.enumerated;
  n->illegal += part->counts.illegal;
  n->infeasible += part->counts.infeasible;
  for (guint i = 0; i < part->nearest.n; i++)
    sweep_note_near (&x->nearest, &part->nearest.at[i]);
  if (part->over_budget && (!x->over_budget || part->over_budget_at < *first_over_budget)) {
    g_clear_error (&x->over_budget);
    x->over_budget = g_steal_pointer (&part->over_budget);
    *first_over_budget = part->over_budget_at;
  }
  g_clear_error (&part->over_budget);
  x->is_cut |= part->is_cut;
  join_candidates (x, part);
}

static int
compare_candidates (gconstpointer a, gconstpointer b)
{
  const Candidate *x = a, *y = b;
  LS_SMALLER_FIRST (x->group, y->group);
  LS_SMALLER_FIRST ((double) x->key / x->goodput, (double) y->key / y->goodput);
  return LS_ORDER (x->index, y->index);
}

static void
find_groups (LsSweepRun *x)
{
  const LsSpace *space = &x->spec->space;
  g_array_sort (x->candidates, compare_candidates);
  uint32_t at = 0;
  for (guint g = 0; g < space->values[LS_SPACE_GPUS]->len; g++)
    for (guint b = 0; b < space->values[LS_SPACE_GLOBAL_BATCH]->len; b++) {
      Group group = { g_array_index (space->values[LS_SPACE_GPUS], uint32_t, g),
                      g_array_index (space->values[LS_SPACE_GLOBAL_BATCH], uint32_t, b),
                      at,
                      0,
                      INFINITY,
                      -1,
                      INFINITY };
      while (at < x->candidates->len && candidate_at (x, at)->group == x->groups->len)
        at++;
      group.n = at - group.first;
      g_array_append_val (x->groups, group);
    }
}

/* The cluster of so many GPUs of a job with that placement; NULL: its own. */
static LsCluster *
build_cluster (const LsSweepRun *x, uint32_t gpus, const char *placement, GError **error)
{
  LsStrategy s;
  ls_strategy_copy (&s, &x->spec->job.strategy);
  s.gpus = gpus;
  bool ok = !placement || ls_field_value_set (ls_field_find (ls_strategy_fields, "placement"), &s, placement);
  g_assert (ok); /* it was read before */
  LsCluster *cluster = s.layout.allocation
      ? ls_job_build_cluster (&s, x->hardware, x->spec->job.n_nodes, error)
      : ls_hardware_build_asked (x->hardware, x->spec->job.n_nodes, gpus, error);
  ls_strategy_clear (&s);
  return cluster;
}

gboolean
sweep_build_clusters (LsSweepRun *x, GError **error)
{
  const LsSpace *space = &x->spec->space;
  LsSpaceAxis axis = space->placement_axis;
  guint n_placements = ls_space_n (space, axis);
  for (guint i = 0; i < space->values[LS_SPACE_GPUS]->len * n_placements; i++) {
    uint32_t gpus = g_array_index (space->values[LS_SPACE_GPUS], uint32_t, i / n_placements);
    LsCluster *cluster = build_cluster (x, gpus, ls_space_text (space, axis, i % n_placements), error);
    if (!cluster)
      return FALSE;
    g_ptr_array_add (x->clusters, cluster);
  }
  const LsCluster *first = g_ptr_array_index (x->clusters, 0);
  x->capacity_bytes = ls_memory_capacity (&first->spec.gpu);
  return TRUE;
}

/* The points that the axes behind the micro-batch have. */
static uint64_t
block_of (const LsSpace *space)
{
  uint64_t n = 1;
  for (guint a = LS_SPACE_MICRO_BATCH + 1; a < ls_space_n_axes (); a++)
    n *= ls_space_n (space, (LsSpaceAxis) a);
  return n;
}

void
sweep_enumerate (LsSweepRun *x, guint n_threads)
{
  g_autofree Part *parts = g_new (Part, n_threads);
  Enumeration e = { .n = n_threads, .parts = parts, .block = block_of (&x->spec->space) };
  uint64_t first_over_budget = 0;
  for (guint i = 0; i < n_threads; i++) {
    parts[i] = (Part) { .x = x,
                        .bounds = ls_bounds_new (&x->model, x->hardware),
                        .candidates = g_array_new (FALSE, FALSE, sizeof (Candidate)),
                        .ideas = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL) };
    parts[i].layouts = ls_layouts_new (&x->model, x->hardware, ls_bounds_parts (parts[i].bounds));
  }
  ls_parallel (n_threads, n_threads, go_through, &e, NULL);
  for (guint i = 0; i < n_threads; i++) {
    join (x, &parts[i], &first_over_budget);
    ls_bounds_free (parts[i].bounds);
    ls_layouts_free (parts[i].layouts);
    g_array_unref (parts[i].candidates);
    g_hash_table_unref (parts[i].ideas);
  }
  find_groups (x);
  x->n_to_do = x->candidates->len;
}
