#include "exec/memory/memory_times.h"

#include <string.h>

#include "base/arena.h"
#include "base/order.h"
#include "base/stop.h"
#include "exec/memory/allocator.h"

/* --- in order ----------------------------------------------------------------- */

typedef struct {
  LsArena *arena; /* of what follows, but for the changes */
  const LsPlan *plan;
  const LsProgram *program;
  GArray *changes; /* with room for n_all */
  uint64_t n_all;
  /* Buffers that are alive: one of the two. */
  uint32_t *table;   /* [micro-batches x n_chunks x n_ids] */
  GHashTable *named; /* ls_name_key()                      */
  uint32_t *place;   /* [N_BUFFER_IDS] of an id in table   */
  uint32_t n_chunks, n_ids;
} Changes;

#define N_BUFFER_IDS (UINT16_MAX + 1)

/* Each id that the program names has a place. */
static void
find_places (Changes *c)
{
  c->place = ls_arena_own (c->arena, g_new (uint32_t, N_BUFFER_IDS), g_free);
  memset (c->place, 0xff, N_BUFFER_IDS * sizeof *c->place);
  g_autofree uint32_t *n_uses = ls_program_uses (c->plan, c->program, c->program->n_lead);
  for (uint32_t s = 0; s < c->plan->n_segments; s++)
    for (uint32_t o = 0; o < c->plan->segments[s].n_ops && n_uses[s] > 0; o++) {
      const LsOp *op = &c->plan->segments[s].ops[o];
      for (uint32_t b = 0; b < op->n_buffers; b++) {
        uint32_t *place = &c->place[op->buffers[b].id];
        *place = *place == UINT32_MAX ? c->n_ids++ : *place;
      }
    }
}

/* A table, if it is full enough: of a trace a few buffers may be of many micro-batches. */
static void
alive_init (Changes *c)
{
  uint64_t n_micro_batches = 1;
  c->n_chunks = 1;
  for (uint32_t i = c->program->n_lead; i < c->program->n_instances; i++) {
    n_micro_batches = MAX (n_micro_batches, c->program->instances[i].mb + UINT64_C (1));
    c->n_chunks = MAX (c->n_chunks, c->program->instances[i].chunk + 1u);
  }
  find_places (c);
  if (n_micro_batches * c->n_chunks <= c->n_all / MAX (1, c->n_ids))
    c->table = ls_arena_new_array (c->arena, uint32_t, n_micro_batches * c->n_chunks * c->n_ids);
  else
    c->named = ls_arena_table (c->arena, ls_name_hash, NULL);
}

static uint32_t *
cell_of (const Changes *c, const LsInstance *i, const LsBufferEvent *b)
{
  size_t mb = ls_buffer_mb (i, b);
  return &c->table[(mb * c->n_chunks + i->chunk) * c->n_ids + c->place[b->id]];
}

/* The index of the change that allocated it, + 1; 0: it is not alive. */
static uint32_t
alive_get (const Changes *c, uint32_t instance, const LsBufferEvent *b)
{
  const LsInstance *i = &c->program->instances[instance];
  return c->table ? *cell_of (c, i, b)
                  : GPOINTER_TO_UINT (g_hash_table_lookup (c->named, ls_buffer_key (i, b)));
}

static void
alive_set (Changes *c, uint32_t instance, const LsBufferEvent *b, uint32_t number)
{
  const LsInstance *i = &c->program->instances[instance];
  if (c->table)
    *cell_of (c, i, b) = number;
  else if (number > 0)
    g_hash_table_insert (c->named, ls_buffer_key (i, b), GUINT_TO_POINTER (number));
  else
    g_hash_table_remove (c->named, ls_buffer_key (i, b));
}

/* [n_segments] buffers that come or go in each, newly allocated. */
static uint64_t *
changes_of_segments (const LsPlan *plan)
{
  uint64_t *n = g_new0 (uint64_t, plan->n_segments);
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (uint32_t o = 0; o < plan->segments[s].n_ops; o++)
      n[s] += plan->segments[s].ops[o].n_buffers;
  return n;
}

/* The array has room for all of them, and does not move. */
static void
changes_init (Changes *c, const LsPlan *plan, const LsProgram *program)
{
  g_autofree uint64_t *of_segment = changes_of_segments (plan);
  *c = (Changes) { .arena = ls_arena_new (), .plan = plan, .program = program };
  for (uint32_t i = program->n_lead; i < program->n_instances; i++)
    c->n_all += of_segment[program->instances[i].segment];
  c->changes = g_array_sized_new (FALSE, FALSE, sizeof (MemoryChange), (guint) c->n_all);
  alive_init (c);
}

static GArray *
changes_finish (Changes *c)
{
  for (guint i = 0; i < c->changes->len; i++) {
    MemoryChange *change = &g_array_index (c->changes, MemoryChange, i);
    if (change->alloc != UINT32_MAX)
      continue;
    change->alloc = alive_get (c, change->instance, change->buffer) - 1u;
    change->is_carried = change->alloc != UINT32_MAX;
  }
  ls_arena_free (c->arena);
  return c->changes;
}

static void
add_change (Changes *c, uint32_t instance, uint16_t op, const LsOp *of, const LsBufferEvent *b)
{
  guint i = c->changes->len++;
  MemoryChange *change = &g_array_index (c->changes, MemoryChange, i);
  *change = (MemoryChange) { .at = i,
                             .issued = i,
                             .instance = instance,
                             .alloc = i,
                             .op = op,
                             .stream = of->stream,
                             .of = of,
                             .buffer = b };
  if (b->is_free) {
    change->alloc = alive_get (c, instance, b) - 1u;
    alive_set (c, instance, b, 0);
  } else
    alive_set (c, instance, b, i + 1);
}

/* What an op allocates comes before what it frees: it needs both while it runs. */
static void
add_op (Changes *c, uint32_t instance, uint16_t op, const LsOp *of)
{
  for (int is_free = 0; is_free < 2; is_free++)
    for (uint32_t b = 0; b < of->n_buffers; b++)
      if ((of->buffers[b].is_free != 0) == is_free)
        add_change (c, instance, op, of, &of->buffers[b]);
}

GArray *
memory_changes_in_order (const LsPlan *plan, const LsProgram *program)
{
  Changes c;
  changes_init (&c, plan, program);
  for (uint32_t i = program->n_lead, ticks = 0; i < program->n_instances && !ls_stop_tick (&ticks); i++) {
    const LsSegment *seg = &plan->segments[program->instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++)
      add_op (&c, i, (uint16_t) o, &seg->ops[o]);
  }
  return changes_finish (&c);
}

uint64_t
ls_memory_walk_bytes (const LsPlan *plan)
{
  g_autofree uint64_t *of_segment = changes_of_segments (plan);
  uint64_t most = 0;
  for (uint32_t role = 0; role < plan->n_roles; role++) {
    const LsProgram *p = &plan->programs[role];
    uint64_t n = 0;
    for (uint32_t i = 0; i < p->n_instances; i++)
      n += of_segment[p->instances[i].segment];
    most = MAX (most, n);
  }
  return most * sizeof (MemoryChange);
}

bool
memory_changes_streams (const GArray *changes)
{
  for (guint i = 0; i < changes->len; i++) {
    const MemoryChange *c = &g_array_index (changes, MemoryChange, i);
    if (c->alloc != UINT32_MAX && g_array_index (changes, MemoryChange, c->alloc).stream != c->stream)
      return true;
  }
  return false;
}

void
memory_changes_leave_out_places (GArray *changes)
{
  static const LsBufferEvent nothing[2] = { { .when = LS_AT_START }, { .is_free = true } };
  for (guint i = 0; i < changes->len; i++) {
    MemoryChange *c = &g_array_index (changes, MemoryChange, i);
    if (c->alloc != UINT32_MAX && g_array_index (changes, MemoryChange, c->alloc).buffer->when == LS_AT_START)
      c->buffer = &nothing[c->buffer->is_free];
  }
}

/* --- when ops are issued, start and end ------------------------------------------ */

typedef struct {
  LsTime issued, start, end;
} OpTimes;

/* One walk through the program, in which ops without spans find their times too. */
typedef struct {
  const LsPlan *plan;
  const LsProgram *program;
  const LsSpan *spans;
  uint32_t n_spans;
  uint32_t *first_op;        /* [n_instances] ordinal of its first op in the program */
  uint32_t *span_of;         /* [ops of the program] index, LS_SPAN_NONE             */
  LsTime issued;             /* of the last op that has a span                       */
  LsTime tail[LS_N_STREAMS]; /* end of what was issued so far                   */
  LsTime *events;            /* as recorded, by event, micro-batch and chunk         */
  LsTime *ends;              /* of the ops of the segment instance at hand           */
} Times;

static bool
is_in_step (const LsTimeline *t, const LsSpan *s)
{
  return s->step == (uint8_t) (t->n_steps - 1) && s->end != LS_TIME_NEVER;
}

/* Where streams stand when the step begins: where they ended, a period before. */
static void
init_tails (Times *x, const LsTimeline *t)
{
  LsTime period = t->n_steps > 1 ? t->window_end - t->window_start : LS_TIME_NEVER;
  for (int s = 0; s < LS_N_STREAMS; s++)
    x->tail[s] = x->issued;
  for (uint32_t i = 0; i < x->n_spans; i++) {
    const LsSpan *s = &x->spans[i];
    if (!is_in_step (t, s))
      continue;
    const LsOp *op = &x->plan->segments[x->program->instances[s->instance].segment].ops[s->op];
    x->tail[op->stream] = MAX (x->tail[op->stream], s->end - period);
  }
}

static void
times_init (Times *x, const LsTimeline *t, uint32_t rank, LsArena *arena)
{
  const LsRankSpans *spans = ls_timeline_spans (t, rank);
  const LsPlan *plan = t->plan;
  const LsProgram *p = &plan->programs[ls_plan_role (plan, rank)];
  *x = (Times) { .plan = plan, .program = p, .spans = spans->spans, .n_spans = spans->n };
  x->first_op = ls_arena_new_array (arena, uint32_t, p->n_instances);
  uint32_t n_ops = 0, longest = 0;
  for (uint32_t i = 0; i < p->n_instances; i++) {
    x->first_op[i] = n_ops;
    n_ops += plan->segments[p->instances[i].segment].n_ops;
    longest = MAX (longest, plan->segments[p->instances[i].segment].n_ops);
  }
  x->span_of = ls_arena_own (arena, g_new (uint32_t, MAX (1, n_ops)), g_free);
  memset (x->span_of, 0xff, n_ops * sizeof *x->span_of);
  x->issued = LS_TIME_NEVER;
  for (uint32_t i = 0; i < spans->n; i++) {
    const LsSpan *s = &spans->spans[i];
    if (!is_in_step (t, s))
      continue;
    x->span_of[x->first_op[s->instance] + s->op] = i;
    x->issued = MIN (x->issued, s->issued);
  }
  if (x->issued == LS_TIME_NEVER)
    x->issued = t->window_start;
  init_tails (x, t);
  x->events
      = ls_arena_new_array (arena, LsTime, (gsize) p->n_events * plan->n_micro_batches * plan->n_chunks);
  x->ends = ls_arena_new_array (arena, LsTime, longest);
}

static LsTime *
event_of (const Times *x, const LsInstance *instance, const LsOp *op)
{
  return &x->events[ls_plan_event (x->plan, instance, op)];
}

/* An op without span takes no time: it is over as soon as its stream and its
 * dependencies are. */
static OpTimes
times_without_span (const Times *x, const LsInstance *instance, const LsOp *op)
{
  LsTime at = MAX (x->issued, x->tail[op->stream]);
  for (uint32_t d = 0; d < op->n_deps; d++) {
    if (op->deps[d].kind == LS_DEP_END)
      at = MAX (at, x->ends[op->deps[d].index]);
    else if (op->deps[d].kind == LS_DEP_STREAM)
      at = MAX (at, x->tail[op->deps[d].index]);
  }
  if (ls_op_awaits (op))
    at = MAX (at, *event_of (x, instance, op));
  return (OpTimes) { x->issued, at, at };
}

static OpTimes
times_of (Times *x, uint32_t i, uint32_t o, const LsOp *op)
{
  const LsInstance *instance = &x->program->instances[i];
  uint32_t span = x->span_of[x->first_op[i] + o];
  OpTimes t;
  if (span == LS_SPAN_NONE)
    t = times_without_span (x, instance, op);
  else {
    const LsSpan *s = &x->spans[span];
    t = (OpTimes) { s->issued, s->start, s->end };
    x->issued = s->issued;
  }
  x->ends[o] = t.end;
  if (!ls_op_is_of_host (op->kind))
    x->tail[op->stream] = t.end;
  if (ls_op_records (op))
    *event_of (x, instance, op) = t.end;
  return t;
}

/* --- the clocks ------------------------------------------------------------------ */

static const MemoryChange *
alloc_of (const Changes *c, const MemoryChange *change)
{
  return change->alloc == UINT32_MAX ? NULL : &g_array_index (c->changes, MemoryChange, change->alloc);
}

static void
put_on_host_clock (const Changes *c, MemoryChange *change, const OpTimes *t)
{
  const MemoryChange *alloc = alloc_of (c, change);
  /* What is allocated when its op starts has a place that others used before: it counts by the device. */
  bool is_free = change->buffer->is_free, is_placed = alloc && alloc->buffer->when == LS_AT_START,
       is_used = alloc && alloc->stream != change->stream && change->buffer->when != LS_AT_ISSUE,
       waits = is_free && (is_placed || (is_used && t->end > t->issued));
  change->at = waits ? t->end : is_placed ? t->start : t->issued;
  change->phase = waits ? PHASE_ENDS : PHASE_STARTS;
}

static void
put_on_device_clock (const Changes *c, MemoryChange *change, const OpTimes *t)
{
  const LsBufferEvent *b = change->buffer;
  if (!b->is_free) {
    change->at = b->when == LS_AT_END ? t->end : t->start;
    change->phase = PHASE_STARTS;
    return;
  }
  const MemoryChange *alloc = change->is_carried ? NULL : alloc_of (c, change);
  change->at = b->when == LS_AT_START ? t->start : t->end;
  if (alloc) /* an event may free what started with it */
    change->at = MAX (change->at, alloc->at);
  change->phase = alloc && alloc->at == change->at ? PHASE_INSTANTS : PHASE_ENDS;
}

/* All changes first: what is freed early in a step may have been allocated late in the one
 * before. */
static void
put_on_clock (const Changes *c, const OpTimes *times, LsMemoryClock clock)
{
  for (guint i = 0; i < c->changes->len; i++) {
    MemoryChange *change = &g_array_index (c->changes, MemoryChange, i);
    change->issued = times[i].issued;
    if (clock == LS_MEMORY_HOST)
      put_on_host_clock (c, change, &times[i]);
    else
      put_on_device_clock (c, change, &times[i]);
  }
}

GArray *
memory_changes_timed (const LsTimeline *t, uint32_t rank, LsMemoryClock clock)
{
  Changes c;
  Times x;
  g_autoptr (LsArena) arena = ls_arena_new ();
  times_init (&x, t, rank, arena);
  changes_init (&c, t->plan, x.program);
  g_autofree OpTimes *times = g_new (OpTimes, MAX (1, c.n_all)); /* of the op of each change */
  for (uint32_t i = x.program->n_lead, ticks = 0; i < x.program->n_instances && !ls_stop_tick (&ticks); i++) {
    const LsSegment *seg = &x.plan->segments[x.program->instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++) {
      OpTimes of_op = times_of (&x, i, o, &seg->ops[o]);
      guint n = c.changes->len;
      add_op (&c, i, (uint16_t) o, &seg->ops[o]);
      for (; n < c.changes->len; n++)
        times[n] = of_op;
    }
  }
  GArray *changes = changes_finish (&c);
  put_on_clock (&c, times, clock);
  return changes;
}

/* ---- laps ---- */

static int
compare_events (gconstpointer x, gconstpointer y)
{
  const MemoryEvent *a = x, *b = y;
  LS_SMALLER_FIRST (a->at, b->at);
  LS_SMALLER_FIRST (a->phase, b->phase);
  LS_SMALLER_FIRST (a->lap, b->lap);
  LS_SMALLER_FIRST (a->index, b->index);
  return (int) b->is_issue - (int) a->is_issue;
}

static void
add_event (GArray *events, LsTime at, guint index, uint8_t phase, bool is_issue)
{
  MemoryEvent e = { .at = at, .index = index, .phase = phase, .is_issue = is_issue };
  g_array_append_val (events, e);
}

static bool
is_sorted (const GArray *events)
{
  for (guint i = 1; i < events->len; i++)
    if (compare_events (&g_array_index (events, MemoryEvent, i - 1), &g_array_index (events, MemoryEvent, i))
        > 0)
      return false;
  return true;
}

static void
sort (GArray *events)
{
  if (!is_sorted (events))
    g_array_sort (events, compare_events);
}

/* Both sorted; later is emptied. */
static void
merge (GArray *events, GArray *later)
{
  guint a = events->len, b = later->len, n = a + b;
  g_array_set_size (events, n);
  MemoryEvent *to = (MemoryEvent *) (gpointer) events->data;
  const MemoryEvent *from = (const MemoryEvent *) (gconstpointer) later->data;
  while (b > 0)
    to[--n] = a > 0 && compare_events (&to[a - 1], &from[b - 1]) > 0 ? to[--a] : from[--b];
  g_array_set_size (later, 0);
}

GArray *
memory_events (const GArray *changes)
{
  GArray *events = g_array_sized_new (FALSE, FALSE, sizeof (MemoryEvent), changes->len);
  g_autoptr (GArray) later = g_array_new (FALSE, FALSE, sizeof (MemoryEvent));
  for (guint i = 0; i < changes->len; i++) {
    const MemoryChange *c = &g_array_index (changes, MemoryChange, i);
    add_event (c->issued < c->at ? later : events, c->at, i, c->phase, false);
    if (c->buffer->is_free && c->issued < c->at)
      add_event (events, c->issued, i, PHASE_STARTS, true);
  }
  sort (events); /* on the host's clock they are */
  sort (later);
  merge (events, later);
  return events;
}

MemoryLaps
memory_laps_of (const GArray *events, uint32_t n_laps, LsTime period)
{
  g_assert (n_laps >= 1 && n_laps <= MEMORY_MAX_LAPS);
  return (MemoryLaps) {
    .events = events, .period = period, .n_laps = n_laps, .shift = n_laps == 1 ? 0 : -period
  };
}

bool
memory_laps_next (MemoryLaps *l, MemoryEvent *ret)
{
  uint32_t first = l->n_laps;
  if (ls_stop_tick (&l->n_ticks))
    return false;
  bool is_begun = true; /* of one that is not, the first event is before all of the next lap */
  for (uint32_t lap = 0; lap < l->n_laps && is_begun; lap++) {
    is_begun = l->next[lap] > 0;
    if (l->next[lap] == l->events->len)
      continue;
    MemoryEvent e = g_array_index (l->events, MemoryEvent, l->next[lap]);
    e.at += l->shift + (LsTime) lap * l->period;
    e.lap = lap;
    if (first < l->n_laps && compare_events (ret, &e) < 0)
      continue;
    *ret = e;
    first = lap;
  }
  if (first < l->n_laps)
    l->next[first]++;
  return first < l->n_laps;
}

uint32_t *
memory_laps_handles (uint32_t n_laps, guint n_changes)
{
  gsize n = MAX (1, (n_laps + 1) * (gsize) n_changes);
  uint32_t *handles = g_new (uint32_t, n);
  memset (handles, 0xff, n * sizeof *handles);
  return handles;
}

static uint32_t
take_from (void *allocator, uint64_t bytes, uint32_t stream, uint8_t category, const MemoryChange *alloc)
{
  return ls_allocator_take (allocator, bytes, stream);
}

void
memory_take_first (const GArray *changes, const uint64_t throughout[LS_N_MEM], MemoryTake take, void *data,
                   uint32_t *handles)
{
  take = take ? take : take_from;
  for (uint8_t category = 0; category < LS_N_MEM; category++)
    if (throughout[category] > 0 && !memory_is_outside_allocator (category))
      take (data, throughout[category], LS_STREAM_COMPUTE, category, NULL);
  for (guint i = 0; i < changes->len; i++) {
    const MemoryChange *c = &g_array_index (changes, MemoryChange, i);
    const MemoryChange *alloc = c->is_carried ? &g_array_index (changes, MemoryChange, c->alloc) : NULL;
    if (alloc)
      handles[c->alloc] = take (data, alloc->buffer->bytes, alloc->stream, alloc->buffer->category, alloc);
  }
}

MemoryWindow
memory_window_of (const LsTimeline *t, bool overlaps)
{
  MemoryWindow w = { .from = G_MININT64, .to = G_MAXINT64, .n_laps = 1 };
  if (!t)
    return w;
  w.start = t->window_start;
  w.period = t->window_end - t->window_start;
  if (!overlaps || t->n_steps == 1)
    return w;
  w.from = t->window_start;
  w.to = t->window_end;
  w.n_laps = MEMORY_WINDOW_LAPS;
  return w;
}
