#include "ask/versus.h"

#include <math.h>
#include <string.h>

#include "base/list.h"
#include "base/order.h"
#include "data/jobs/job_files.h"
#include "job/assumptions.h"

#define TOLERANCE 0.02 /* of bytes, of FLOPs: padding, ends of buckets */
#define MOST_OF   3    /* names in `of` */

const char *const ls_versus_sections[LS_N_VERSUS]
    = { "kernels", "products", "attention", "collectives", "copies", "host", "memory" };

static const char *const phases[LS_N_TAGS] = { [LS_TAG_F] = "forward",
                                               [LS_TAG_B] = "backward",
                                               [LS_TAG_RECOMPUTE] = "recomputation",
                                               [LS_TAG_OPTIMIZER] = "optimizer" };

static const char *const host_costs[LS_N_HOST_COSTS] = {
  [LS_HOST_LAUNCH] = "launches of kernels",
  [LS_HOST_COMM] = "launches of messages",
  [LS_HOST_SYNC] = "waits for the device",
  [LS_HOST_VIEW] = "calls that launch nothing",
  [LS_HOST_BATCH] = "micro-batches that are fetched",
  [LS_HOST_PRODUCT] = "products of experts",
  [LS_HOST_PYTHON] = "calls of Python",
};

/* --- which keys say otherwise ------------------------------------------------------------------------- */

#define ANY 255

/* Keys of what a job rests on and of its knobs (job/assumptions.h), where a row of that section, phase and
 * site differs whose `what` has the word: the first row that fits. */
static const struct {
  uint8_t section, phase, site;
  const char *word; /* NULL: any */
  const char *keys[4];
} reasons[] = {
  { LS_VERSUS_KERNELS, LS_TAG_OPTIMIZER, ANY, NULL, { "optimizer", "kernels", "grad_norm" } },
  { LS_VERSUS_KERNELS, LS_TAG_RECOMPUTE, ANY, NULL, { "recompute", "recompute_parts", "kernels" } },
  { LS_VERSUS_KERNELS, ANY, LS_SITE_DATA, NULL, { "dp_kind", "narrow_shards", "gradients" } },
  { LS_VERSUS_KERNELS, ANY, LS_SITE_LOSS, NULL, { "loss_kernel", "kernels" } },
  { LS_VERSUS_KERNELS, LS_TAG_F, ANY, NULL, { "kernels" } },
  { LS_VERSUS_KERNELS, LS_TAG_B, ANY, NULL, { "kernels" } },
  { LS_VERSUS_PRODUCTS, LS_TAG_RECOMPUTE, ANY, NULL, { "recompute", "recompute_parts" } },
  { LS_VERSUS_PRODUCTS, ANY, ANY, NULL, { "kernels", "vocabulary", "dtype" } },
  { LS_VERSUS_ATTENTION, ANY, ANY, NULL, { "attention", "attention_kernel", "recompute" } },
  { LS_VERSUS_COLLECTIVES, ANY, ANY, "all-gather", { "zero", "reshard_after_forward", "layers_per_unit" } },
  { LS_VERSUS_COLLECTIVES, ANY, ANY, "reduce", { "gradients", "dp_kind", "grad_norm" } },
  { LS_VERSUS_COLLECTIVES, ANY, ANY, NULL, { "tp", "dp", "cp" } },
  { LS_VERSUS_HOST, ANY, ANY, "waits", { "grad_norm", "batch_sync", "train_metrics" } },
  { LS_VERSUS_HOST, ANY, ANY, NULL, { "kernels" } },
  { LS_VERSUS_MEMORY, ANY, ANY, "parameters", { "parameters", "zero", "vocabulary" } },
  { LS_VERSUS_MEMORY, ANY, ANY, "gradients", { "gradients", "zero" } },
  { LS_VERSUS_MEMORY, ANY, ANY, "optimizer", { "masters", "moments", "zero" } },
  { LS_VERSUS_MEMORY, ANY, ANY, "activations", { "recompute", "recompute_parts", "kernels" } },
  { LS_VERSUS_MEMORY, ANY, ANY, "unsharded", { "reshard_after_forward", "layers_per_unit" } },
};

static void
add_key (const GArray *all, const char *key, GPtrArray *because)
{
  for (guint i = 0; all && i < all->len; i++) {
    LsAssumption *a = &g_array_index (all, LsAssumption, i);
    if (strcmp (a->key, key) == 0 && !g_ptr_array_find (because, a, NULL))
      g_ptr_array_add (because, a);
  }
}

static void
find_reasons (const LsJobResult *job, LsVersusRow *row)
{
  for (guint i = 0; i < G_N_ELEMENTS (reasons); i++) {
    bool is_so = reasons[i].section == row->section
        && (reasons[i].phase == ANY || reasons[i].phase == row->phase)
        && (reasons[i].site == ANY || reasons[i].site == row->site)
        && (!reasons[i].word || strstr (row->what, reasons[i].word));
    for (guint k = 0; is_so && k < G_N_ELEMENTS (reasons[i].keys) && reasons[i].keys[k]; k++) {
      add_key (job->assumptions, reasons[i].keys[k], row->because);
      add_key (job->knobs, reasons[i].keys[k], row->because);
    }
    if (is_so)
      return;
  }
}

/* --- rows --------------------------------------------------------------------------------------------- */

static void
clear_row (gpointer data)
{
  LsVersusRow *row = data;
  g_free (row->what);
  g_ptr_array_unref (row->because);
  for (guint side = 0; side < LS_N_VERSUS_SIDES; side++)
    g_free (row->sides[side].of);
}

/* Rows that are being filled. */
typedef struct {
  LsVersus *v;
  GHashTable *place;                   /* of a key: its row, + 1                        */
  GPtrArray *of[LS_N_VERSUS_SIDES];    /* of each row: GHashTable of names, how often   */
  GPtrArray *calls[LS_N_VERSUS_SIDES]; /* interned: messages in order */
} Filling;

static const LsSortKey by_place[] = { { LS_RISING (LsVersusSum, section) },
                                      { LS_RISING (LsVersusSum, phase) },
                                      { LS_RISING (LsVersusSum, site) },
                                      { LS_RISING (LsVersusSum, message) },
                                      { 0 } };

static void
add_side (LsVersusSide *to, const LsVersusSide *more)
{
  to->n += more->n;
  to->flops += more->flops;
  to->bytes += more->bytes;
  to->time += more->time;
  to->after += more->after;
  to->before += more->before;
}

static void
sum_up (GArray *sums, LsVersusSum key, guint side, const LsVersusSide *more)
{
  LsVersusSum *sum = ls_list_like (sums, by_place, &key);
  add_side (&sum->sides[side], more);
}

/* Takes `what`. */
static void
add (Filling *f, guint side, LsVersusRow key, const LsVersusSide *more, const char *of)
{
  char *name = g_strdup_printf ("%d %d %d %s", key.section, key.phase, key.site, key.what);
  guint place = GPOINTER_TO_UINT (g_hash_table_lookup (f->place, name));
  if (place == 0) {
    key.because = g_ptr_array_new ();
    g_array_append_val (f->v->rows, key);
    place = f->v->rows->len;
    g_hash_table_insert (f->place, name, GUINT_TO_POINTER (place));
    for (guint i = 0; i < LS_N_VERSUS_SIDES; i++)
      g_ptr_array_add (f->of[i], g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL));
  } else {
    g_free (name);
    g_free (key.what);
  }
  add_side (&g_array_index (f->v->rows, LsVersusRow, place - 1).sides[side], more);
  GHashTable *names = f->of[side]->pdata[place - 1];
  guint n = GPOINTER_TO_UINT (g_hash_table_lookup (names, of ? of : "")) + (guint) more->n;
  g_hash_table_replace (names, g_strdup (of ? of : ""), GUINT_TO_POINTER (n));
}

typedef struct {
  const char *name;
  guint n;
} Named;

static gint
compare_named (gconstpointer a, gconstpointer b)
{
  const Named *x = a, *y = b;
  LS_LARGER_FIRST (x->n, y->n);
  return strcmp (x->name, y->name);
}

/* "mul 64, add 32, ...". */
static char *
of_text (GHashTable *names)
{
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (Named));
  GHashTableIter each;
  gpointer key, value;
  GString *text = g_string_new (NULL);
  g_hash_table_iter_init (&each, names);
  while (g_hash_table_iter_next (&each, &key, &value))
    if (*(const char *) key)
      ls_list_add (all, &(Named) { key, GPOINTER_TO_UINT (value) });
  g_array_sort (all, compare_named);
  for (guint i = 0; i < MIN (all->len, MOST_OF); i++) {
    const Named *n = &g_array_index (all, Named, i);
    g_string_append_printf (text, "%s%s %u", i > 0 ? ", " : "", n->name, n->n);
  }
  g_string_append (text, all->len > MOST_OF ? ", ..." : "");
  return g_string_free (text, FALSE);
}

/* --- the ops of a rank -------------------------------------------------------------------------------- */

/* A kernel of the compute stream. */
typedef struct {
  uint8_t phase, site;
} Passed;

/* What must be over: the last kernel of the compute stream, and the last message, and so those before it; -1:
 * none. */
typedef struct {
  int64_t kernel, message;
} Reach;

/* A message: the sum that it is in, its bytes. */
typedef struct {
  LsVersusSum key;
  double bytes;
} Sent;

typedef struct {
  Filling *f;
  guint side;
  const LsPlan *plan;
  uint32_t rank;
  const LsTime *times; /* of each op of the program, in order */
  LsHostCosts costs;
  GArray *passed; /* Passed, so far */
  GArray *reach;  /* Reach, of the ops of the instance, with them */
  Reach last[LS_N_STREAMS], host;
  GHashTable *events; /* of a name: Reach */
  GArray *sent;       /* Sent, so far */
  int64_t n_awaited;  /* of these, for which a kernel has waited */
  Reach before;       /* the op that was passed last */
  uint8_t phase;      /* of the last kernel that has one */
} Walk;

static uint8_t
phase_of (Walk *w, const LsOp *op)
{
  if (op->tag == LS_TAG_SYNC)
    return w->phase;
  return op->tag == LS_TAG_I || op->tag == LS_TAG_W ? LS_TAG_B : op->tag;
}

static Reach
later (Reach a, const Reach *b)
{
  return (Reach) { MAX (a.kernel, b ? b->kernel : -1), MAX (a.message, b ? b->message : -1) };
}

/* What must be over before it begins. */
static Reach
reach_of (Walk *w, const LsInstance *instance, const LsOp *op)
{
  Reach reach = later (w->last[op->stream], &w->host);
  for (uint16_t i = 0; i < op->n_deps; i++)
    if (op->deps[i].kind == LS_DEP_END)
      reach = later (reach, &g_array_index (w->reach, Reach, op->deps[i].index));
    else if (op->deps[i].kind == LS_DEP_STREAM)
      reach = later (reach, &w->last[op->deps[i].index]);
  return ls_op_awaits (op) ? later (reach, g_hash_table_lookup (w->events, ls_name_key (instance, op->event)))
                           : reach;
}

/* Messages that kernels have waited for from now on: after how many kernels. */
static void
await (Walk *w, int64_t message)
{
  for (; w->n_awaited <= message; w->n_awaited++) {
    const Sent *sent = &g_array_index (w->sent, Sent, w->n_awaited);
    const LsVersusSide more = { .before = sent->bytes * (double) w->passed->len };
    sum_up (w->f->v->messages, sent->key, w->side, &more);
  }
}

static uint64_t
bytes_of (const LsOp *op)
{
  uint64_t bytes = op->bytes;
  for (uint16_t i = 0; i < op->n_transfers; i++)
    bytes += op->transfers[i].is_send ? op->transfers[i].bytes : 0;
  return bytes;
}

static LsVersusSum
kind_of (const LsOp *op)
{
  return (LsVersusSum) { .message = op->kind == LS_OP_COLLECTIVE ? op->coll : LS_N_COLL_KINDS };
}

/* is_lead: what only the first step does is not of this one. */
static void
pass (Walk *w, const LsInstance *instance, const LsOp *op, bool is_lead)
{
  Reach reach = reach_of (w, instance, op);
  if (ls_op_takes (op->kind, LS_TAKES_GPU) && op->stream == LS_STREAM_COMPUTE) {
    await (w, reach.message);
    w->phase = phase_of (w, op);
    reach.kernel = w->passed->len;
    ls_list_add (w->passed, &(Passed) { w->phase, op->site });
  }
  w->before = reach;
  if (ls_op_takes (op->kind, LS_TAKES_NETWORK)) {
    reach.message = w->sent->len;
    ls_list_add (w->sent, &(Sent) { kind_of (op), is_lead ? 0 : (double) bytes_of (op) });
  }
  g_array_append_val (w->reach, reach);
  w->last[op->stream] = later (w->last[op->stream], &reach);
  if (ls_op_records (op))
    g_hash_table_insert (w->events, ls_name_key (instance, op->event), g_memdup2 (&reach, sizeof reach));
  if (ls_op_kinds[op->kind].host_waits)
    w->host = later (w->host, &reach);
}

static char *
kernel_text (const LsKernel *k, LsVersusSection section)
{
  const char *type = ls_dtype_name (k->dtype);
  g_autofree char *batch = k->batch > 1 ? g_strdup_printf ("%" G_GUINT64_FORMAT " of ", k->batch) : NULL;
  if (section == LS_VERSUS_PRODUCTS)
    return g_strdup_printf ("%s%" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT " %s",
                            batch ? batch : "", MAX (k->m, k->n), MIN (k->m, k->n), k->k, type);
  if (section == LS_VERSUS_ATTENTION)
    return g_strdup_printf ("%" G_GUINT64_FORMAT " heads of %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT
                            ", %" G_GUINT64_FORMAT " wide, %s",
                            k->batch, k->m, k->n, k->k, type);
  if (k->access == LS_ACCESS_CASTUP || k->access == LS_ACCESS_CASTDN || k->access == LS_ACCESS_FILL
      || k->access == LS_ACCESS_MEMCPY) /* between formats, or of bytes */
    return g_strdup (ls_access_names[k->access].name);
  const LsEnumName *name
      = k->access == LS_ACCESS_NONE ? &ls_kernel_kind_names[k->kind] : &ls_access_names[k->access];
  return g_strdup_printf ("%s %s", name->name, type);
}

static void
add_kernel (Walk *w, const LsOp *op, LsTime time)
{
  const LsKernel *k = op->kernel == UINT32_MAX ? NULL : &w->plan->kernels[op->kernel];
  LsVersusSection section = k && ls_kernel_is_gemm (k->kind) ? LS_VERSUS_PRODUCTS
      : k && ls_kernel_is_attention (k->kind)                ? LS_VERSUS_ATTENTION
                                                             : LS_VERSUS_KERNELS;
  uint64_t n = MAX (op->repeat, 1);
  const LsVersusSide more = { .n = n * (k ? MAX (k->n_launches, 1) : 1),
                              .flops = k ? (double) n * k->flops : 0,
                              .bytes = k ? (double) n * k->bytes : 0,
                              .time = time };
  LsVersusRow key = { .section = section,
                      .phase = phase_of (w, op),
                      .site = section == LS_VERSUS_KERNELS ? op->site : LS_SITE_OTHER,
                      .what = k ? kernel_text (k, section) : g_strdup ("of recorded length") };
  sum_up (w->f->v->sites, (LsVersusSum) { .phase = key.phase, .site = op->site }, w->side, &more);
  bool is_named = section == LS_VERSUS_ATTENTION && k->attention != LS_ATTENTION_KERNEL_AUTO;
  add (w->f, w->side, key, &more,
       is_named ? ls_attention_kernel_names[k->attention].name
           : k  ? k->name
                : op->name);
}

static void
add_call (Walk *w, const LsOp *op, LsTime time)
{
  bool is_group = op->kind == LS_OP_COLLECTIVE;
  uint32_t comm = is_group ? ls_plan_comm_of (w->plan, w->rank, (LsSlot) op->slot) : UINT32_MAX;
  uint64_t bytes = bytes_of (op);
  g_autofree char *size = ls_format_bytes (bytes);
  char *what = is_group
      ? g_strdup_printf ("%s of %s over %u", ls_coll_kind_names[op->coll].name, size,
                         comm == UINT32_MAX ? 1 : ls_plan_communicator (w->plan, comm).n_ranks)
      : g_strdup_printf ("%s to a neighbour", size);
  int64_t reach = w->before.kernel;
  const Passed *after = reach >= 0 ? &g_array_index (w->passed, Passed, reach) : NULL;
  g_autofree char *of = after
      ? g_strdup_printf ("%s %s", phases[after->phase], ls_site_names[after->site].name)
      : g_strdup ("nothing");
  g_ptr_array_add (w->f->calls[w->side], (gpointer) g_intern_string (what));
  LsVersusRow key = { .section = LS_VERSUS_COLLECTIVES, .phase = w->phase, .what = what };
  const LsVersusSide side
      = { .n = 1, .bytes = (double) bytes, .time = time, .after = (double) bytes * (double) (reach + 1) };
  sum_up (w->f->v->messages, kind_of (op), w->side, &side);
  add (w->f, w->side, key, &side, of);
}

static void
add_op (Walk *w, const LsOp *op, LsTime time)
{
  LsVersusRow key
      = { .section = LS_VERSUS_HOST, .phase = op->kind == LS_OP_HOST_DELAY ? phase_of (w, op) : w->phase };
  if (ls_op_takes (op->kind, LS_TAKES_GPU))
    add_kernel (w, op, time);
  else if (ls_op_takes (op->kind, LS_TAKES_NETWORK))
    add_call (w, op, time);
  else if (ls_op_takes (op->kind, LS_TAKES_ENGINE)) {
    LsVersusRow copy = { .section = LS_VERSUS_COPIES,
                         .phase = w->phase,
                         .what = g_strdup (ls_copy_names[op->direction].name) };
    add (w->f, w->side, copy, &(LsVersusSide) { .n = 1, .bytes = (double) op->bytes, .time = time },
         op->name);
  }
  if (!host_costs[op->host])
    return;
  key.what = g_strdup (host_costs[op->host]);
  key.part = op->host;
  uint64_t n = MAX (op->repeat, 1);
  add (w->f, w->side, key, &(LsVersusSide) { .n = n, .time = (LsTime) n * w->costs.cost[op->host] }, NULL);
}

/* Of each op of a rank's program: what it takes alone; of a message once all are there. Newly allocated. */
static LsTime *
times_of (const LsTimeline *t, uint32_t rank, const LsProgram *program)
{
  g_autofree size_t *first = g_new (size_t, program->n_instances + 1);
  first[0] = 0;
  for (uint32_t i = 0; i < program->n_instances; i++)
    first[i + 1] = first[i] + t->plan->segments[program->instances[i].segment].n_ops;
  LsTime *times = g_new0 (LsTime, first[program->n_instances] + 1);
  uint32_t who = ls_timeline_representative (t, rank);
  const LsRankSpans *spans = ls_timeline_spans (t, who);
  for (uint32_t i = 0; i < spans->n; i++) {
    const LsSpan *s = &spans->spans[i];
    if (s->step != (uint8_t) (t->n_steps - 1) || s->end == LS_TIME_NEVER)
      continue;
    uint8_t kind = ls_span_op (t, who, s)->kind;
    times[first[s->instance] + s->op] = ls_op_takes (kind, LS_TAKES_GPU) ? s->alone
        : ls_op_is_communication (kind)                                  ? s->end - MAX (s->matched, s->start)
                                                                         : s->end - s->start;
  }
  return times;
}

static void
walk (Filling *f, guint side, uint32_t rank)
{
  const LsJobResult *job = f->v->jobs[side];
  const LsPlan *plan = job->plan;
  const LsProgram *program = &plan->programs[ls_plan_role (plan, rank)];
  g_autofree LsTime *times = times_of (job->timeline, rank, program);
  g_autoptr (GArray) passed = g_array_new (FALSE, FALSE, sizeof (Passed)),
                     reach = g_array_new (FALSE, FALSE, sizeof (Reach)),
                     sent = g_array_new (FALSE, FALSE, sizeof (Sent));
  g_autoptr (GHashTable) events = g_hash_table_new_full (ls_name_hash, NULL, NULL, g_free);
  Walk w = { .f = f,
             .side = side,
             .plan = plan,
             .rank = rank,
             .passed = passed,
             .reach = reach,
             .host = { -1, -1 },
             .sent = sent,
             .events = events,
             .phase = LS_TAG_F };
  LsRunOptions options;
  ls_run_options_init (&options);
  w.costs = options.host;
  ls_hardware_host (job->hardware, &job->strategy, &w.costs);
  for (guint s = 0; s < LS_N_STREAMS; s++)
    w.last[s] = (Reach) { -1, -1 };
  size_t at = 0;
  for (uint32_t i = 0; i < program->n_instances; i++) {
    const LsSegment *segment = &plan->segments[program->instances[i].segment];
    g_array_set_size (reach, 0);
    for (uint32_t o = 0; o < segment->n_ops; o++, at++) {
      bool is_lead = i < program->n_lead;
      pass (&w, &program->instances[i], &segment->ops[o], is_lead);
      if (!is_lead)
        add_op (&w, &segment->ops[o], times[at]);
    }
  }
  await (&w, (int64_t) sent->len - 1);
  for (guint i = 0; i < f->v->messages->len; i++) {
    LsVersusSide *sum = &g_array_index (f->v->messages, LsVersusSum, i).sides[side];
    sum->after /= MAX (passed->len, 1);
    sum->before /= MAX (passed->len, 1);
  }
}

static void
add_memory (Filling *f, guint side, uint32_t rank)
{
  const LsJobResult *job = f->v->jobs[side];
  const LsMemory *m = job->memory;
  for (uint32_t i = 0; i < m->n_classes; i++) {
    const LsClassMemory *class = &m->classes[i];
    if (class->role != ls_plan_role (job->plan, rank))
      continue;
    for (guint c = 0; c < LS_N_MEM; c++) {
      LsVersusRow key = { .section = LS_VERSUS_MEMORY,
                          .phase = LS_TAG_SYNC,
                          .part = (uint8_t) c,
                          .what = g_strdup (ls_mem_category_names[c].name) };
      add (f, side, key, &(LsVersusSide) { .bytes = (double) class->at_peak[c] }, NULL);
    }
    return;
  }
}

/* --- the whole ---------------------------------------------------------------------------------------- */

static bool
is_off (double a, double b)
{
  return fabs (a - b) > TOLERANCE * MAX (fabs (a), fabs (b));
}

static bool
differs (const LsVersusRow *row)
{
  const LsVersusSide *c = &row->sides[LS_VERSUS_CAPTURED], *p = &row->sides[LS_VERSUS_PLANNED];
  bool is_slower = (row->section == LS_VERSUS_PRODUCTS || row->section == LS_VERSUS_ATTENTION)
      && is_off ((double) c->time, (double) p->time); /* by another kernel */
  return c->n != p->n || is_slower || is_off (c->bytes, p->bytes) || is_off (c->flops, p->flops);
}

static double
weight (const LsVersusRow *row)
{
  const LsVersusSide *c = &row->sides[LS_VERSUS_CAPTURED], *p = &row->sides[LS_VERSUS_PLANNED];
  bool is_memory = row->section == LS_VERSUS_MEMORY;
  return is_memory ? fabs (c->bytes - p->bytes) : fabs ((double) (c->time - p->time));
}

/* Those that differ first; by section's kind of weight: times before the host's calls, before memory. */
static gint
compare_rows (gconstpointer a, gconstpointer b)
{
  const LsVersusRow *x = a, *y = b;
  LS_LARGER_FIRST (x->differs, y->differs);
  LS_SMALLER_FIRST (MAX (x->section, LS_VERSUS_COPIES), MAX (y->section, LS_VERSUS_COPIES));
  LS_LARGER_FIRST (weight (x), weight (y));
  LS_SMALLER_FIRST (x->section, y->section);
  LS_SMALLER_FIRST (x->phase, y->phase);
  LS_SMALLER_FIRST (x->site, y->site);
  return strcmp (x->what, y->what);
}

/* The longest sequence that both have, perhaps with others between. Interned texts. */
static guint
n_in_order (const GPtrArray *a, const GPtrArray *b)
{
  g_autofree guint *longest = g_new0 (guint, b->len + 1); /* of a so far, and so many of b */
  for (guint i = 0; i < a->len; i++)
    for (guint k = 0, before = 0; k < b->len; k++) {
      guint both = before + 1;
      before = longest[k + 1];
      longest[k + 1] = a->pdata[i] == b->pdata[k] ? both : MAX (longest[k + 1], longest[k]);
    }
  return longest[b->len];
}

static void
finish (LsVersus *v, Filling *f)
{
  for (guint i = 0; i < v->rows->len; i++) {
    LsVersusRow *row = &g_array_index (v->rows, LsVersusRow, i);
    for (guint side = 0; side < LS_N_VERSUS_SIDES; side++) {
      row->sides[side].of = of_text (f->of[side]->pdata[i]);
      sum_up (v->sections, (LsVersusSum) { .section = row->section }, side, &row->sides[side]);
    }
    row->differs = differs (row);
    if (row->differs)
      find_reasons (v->jobs[LS_VERSUS_PLANNED], row);
  }
  ls_sort_by (v->sections, by_place);
  ls_sort_by (v->sites, by_place);
  g_array_sort (v->rows, compare_rows);
  v->n_calls_alike = n_in_order (f->calls[LS_VERSUS_CAPTURED], f->calls[LS_VERSUS_PLANNED]);
}

LsJobResult *
ls_versus_replay (const LsJobSpec *like, const char *folder, GError **error)
{
  LsJobSpec spec;
  if (!ls_job_spec_init_replay (&spec, folder, like->cluster, error))
    return NULL;
  spec.options = like->options;
  spec.network = like->network;
  spec.gpu_calibration = g_strdup (like->gpu_calibration);
  spec.nccl = g_strdup (like->nccl);
  spec.strategy.launch.nccl_env = g_strdup (like->strategy.launch.nccl_env);
  LsJobResult *r = ls_job_spec_run (&spec, error);
  ls_job_spec_clear (&spec);
  return r;
}

LsVersus *
ls_versus_new (const LsJobResult *captured, const LsJobResult *planned, uint32_t rank, GError **error)
{
  uint32_t n = captured->plan->n_ranks;
  if (n != planned->plan->n_ranks)
    return ls_fail_null (error, LS_ERROR_CONFLICT, "%u ranks were captured, the job has %u: --gpus %u", n,
                         planned->plan->n_ranks, n);
  if (rank >= n)
    return ls_fail_null (error, LS_ERROR_CONFLICT, "--rank %u: the job has ranks 0 to %u", rank, n - 1);
  g_autofree uint64_t *n_alike = ls_plan_ranks_of_roles (captured->plan);
  LsVersus *v = g_new0 (LsVersus, 1);
  *v = (LsVersus) { .jobs = { captured, planned },
                    .rank = rank,
                    .n_ranks = n_alike[ls_plan_role (captured->plan, rank)],
                    .rows = ls_list_new (sizeof (LsVersusRow), clear_row),
                    .sections = g_array_new (FALSE, TRUE, sizeof (LsVersusSum)),
                    .sites = g_array_new (FALSE, TRUE, sizeof (LsVersusSum)),
                    .messages = g_array_new (FALSE, TRUE, sizeof (LsVersusSum)) };
  Filling f = { .v = v, .place = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL) };
  for (guint side = 0; side < LS_N_VERSUS_SIDES; side++) {
    f.of[side] = g_ptr_array_new_with_free_func ((GDestroyNotify) g_hash_table_unref);
    f.calls[side] = g_ptr_array_new ();
  }
  for (guint side = 0; side < LS_N_VERSUS_SIDES; side++) {
    walk (&f, side, rank);
    add_memory (&f, side, rank);
  }
  finish (v, &f);
  for (guint side = 0; side < LS_N_VERSUS_SIDES; side++) {
    g_ptr_array_unref (f.of[side]);
    g_ptr_array_unref (f.calls[side]);
  }
  g_hash_table_unref (f.place);
  return v;
}

void
ls_versus_free (LsVersus *v)
{
  if (!v)
    return;
  g_array_unref (v->rows);
  g_array_unref (v->sections);
  g_array_unref (v->sites);
  g_array_unref (v->messages);
  g_free (v);
}

const char *
ls_versus_phase (uint8_t phase)
{
  return phases[phase] ? phases[phase] : "";
}
