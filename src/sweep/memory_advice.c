#include "sweep/memory_advice.h"

#include <lockstep/error.h>

#define MAX_PAIRS 8

/* Changes s in place and says how; NULL: that changes nothing, or cannot be. Two of a
 * group exclude each other. */
typedef struct {
  int group;
  char *(*apply) (LsStrategy *s, uint32_t value);
  uint32_t value;
  bool is_last; /* tried only if no other single one is enough */
} Candidate;

enum { GROUP_RECOMPUTE, GROUP_ZERO, GROUP_SP, GROUP_MICRO_BATCH, GROUP_TP, GROUP_PP, GROUP_ATTENTION, GROUP_OFFLOAD };

#define LAST_RESORT true

static char *
apply_recompute (LsStrategy *s, uint32_t value)
{
  if (s->recompute >= (int) value)
    return NULL;
  s->recompute = (int) value;
  return g_strdup_printf ("--recompute %s", ls_recompute_name ((int) value));
}

/* Who shards at this stage: whoever does already, else Megatron-LM's distributed optimizer
 * and DeepSpeed. */
static char *
apply_zero (LsStrategy *s, uint32_t value)
{
  bool shards = s->dp_kind == LS_DP_FSDP1 || s->dp_kind == LS_DP_FSDP2 || s->dp_kind == LS_DP_DEEPSPEED || s->dp_kind == LS_DP_XLA_FSDP;
  int kind = shards ? s->dp_kind : value == 1 ? LS_DP_MEGATRON : LS_DP_DEEPSPEED;
  if (s->dp < 2 || s->zero_stage >= value)
    return NULL;
  g_autofree char *who = kind == s->dp_kind ? g_strdup ("") : g_strdup_printf (" --dp-kind %s", ls_dp_kind_name (kind));
  s->zero_stage = value;
  s->dp_kind = kind;
  return g_strdup_printf ("--zero %u%s", value, who);
}

/* What lives in the host's memory: the optimizer with ZeRO-2, with parameters ZeRO-3. */
static char *
apply_offload (LsStrategy *s, uint32_t value)
{
  bool has_parameters = value == LS_OFFLOAD_PARAMETERS;
  if (s->offload >= (int) value)
    return NULL;
  s->zero_stage = MAX (s->zero_stage, has_parameters ? 3 : 2);
  s->dp_kind = LS_DP_DEEPSPEED;
  s->offload = (int) value;
  return g_strdup_printf ("--zero %u --dp-kind deepspeed --offload %s", s->zero_stage, has_parameters ? "parameters" : "optimizer");
}

static char *
apply_offload_activations (LsStrategy *s, uint32_t value)
{
  if (s->offload_activations)
    return NULL;
  s->offload_activations = true;
  return g_strdup ("--offload-activations");
}

static char *
apply_sp (LsStrategy *s, uint32_t value)
{
  if (s->tp < 2 || s->sp)
    return NULL;
  s->sp = true;
  return g_strdup ("--sp");
}

static char *
apply_micro_batch (LsStrategy *s, uint32_t value)
{
  if (s->micro_batch % value != 0)
    return NULL;
  s->micro_batch /= value;
  return g_strdup_printf ("--micro-batch %u", s->micro_batch);
}

/* What a pipeline of one stage had none of is chosen anew. */
static void
forget_pipeline (LsStrategy *s)
{
  if (s->pp > 1)
    return;
  g_clear_pointer (&s->schedule, g_free);
  s->p2p = LS_P2P_AUTO;
}

static char *
apply_tp (LsStrategy *s, uint32_t value)
{
  if (s->dp % value != 0)
    return NULL;
  if (s->etp == s->tp)
    s->etp = 0; /* follows tp, as it will on the command line */
  s->tp *= value;
  s->dp /= value;
  return g_strdup_printf ("--tp %u --dp %u", s->tp, s->dp);
}

static char *
apply_pp (LsStrategy *s, uint32_t value)
{
  if (s->dp % value != 0 || (s->layers_per_chunk && !s->layers_are_found))
    return NULL;
  forget_pipeline (s);
  s->pp *= value;
  s->dp /= value;
  return g_strdup_printf ("--pp %u --dp %u", s->pp, s->dp);
}

static char *
apply_attention (LsStrategy *s, uint32_t value)
{
  if (s->attention == (int) value)
    return NULL;
  s->attention = (int) value;
  return g_strdup ("--attention flash");
}

static const Candidate candidates[] = {
  { GROUP_RECOMPUTE, apply_recompute, LS_RECOMPUTE_SELECTIVE },
  { GROUP_RECOMPUTE, apply_recompute, LS_RECOMPUTE_FULL },
  { GROUP_ZERO, apply_zero, 1 },
  { GROUP_ZERO, apply_zero, 2 },
  { GROUP_ZERO, apply_zero, 3 },
  { GROUP_SP, apply_sp, 1 },
  { GROUP_MICRO_BATCH, apply_micro_batch, 2 },
  { GROUP_TP, apply_tp, 2 },
  { GROUP_PP, apply_pp, 2 },
  { GROUP_ATTENTION, apply_attention, LS_ATTENTION_FLASH },
  { GROUP_OFFLOAD, apply_offload_activations, 1, LAST_RESORT },
  { GROUP_ZERO, apply_offload, LS_OFFLOAD_OPTIMIZER, LAST_RESORT },
  { GROUP_ZERO, apply_offload, LS_OFFLOAD_PARAMETERS, LAST_RESORT },
};
#define N_CANDIDATES G_N_ELEMENTS (candidates)

/* --- trying ------------------------------------------------------------------------- */

typedef struct {
  const LsJobResult *r;
  const LsSoftwareSpec *software; /* that it is for; or NULL */
  uint64_t limit; /* what it may need */
  LsRunOptions options;
  LsMemoryAdvice *advice;
} Search;

/* The strategy with both changes (b may be NULL), and their words; NULL: not possible. */
static char *
change (const LsStrategy *from, const Candidate *a, const Candidate *b, LsStrategy *ret_s)
{
  ls_strategy_copy (ret_s, from);
  g_autofree char *first = a->apply (ret_s, a->value);
  g_autofree char *second = first && b ? b->apply (ret_s, b->value) : NULL;
  if (!first || (b && !second)) {
    ls_strategy_clear (ret_s);
    return NULL;
  }
  return b ? g_strconcat (first, " ", second, NULL) : g_steal_pointer (&first);
}

static uint64_t
needed_bytes (const LsJobResult *r)
{
  return ls_memory_fullest (r->memory)->needed_bytes;
}

/* Neither too much by the order of allocations alone; NULL too if the change is not legal. */
static LsJobResult *
prepare_if_it_may_fit (const Search *x, const LsStrategy *s)
{
  g_autoptr (LsJobResult) r = ls_job_prepare (&x->r->model, x->r->hardware, x->r->cluster->spec.n_nodes, s, NULL);
  if (!r || !ls_software_check (x->software, &r->model, &r->strategy, NULL))
    return NULL;
  LsMemoryInput in = ls_job_result_memory_input (r, x->r->hardware, &x->options.memory);
  in.options.allocator = LS_MEMORY_EXACT;
  if (in.options.clock == LS_MEMORY_DEVICE) /* may hold less than the order says */
    return g_steal_pointer (&r);
  g_autoptr (LsMemory) estimate = ls_memory_new (&in);
  return ls_memory_fullest (estimate)->needed_bytes <= x->limit ? g_steal_pointer (&r) : NULL;
}

/* Takes `prepared`; text is stolen if it is good. */
static void
try_change (Search *x, LsJobResult *prepared, char **text)
{
  g_autoptr (LsJobResult) r = ls_job_simulate_prepared (prepared, x->r->hardware, &x->options, NULL);
  x->advice->n_simulated++;
  if (!r || needed_bytes (r) > x->limit)
    return;
  LsMemoryChange c = { g_steal_pointer (text), ls_job_result_step_time_s (r), needed_bytes (r) };
  g_array_append_val (x->advice->changes, c);
}

static void
try_singles (Search *x, bool is_last)
{
  for (guint i = 0; i < N_CANDIDATES; i++) {
    LsStrategy s;
    g_autofree char *text = candidates[i].is_last == is_last ? change (&x->r->strategy, &candidates[i], NULL, &s) : NULL;
    if (!text)
      continue;
    LsJobResult *prepared = prepare_if_it_may_fit (x, &s);
    if (prepared)
      try_change (x, prepared, &text);
    ls_strategy_clear (&s);
  }
}

static void
try_pair (Search *x, const Candidate *a, const Candidate *b, guint *n_tried)
{
  LsStrategy s;
  g_autofree char *text = change (&x->r->strategy, a, b, &s);
  if (!text)
    return;
  LsJobResult *prepared = prepare_if_it_may_fit (x, &s);
  if (prepared && *n_tried < MAX_PAIRS) {
    (*n_tried)++;
    try_change (x, g_steal_pointer (&prepared), &text);
  } else if (prepared)
    x->advice->n_left_out++;
  ls_job_result_free (prepared);
  ls_strategy_clear (&s);
}

/* Of which one is a last resort, or none is. */
static void
try_pairs (Search *x, bool has_last)
{
  guint n_tried = 0;
  for (guint i = 0; i < N_CANDIDATES; i++)
    for (guint j = i + 1; j < N_CANDIDATES; j++)
      if (candidates[i].group != candidates[j].group && candidates[i].is_last + candidates[j].is_last == has_last)
        try_pair (x, &candidates[i], &candidates[j], &n_tried);
}

static int
compare_changes (gconstpointer x, gconstpointer y)
{
  const LsMemoryChange *a = x, *b = y;
  if (a->step_time_s != b->step_time_s)
    return a->step_time_s < b->step_time_s ? -1 : 1;
  return a->needed_bytes < b->needed_bytes ? -1 : a->needed_bytes > b->needed_bytes;
}

LsMemoryAdvice *
ls_memory_advise (const LsJobSpec *spec, const LsJobResult *r, GError **error)
{
  if (!r->model.name || spec->trace || spec->order) {
    g_set_error (error, LS_ERROR, LS_ERROR_UNSUPPORTED, "%s has fixed what could be changed to make it fit",
                 spec->order ? "the order of a file" : "a trace");
    return NULL;
  }
  const LsHeadroom *h = &r->report.headroom;
  uint64_t capacity = r->report.capacity_bytes;
  Search x = { .r = r, .software = spec->program, .limit = capacity - (h->is_asked ? MIN (h->bytes, capacity) : 0), .advice = g_new0 (LsMemoryAdvice, 1) };
  g_autoptr (LsMemoryAdvice) advice = x.advice;
  advice->changes = g_array_new (FALSE, FALSE, sizeof (LsMemoryChange));
  if (!ls_job_spec_options (spec, &x.options, error))
    return NULL;
  x.options.n_steps = 1;
  advice->step_time_s = r->report.first_step_s;
  advice->short_bytes = needed_bytes (r) - MIN (needed_bytes (r), x.limit);
  try_singles (&x, false);
  advice->is_simple = advice->changes->len > 0;
  if (!advice->is_simple) {
    try_singles (&x, LAST_RESORT);
    try_pairs (&x, false);
  }
  if (advice->changes->len == 0)
    try_pairs (&x, LAST_RESORT);
  g_array_sort (advice->changes, compare_changes);
  return g_steal_pointer (&advice);
}
