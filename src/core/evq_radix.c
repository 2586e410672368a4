/* core/evq_radix.c — a radix heap: events wait in lists, by the highest digit in
 * which their time differs from the present one.
 *
 *     now = 3 1 7    (three digits, here decimal)
 *           3 1 7    differs nowhere    instant
 *           3 1 9    at digit 0         later[0][9]
 *           3 4 2    at digit 1         later[1][4]
 *           5 0 0    at digit 2         later[2][5]
 *
 * The first event is one of the instant, or else in the first list that is not
 * empty: the lowest level, there the lowest digit. That list is opened: its
 * earliest time becomes the present one, and its events are placed anew, all on
 * lower levels. So an event moves at most once a level, however many there are.
 *
 * Why it works. Time never goes back, so an event stays in its list until that is
 * opened. Lists are first in, first out, so events of one time keep the order in
 * which they were scheduled. Phases count only at one time, so only the instant has
 * a list for each; what is scheduled now in a phase that has passed is next.
 *
 * What makes it fast. Entries hold the time beside the event, in chunks: a list is
 * read in sequence, and its events are prefetched. A removed event leaves an empty
 * entry; when these outnumber the events, all lists are written anew.
 *
 * After R. K. Ahuja, K. Mehlhorn, J. B. Orlin, R. E. Tarjan, "Faster algorithms for
 * the shortest path problem", J. ACM 37 (1990), with digits of several bits. */
#include "core/evq.h"

#include <glib.h>

#define BITS     6 /* of a digit: the lists of a level have their flags in one word */
#define N_DIGITS (1 << BITS)
#define N_LEVELS ((64 + BITS - 1) / BITS)
#define CHUNK    63   /* entries: 1 KiB with the link */
#define AHEAD    8    /* entries that the prefetch is ahead */
#define FEW      1024 /* empty entries that are not worth a sweep */

typedef struct {
  LsTime at;
  LsEvent *event; /* NULL: removed */
} Entry;

typedef struct Chunk Chunk;
struct Chunk {
  Chunk *next;
  Entry entries[CHUNK];
};

typedef struct {
  Chunk *first, *last; /* NULL: no entries             */
  uint32_t from, to;   /* begin in first, end in last  */
} List;

typedef struct {
  LsTime now;               /* of the event that was popped last                */
  uint32_t levels;          /* bit: the level has flags                         */
  uint64_t flags[N_LEVELS]; /* bit: the list is not empty, or was before a sweep */
  List instant[LS_N_PHASES];
  List later[N_LEVELS][N_DIGITS];
  size_t n, n_removed; /* events, empty entries */
  Chunk *spare;
} Radix;

/* --- lists ------------------------------------------------------------- */

static inline uint32_t
chunk_end (const List *l, const Chunk *c)
{
  return c == l->last ? l->to : CHUNK;
}

static void
list_grow (Radix *q, List *l)
{
  Chunk *c = q->spare;
  if (c)
    q->spare = c->next;
  else
    c = g_new (Chunk, 1);
  c->next = NULL;
  if (l->last)
    l->last->next = c;
  else
    l->first = c;
  l->last = c;
  l->to = 0;
}

static inline void
list_append (Radix *q, List *l, LsTime at, LsEvent *e)
{
  if (G_UNLIKELY (!l->last || l->to == CHUNK))
    list_grow (q, l);
  Entry *entry = &l->last->entries[l->to++];
  *entry = (Entry) { at, e };
  e->place = entry;
}

/* Gives the first chunk back; returns the one behind it. */
static inline Chunk *
list_drop_chunk (Radix *q, List *l)
{
  Chunk *c = l->first;
  l->first = c->next;
  l->from = 0;
  if (!l->first)
    l->last = NULL;
  c->next = q->spare;
  q->spare = c;
  return l->first;
}

static LsEvent *
list_take_first (Radix *q, List *l)
{
  for (Chunk *c = l->first; c; c = list_drop_chunk (q, l))
    while (l->from < chunk_end (l, c)) {
      LsEvent *e = c->entries[l->from++].event;
      if (e)
        return e;
      q->n_removed--;
    }
  return NULL;
}

/* NULL if all entries are empty. */
static const Entry *
list_earliest (const List *l)
{
  const Entry *best = NULL;
  for (const Chunk *c = l->first; c; c = c->next)
    for (const Entry *x = c->entries, *end = x + chunk_end (l, c); x < end; x++)
      if (x->event && (!best || x->at < best->at))
        best = x;
  return best;
}

/* --- placing ----------------------------------------------------------- */

static inline void
place (Radix *q, LsTime at, LsEvent *e)
{
  uint64_t differs = (uint64_t) at ^ (uint64_t) q->now;
  if (differs == 0) {
    list_append (q, &q->instant[ls_event_phase (e)], at, e);
    return;
  }
  uint32_t level = (63 - (uint32_t) __builtin_clzll (differs)) / BITS;
  uint32_t digit = (uint64_t) at >> level * BITS & (N_DIGITS - 1);
  q->levels |= 1u << level;
  q->flags[level] |= UINT64_C (1) << digit;
  list_append (q, &q->later[level][digit], at, e);
}

/* Places what is in a list that was taken out, in its order. */
static void
place_all (Radix *q, List l)
{
  for (Chunk *c = l.first; c; c = list_drop_chunk (q, &l)) {
    uint32_t end = chunk_end (&l, c);
    for (uint32_t i = l.from; i < end; i++) {
      if (i + AHEAD < end)
        __builtin_prefetch (c->entries[i + AHEAD].event, 1);
      if (c->entries[i].event)
        place (q, c->entries[i].at, c->entries[i].event);
      else
        q->n_removed--;
    }
  }
}

static void
rewrite (Radix *q, List *l)
{
  List old = *l;
  *l = (List) { 0 };
  place_all (q, old);
}

static void
vacate (Radix *q, LsEvent *e)
{
  ((Entry *) e->place)->event = NULL;
  e->place = NULL;
  if (++q->n_removed <= q->n + FEW)
    return;
  for (uint32_t p = 0; p < LS_N_PHASES; p++)
    rewrite (q, &q->instant[p]);
  for (uint32_t i = 0; i < N_LEVELS * N_DIGITS; i++)
    rewrite (q, &q->later[i / N_DIGITS][i % N_DIGITS]);
}

/* --- the queue --------------------------------------------------------- */

static void *
radix_create (void)
{
  return g_new0 (Radix, 1);
}

static void
chunks_free (Chunk *c)
{
  for (Chunk *next; c; c = next) {
    next = c->next;
    g_free (c);
  }
}

static void
radix_destroy (void *queue)
{
  Radix *q = queue;
  for (uint32_t p = 0; p < LS_N_PHASES; p++)
    chunks_free (q->instant[p].first);
  for (uint32_t i = 0; i < N_LEVELS * N_DIGITS; i++)
    chunks_free (q->later[i / N_DIGITS][i % N_DIGITS].first);
  chunks_free (q->spare);
  g_free (q);
}

static void
radix_push (void *queue, LsEvent *e)
{
  Radix *q = queue;
  g_assert (!ls_event_is_queued (e) && e->at >= q->now);
  q->n++;
  place (q, e->at, e);
}

static void
radix_update (void *queue, LsEvent *e, LsTime at, uint64_t order)
{
  Radix *q = queue;
  g_assert (at >= q->now);
  vacate (q, e);
  e->at = at;
  e->order = order;
  place (q, at, e);
}

static void
radix_remove (void *queue, LsEvent *e)
{
  Radix *q = queue;
  q->n--;
  vacate (q, e);
}

static LsEvent *
take_of_instant (Radix *q)
{
  LsEvent *e = NULL;
  for (uint32_t p = 0; p < LS_N_PHASES && !e; p++)
    e = list_take_first (q, &q->instant[p]);
  return e;
}

static void
clear_flag (Radix *q, uint32_t level)
{
  q->flags[level] &= q->flags[level] - 1;
  if (q->flags[level] == 0)
    q->levels &= q->levels - 1;
}

/* Moves on to the next time, if that is before `before`, and takes its first event. */
static LsEvent *
take_later (Radix *q, LsTime before)
{
  while (q->levels) {
    uint32_t level = (uint32_t) __builtin_ctz (q->levels);
    List *l = &q->later[level][__builtin_ctzll (q->flags[level])];
    const Entry *earliest = list_earliest (l);
    if (earliest && earliest->at >= before)
      return NULL;
    clear_flag (q, level);
    if (earliest) {
      bool is_alone = l->first == l->last && l->to == 1;
      LsEvent *e = earliest->event;
      q->now = earliest->at;
      if (is_alone)
        list_drop_chunk (q, l);
      else
        rewrite (q, l);
      return is_alone ? e : take_of_instant (q);
    }
    rewrite (q, l);
  }
  return NULL;
}

static LsEvent *
radix_pop (void *queue, LsTime before)
{
  Radix *q = queue;
  if (q->now >= before)
    return NULL;
  LsEvent *e = take_of_instant (q);
  if (!e)
    e = take_later (q, before);
  if (!e)
    return NULL;
  e->place = NULL;
  q->n--;
  return e;
}

static size_t
radix_size (void *queue)
{
  return ((Radix *) queue)->n;
}

const LsEvqType ls_evq_radix = {
  "radix", radix_create, radix_destroy, radix_push, radix_update, radix_remove, radix_pop, radix_size,
};
