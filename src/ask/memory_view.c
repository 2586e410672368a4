#include "ask/memory_view.h"

#include <lockstep/error.h>
#include <math.h>

#include "ask/whatif.h"
#include "base/list.h"
#include "base/order.h"
#include "job/knobs.h"
#include "model/operators.h"
#include "strategy/shard.h"

/* --- what would make a job fit that does not ----------------------------------------------------- */

#define MAX_CHANGES LS_ADVICE_MAX_CHANGES
#define WIDTH       6 /* combinations that are taken further            */
#define MAX_TRIED   8 /* simulated of those of a number that may fit    */
#define N_NEAREST   LS_ADVICE_N_NEAREST

typedef struct {
  const LsJobSpec *spec;
  bool needs_more;     /* looks at what needs more than the job has, or else at what does not */
  GHashTable *seen;    /* jobs, as text */
  GHashTable *useless; /* changes that saved nothing where they were tried, as text */
  GPtrArray *all;      /* Candidate: all that save something */
  LsWhatIf *advice;
} Search;

/* A change, or several, and what is known of the job with it before it is simulated. */
typedef struct {
  const LsJobSpec *spec;
  LsChange *change; /* owned */
  char *last;       /* text of the last of them */
  char *job;        /* its knobs and cluster: equal for equal jobs; NULL: not legal */
  GPtrArray *next;  /* LsChange: what is proposed for that job                      */
  int64_t over;     /* bytes too much by the order of allocations alone; less than 0: free */
  int64_t limit;    /* only less than this is of use                                */
  double least;     /* of its step, for each sequence                               */
  bool is_tried;    /* simulated                                                    */
} Candidate;

static void
candidate_free (gpointer data)
{
  Candidate *c = data;
  ls_change_free (c->change);
  g_free (c->last);
  g_free (c->job);
  g_clear_pointer (&c->next, g_ptr_array_unref);
  g_free (c);
}

static Candidate *
candidate_new (const LsJobSpec *spec, LsChange *change, char *last, int64_t limit)
{
  Candidate *c = g_new0 (Candidate, 1);
  *c = (Candidate) { .spec = spec, .change = change, .last = last, .limit = limit };
  return c;
}

/* --- before simulating ---------------------------------------------------------------- */

static void
estimate (Candidate *c, const LsJobSpec *changed, const LsJobResult *r)
{
  const LsRunOptions options = ls_job_spec_options (changed);
  LsMemoryInput in = ls_job_result_memory_input (r, r->hardware, &options.memory);
  in.options.allocator = LS_MEMORY_EXACT;
  g_autoptr (LsMemory) memory = ls_memory_new (&in);
  const LsClassMemory *fullest = ls_memory_fullest (memory);
  uint64_t capacity = fullest->capacity_bytes;
  g_auto (LsHeadroom) headroom = { 0 };
  ls_headroom_of (&changed->headroom, changed->program, changed->software, r->strategy.dp_kind, r->hardware,
                  &changed->options.memory, &headroom);
  c->over = (int64_t) fullest->needed_bytes
      - (int64_t) (capacity - (headroom.is_asked ? MIN (headroom.bytes, capacity) : 0));
  c->least = ls_time_to_s (ls_job_bound (r, r->hardware, &options)) / r->strategy.global_batch;
  c->next = c->over < c->limit ? ls_changes_propose (changed, r) : NULL;
  g_autofree char *knobs = ls_knobs_format (&r->strategy);
  c->job = g_strconcat (changed->cluster, " ", knobs, NULL);
}

static void
estimate_one (guint i, gpointer data)
{
  Candidate *c = ((Candidate **) data)[i];
  LsJobSpec changed;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  bool is_made = ls_change_make (c->change, c->spec, &changed, diags);
  changed.no_notes = true;
  g_autoptr (LsJobResult) r = is_made ? ls_job_spec_prepare (&changed, NULL) : NULL;
  if (r)
    estimate (c, &changed, r);
  ls_job_spec_clear (&changed);
}

/* --- combining ------------------------------------------------------------------------- */

/* What is proposed for the job with the changes of `from`, joined with them. */
static void
extend (Search *x, const Candidate *from, GPtrArray *candidates, GHashTable *joined)
{
  for (guint i = 0; i < from->next->len; i++) {
    const LsChange *more = from->next->pdata[i];
    g_autofree char *text = ls_change_text (more);
    g_autoptr (LsChange) change = ls_change_join (from->change, more);
    if (change->needs_more != x->needs_more || g_hash_table_contains (x->useless, text)
        || !g_hash_table_add (joined, ls_change_key (change)))
      continue;
    g_ptr_array_add (candidates,
                     candidate_new (x->spec, g_steal_pointer (&change), g_steal_pointer (&text), from->over));
  }
}

/* Least too much first, then the fastest; of equals that which was proposed first. */
static int
compare_candidates (gconstpointer x, gconstpointer y)
{
  const Candidate *a = *(Candidate *const *) x, *b = *(Candidate *const *) y;
  int64_t a_short = MAX (a->over, 0), b_short = MAX (b->over, 0);
  LS_SMALLER_FIRST (a_short, b_short);
  return LS_ORDER (a->least, b->least);
}

/* Those that are legal, of use and not seen yet, by compare_candidates(); the others are freed. */
static GPtrArray *
take_useful (Search *x, GPtrArray *candidates)
{
  GPtrArray *useful = g_ptr_array_new ();
  for (guint i = 0; i < candidates->len; i++) {
    Candidate *c = candidates->pdata[i];
    bool is_useful = c->next && g_hash_table_add (x->seen, g_strdup (c->job));
    if (c->job && !c->next)
      g_hash_table_add (x->useless, g_strdup (c->last));
    if (is_useful)
      g_ptr_array_add (useful, c);
    else
      candidate_free (c);
  }
  g_ptr_array_sort (useful, compare_candidates);
  for (guint i = 0; i < useful->len; i++)
    g_ptr_array_add (x->all, useful->pdata[i]);
  return useful;
}

/* The first of `from`, each with one change more. */
static GPtrArray *
extend_all (Search *x, const GPtrArray *from)
{
  g_autoptr (GPtrArray) candidates = g_ptr_array_new ();
  g_autoptr (GHashTable) joined = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; i < MIN (WIDTH, from->len); i++)
    extend (x, from->pdata[i], candidates, joined);
  ls_parallel (candidates->len, 0, estimate_one, candidates->pdata, NULL);
  return take_useful (x, candidates);
}

/* --- simulating ------------------------------------------------------------------------- */

/* The first n that were not. */
static void
simulate (Search *x, const GPtrArray *candidates, guint n)
{
  g_autoptr (GPtrArray) changes = g_ptr_array_new ();
  for (guint i = 0; i < candidates->len && changes->len < n; i++) {
    Candidate *c = candidates->pdata[i];
    if (!c->is_tried)
      g_ptr_array_add (changes, c->change);
    c->is_tried = true;
  }
  ls_what_if_simulate (x->spec, changes, 0, NULL, x->advice);
}

/* Those that may fit. On the device clock a job may hold less than the order of its allocations says. */
static void
simulate_hopeful (Search *x, const GPtrArray *candidates)
{
  guint n = 0;
  while (n < candidates->len
         && (((const Candidate *) candidates->pdata[n])->over <= 0
             || x->spec->options.memory.clock == LS_MEMORY_DEVICE))
    n++;
  simulate (x, candidates, MIN (n, MAX_TRIED));
  x->advice->n_untried += n - MIN (n, MAX_TRIED);
}

/* Least too much first, then most gain; of equals that which was tried first. What could not run, at the
 * end. */
static int
compare_advice (gconstpointer x, gconstpointer y)
{
  const LsWhatIfRow *a = x, *b = y;
  LS_SMALLER_FIRST (a->refused != NULL, b->refused != NULL);
  LS_SMALLER_FIRST (a->short_bytes, b->short_bytes);
  if (!a->refused && a->gain != b->gain)
    return a->gain > b->gain ? -1 : 1;
  return LS_ORDER (a->number, b->number);
}

/* Up to n changes together, as few as are enough. */
static void
search (Search *x, Candidate *job, bool needs_more, guint n)
{
  x->needs_more = needs_more;
  g_autoptr (GPtrArray) last = g_ptr_array_new ();
  g_ptr_array_add (last, job);
  for (guint i = 1; i <= n && last->len > 0; i++) {
    GPtrArray *next = extend_all (x, last);
    g_ptr_array_unref (last);
    last = next;
    guint n_before = ls_what_if_n_fit (x->advice);
    simulate_hopeful (x, last);
    if (ls_what_if_n_fit (x->advice) > n_before)
      return;
  }
}

/* What the job has first; if that is enough, of the rest only single changes. */
static void
search_all (Search *x)
{
  Candidate *job = candidate_new (x->spec, ls_change_new (NULL, NULL, false), NULL, INT64_MAX);
  estimate_one (0, &job);
  if (job->next) {
    search (x, job, false, MAX_CHANGES);
    search (x, job, true, ls_what_if_n_fit (x->advice) > 0 ? 1 : MAX_CHANGES);
  }
  candidate_free (job);
  if (ls_what_if_n_fit (x->advice) > 0)
    return;
  g_ptr_array_sort (x->all, compare_candidates);
  simulate (x, x->all, N_NEAREST);
}

LsWhatIf *
ls_memory_advise (const LsJobSpec *spec, LsJobResult *r, GError **error)
{
  if (!r->model.name || spec->trace || spec->order)
    return ls_fail_null (error, LS_ERROR_UNSUPPORTED, "%s has fixed what could be changed to make it fit",
                         spec->order ? "the order of a file" : "a trace");
  LsWhatIf *advice = g_new (LsWhatIf, 1);
  *advice = (LsWhatIf) { ls_what_if_row (r), ls_list_new (sizeof (LsWhatIfRow), ls_what_if_row_clear), NULL };
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GHashTable) useless = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GPtrArray) all = g_ptr_array_new_with_free_func (candidate_free);
  Search x = { .spec = spec, .seen = seen, .useless = useless, .all = all, .advice = advice };
  search_all (&x);
  g_array_sort (advice->rows, compare_advice);
  const guint enough[2] = { 0, G_MAXUINT }, nearest[2] = { N_NEAREST, 0 };
  ls_what_if_assume_others (spec, advice, -INFINITY, ls_what_if_n_fit (advice) > 0 ? enough : nearest, r);
  return advice;
}

/* --- what the ranks of a job hold, as a table and as a picture ----------------------------------- */

static LsMemoryRow
row_of (const LsJobResult *r, const LsClassMemory *m)
{
  const LsProgram *p = &r->plan->programs[m->role];
  LsMemoryRow row = { .m = m, .stage = p->stage, .formula = { NAN, NAN, NAN, NAN } };
  if (m->peak_op != UINT16_MAX) {
    const LsInstance *instance = &p->instances[m->peak_instance];
    const LsSegment *seg = &r->plan->segments[instance->segment];
    row.peak_mb = instance->mb;
    row.peak_segment = seg->name;
    row.peak_op = seg->ops[m->peak_op].name ? seg->ops[m->peak_op].name : "op";
  }
  if (r->model.name)
    row.formula = ls_memory_formula (&r->model, &r->strategy, p->stage, p->n_params);
  return row;
}

static int
compare_rows (gconstpointer x, gconstpointer y)
{
  const LsMemoryRow *a = x, *b = y;
  LS_SMALLER_FIRST (a->stage, b->stage);
  return LS_ORDER (a->m->rank, b->m->rank);
}

void
ls_memory_table_init (LsMemoryTable *t, const LsJobResult *r, const char *title, const char *subtitle,
                      const LsWhatIf *advice)
{
  *t = (LsMemoryTable) {
    .title = title,
    .subtitle = subtitle,
    .memory = r->memory,
    .rows = g_array_new (FALSE, FALSE, sizeof (LsMemoryRow)),
    .step_time_s = r->report.step_time_s,
    .capacity_bytes = r->report.capacity_bytes,
    .context_bytes = r->report.context_bytes,
    .fits = r->report.fits,
    .headroom = &r->report.headroom,
    .advice = advice,
    .assumptions = r->assumptions,
    .knobs = r->knobs,
  };
  for (uint32_t i = 0; i < r->memory->n_classes; i++)
    if (r->memory->classes[i].count > 0) {
      LsMemoryRow row = row_of (r, &r->memory->classes[i]);
      g_array_append_val (t->rows, row);
    }
  g_array_sort (t->rows, compare_rows);
}

static gboolean
check_rank (const LsJobResult *r, uint32_t rank, GError **error)
{
  return rank < r->plan->n_ranks
      || ls_fail (error, LS_ERROR_USAGE, "there is no rank %u: the job has %u", rank, r->plan->n_ranks);
}

static gboolean
check_spans (const LsJobResult *r, uint32_t rank, GError **error)
{
  return ls_timeline_spans (r->timeline, ls_timeline_representative (r->timeline, rank))->n > 0
      || ls_fail (error, LS_ERROR_USAGE,
                  "rank %u has no spans of its own: the table of `lockstep memory` names ranks that have",
                  rank);
}

GArray *
ls_memory_curve_of (const LsJobResult *r, const LsMemoryOptions *options, uint32_t rank, GError **error)
{
  if (!check_rank (r, rank, error) || !check_spans (r, rank, error))
    return NULL;
  const LsMemoryInput in = ls_job_result_memory_input (r, r->hardware, options);
  return ls_memory_curve (&in, ls_timeline_representative (r->timeline, rank));
}

LsMemoryHistory *
ls_memory_history_of (const LsJobResult *r, const LsMemoryOptions *options, uint32_t rank,
                      uint64_t max_changes, GError **error)
{
  if (ls_cluster_traits (&r->cluster->spec)->runs_xla)
    return ls_fail_null (error, LS_ERROR_UNSUPPORTED,
                         "TPUs have no caching allocator of PyTorch, whose work a snapshot shows: XLA places "
                         "buffers when it compiles");
  if (!check_rank (r, rank, error) || (r->memory->is_timed && !check_spans (r, rank, error)))
    return NULL;
  const LsMemoryInput in = ls_job_result_memory_input (r, r->hardware, options);
  g_autoptr (LsMemoryHistory) h = ls_memory_history_new (&in, rank, max_changes);
  if (h->blocks->len > 0 || h->n_changes > 0)
    return g_steal_pointer (&h);
  return ls_fail_null (error, LS_ERROR_UNSUPPORTED,
                       "the trace says nothing of memory: no op allocates, and nothing is held throughout");
}

void
ls_memory_table_clear (LsMemoryTable *t)
{
  g_clear_pointer (&t->rows, g_array_unref);
}

/* ---- which layers of a model a rank holds ---- */

uint32_t *
ls_first_layers (const LsJobResult *r, uint32_t *ret_n_stages)
{
  const LsStrategy *s = &r->strategy;
  *ret_n_stages = s->pp * s->vpp;
  if (!r->model.name || ls_chunks_want_balance (s, &r->model))
    return NULL;
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  g_autofree uint32_t *layers = g_new0 (uint32_t, *ret_n_stages + 1);
  if (!ls_chunk_layers (s, &r->model, layers, none))
    return NULL;
  uint32_t sum = 0;
  for (uint32_t i = 0; i <= *ret_n_stages; i++) {
    uint32_t n = layers[i];
    layers[i] = sum;
    sum += n;
  }
  return g_steal_pointer (&layers);
}

static void
add_part (GArray *parts, uint32_t layer, const GArray *operators)
{
  LsRankPart part = { .layer = layer };
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *o = &g_array_index (operators, LsOperator, i);
    for (uint32_t p = 0; p < o->params.n; p++)
      part.n_params += o->params.numel[p];
  }
  g_array_append_val (parts, part);
}

/* Which stages its program passes. */
static bool *
stages_of (const LsProgram *p, uint32_t n_stages)
{
  bool *is_held = g_new0 (bool, n_stages);
  for (uint32_t i = 0; i < p->n_instances; i++)
    if (p->instances[i].stage < n_stages)
      is_held[p->instances[i].stage] = true;
  return is_held;
}

GArray *
ls_rank_parts (const LsJobResult *r, uint32_t role, const uint32_t *first_layers, uint32_t n_stages)
{
  GArray *parts = g_array_new (FALSE, FALSE, sizeof (LsRankPart));
  if (!first_layers)
    return parts;
  const LsModel *m = &r->model;
  const LsShard shard = ls_strategy_shard (&r->strategy, &r->model);
  g_autofree bool *is_held = stages_of (&r->plan->programs[role], n_stages);
  g_autoptr (GArray) operators = ls_operators_new ();
  if (is_held[0]) {
    ls_operators_embedding (m, &shard, operators);
    add_part (parts, LS_PART_EMBEDDING, operators);
  }
  for (uint32_t stage = 1; stage < n_stages && shard.sides_are_apart; stage++)
    if (is_held[stage] && first_layers[stage] == m->sides.encoder_layers) {
      ls_operators_decoder_embedding (m, &shard, operators);
      add_part (parts, LS_PART_EMBEDDING, operators);
    }
  for (uint32_t stage = 0; stage < n_stages; stage++)
    for (uint32_t l = first_layers[stage]; is_held[stage] && l < first_layers[stage + 1]; l++) {
      g_array_set_size (operators, 0);
      ls_operators_layer (m, &shard, l, operators);
      if (shard.sides_are_apart && l + 1 == m->sides.encoder_layers)
        ls_operators_encoder_end (m, &shard, operators);
      add_part (parts, l, operators);
    }
  g_array_set_size (operators, 0);
  if (is_held[n_stages - 1]) {
    ls_operators_head (m, &shard, !m->tied_embeddings || !is_held[0], operators);
    add_part (parts, LS_PART_HEAD, operators);
  }
  return parts;
}
