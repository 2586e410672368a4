/* core/evq_radix.c — a radix heap with a sorted front.
 *
 * Events wait in lists, by the highest digit in which their time differs from a floor,
 * which is not after the present time:
 *
 *     floor = 3 1 7    (three digits, here decimal)
 *             3 1 9    differs at digit 0    later[0][9]
 *             3 4 2    at digit 1            later[1][4]
 *             5 0 0    at digit 2            later[2][5]
 *
 * The next events are in the first list that is not empty: the lowest level, there the
 * lowest digit. That list is opened: the floor becomes the earliest time that it could
 * hold, and its events are placed anew, all on lower levels. So an event moves at most
 * once a level, however many there are. A short list is sorted into the front instead, an
 * array from which events are popped; what is scheduled before the end of that list is
 * inserted there, and if the front is full, what is later than the present is placed anew.
 * A list of a few is sorted by insertion, a longer one by parts of its time first.
 *
 * Why it works. The floor moves only when an event is popped at it or later, so nothing is
 * scheduled before it, and an event stays in its list until that is opened. While the front
 * takes events up to some time, the levels below that of the list which it was are empty.
 * Lists are first in, first out, so events of one time keep the order in which they were
 * scheduled. What is scheduled at the present time waits in a list for each phase, behind
 * events of that time and phase in the front, which are older.
 *
 * What makes it fast. Entries hold the time beside the event, in chunks, so moving a list
 * reads and writes entries in sequence and touches no event; those of a short list fire
 * soon and are prefetched. With each event that leaves a long front, one of the list after
 * it is prefetched: of many asked for at once the memory brings the last too late. An event
 * knows the entry that it was scheduled into; after a move that is out of date until one of
 * the list is removed, when all of the list are told. A removed event leaves an empty entry;
 * when these outnumber the events, all are rewritten.
 *
 * After R. K. Ahuja, K. Mehlhorn, J. B. Orlin, R. E. Tarjan, "Faster algorithms for
 * the shortest path problem", J. ACM 37 (1990), with digits of several bits; the front is
 * the bottom of W. T. Tang, R. S. M. Goh, I. L.-J. Thng, "Ladder queue: an O(1) priority
 * queue structure for large-scale discrete event simulation", ACM TOMACS 15 (2005). */
#include "core/evq.h"

#include <glib.h>
#include <string.h>

/* --- lists of events in chunks ------------------------------------------------------------------------ */

/* Entries hold the time beside the event, so that moving a list reads and writes in sequence and touches no
 * event. What is removed leaves an empty entry. An event knows the entry that it was put into when it was
 * new; after a move that is out of date until the list gives places. Chunks that are given back are used
 * again; all are freed together. */

#define CHUNK 67 /* entries: 17 lines of a cache with the link, so that chunks begin in any set */
#define SLAB  15 /* chunks that are allocated together */
#define SHORT 64 /* chunks of a list whose events stay in the cache until they fire */

typedef struct {
  LsTime at;
  LsEvent *event; /* NULL: removed */
} Entry;

typedef struct Chunk {
  struct Chunk *next;
  Entry entries[CHUNK];
} __attribute__ ((aligned (64))) Chunk;

typedef struct Slab {
  Chunk chunks[SLAB];
  struct Slab *next;
} Slab;

typedef struct {
  Chunk *first, *last; /* NULL: no entries                  */
  uint32_t from, to;   /* begin in first, end in last       */
  bool has_places;     /* the place of each event is its entry */
} List;

typedef struct {
  Chunk *spare;
  Slab *slabs;
  size_t n_removed; /* empty entries of all lists */
} Chunks;

static inline uint32_t
chunk_end (const List *l, const Chunk *c)
{
  return c == l->last ? l->to : CHUNK;
}

static inline void
add_slab (Chunks *p)
{
  Slab *s = g_aligned_alloc (1, sizeof *s, 64);
  s->next = p->slabs;
  p->slabs = s;
  for (uint32_t i = SLAB; i-- > 0; p->spare = &s->chunks[i])
    s->chunks[i].next = p->spare;
}

static G_GNUC_NO_INLINE void
list_grow (Chunks *p, List *l)
{
  if (!p->spare)
    add_slab (p);
  Chunk *c = p->spare;
  p->spare = c->next;
  c->next = NULL;
  if (l->last)
    l->last->next = c;
  else
    l->first = c;
  l->last = c;
  l->to = 0;
}

static inline void
list_append (Chunks *p, List *l, Entry x, bool is_new)
{
  if (G_UNLIKELY (!l->last || l->to == CHUNK))
    list_grow (p, l);
  Entry *entry = &l->last->entries[l->to++];
  *entry = x;
  if (is_new || l->has_places)
    x.event->place = entry;
}

/* Gives the first chunk back; returns the one after it. */
static inline Chunk *
list_drop_chunk (Chunks *p, List *l)
{
  Chunk *c = l->first;
  if (c->next)
    *l = (List) { c->next, l->last, 0, l->to, l->has_places };
  else
    *l = (List) { 0 };
  c->next = p->spare;
  p->spare = c;
  return l->first;
}

/* The first entry that is not empty, or NULL; drops those before it. */
static inline Entry *
list_first (Chunks *p, List *l)
{
  for (Chunk *c = l->first; c; c = list_drop_chunk (p, l))
    for (; l->from < chunk_end (l, c); l->from++, p->n_removed--)
      if (c->entries[l->from].event)
        return &c->entries[l->from];
  return NULL;
}

/* Of a list that has events. */
static inline LsTime
list_earliest (const List *l)
{
  LsTime best = LS_TIME_NEVER;
  uint32_t from = l->from;
  for (const Chunk *c = l->first; c; c = c->next, from = 0)
    for (const Entry *x = c->entries + from, *end = c->entries + chunk_end (l, c); x < end; x++)
      if (x->event)
        best = MIN (best, x->at);
  return best;
}

static inline void
list_give_places (List *l)
{
  l->has_places = true;
  uint32_t from = l->from;
  for (Chunk *c = l->first; c; c = c->next, from = 0)
    for (Entry *x = c->entries + from, *end = c->entries + chunk_end (l, c); x < end; x++)
      if (x->event)
        x->event->place = x;
}

/* Whether it has no more than n entries, empty ones too. */
static inline bool
list_is_within (const List *l, uint32_t n)
{
  uint32_t has = 0, from = l->from;
  for (const Chunk *c = l->first; c && has <= n; c = c->next, from = 0)
    has += chunk_end (l, c) - from;
  return has <= n;
}

static inline bool
list_is_short (const List *l)
{
  const Chunk *c = l->first;
  for (uint32_t n = 0; c && n < SHORT; n++)
    c = c->next;
  return !c;
}

/* --- the queue -------------------------------------------------------------------------------------- */

#define BITS      8 /* of a digit: of fewer, an event moves more often; of more, most lists hold none */
#define N_DIGITS  (1 << BITS)
#define N_LEVELS  ((64 + BITS - 1) / BITS)
#define N_WORDS   (N_DIGITS / 64) /* of the flags of a level */
#define MAX_FRONT 300             /* entries */
#define TO_FRONT  240             /* entries of a list that is sorted into the front */
#define FEW       24              /* entries of a list that is sorted by insertion alone */
#define PART_BITS 7               /* of the part of a list's time that an entry is in */
#define N_PARTS   (1 << PART_BITS)
#define MAX_PART  40   /* entries of a part that are sorted by insertion */
#define NO_SWEEP  1024 /* empty entries that are not worth a sweep */

typedef struct {
  LsTime now;                        /* of the event that was popped last                 */
  uint64_t floor;                    /* what is in `later` differs from it                */
  uint64_t front_end;                /* what is before it, and not now, is in the front   */
  uint32_t from, to;                 /* in front                                          */
  uint32_t levels;                   /* bit: the level has flags                          */
  bool has_instant;                  /* there may be entries in instant                   */
  const Entry *ahead, *ahead_end;    /* of the list after the front: not yet prefetched   */
  uint64_t flags[N_LEVELS][N_WORDS]; /* bit: the list is not empty, or was before a sweep */
  Entry front[MAX_FRONT];            /* sorted by time, phase and seq; none is empty      */
  List instant[LS_N_PHASES];
  List later[N_LEVELS][N_DIGITS];
  size_t n; /* events */
  Chunks chunks;
} Radix;

/* Puts an entry where it belongs. is_new: was just scheduled. */
typedef void (*PlaceFn) (Radix *q, Entry x, bool is_new);

/* --- placing ----------------------------------------------------------- */

static inline uint32_t
level_of (const Radix *q, LsTime at)
{
  return (63 - (uint32_t) __builtin_clzll (((uint64_t) at ^ q->floor) | 1)) / BITS;
}

static inline uint32_t
digit_of (LsTime at, uint32_t level)
{
  return (uint64_t) at >> level * BITS & (N_DIGITS - 1);
}

static inline void
place_later (Radix *q, Entry x, bool is_new)
{
  uint32_t level = level_of (q, x.at), digit = digit_of (x.at, level);
  q->levels |= 1u << level;
  q->flags[level][digit / 64] |= UINT64_C (1) << digit % 64;
  list_append (&q->chunks, &q->later[level][digit], x, is_new);
}

static inline void
place_now (Radix *q, Entry x, bool is_new)
{
  q->has_instant = true;
  list_append (&q->chunks, &q->instant[ls_event_phase (x.event)], x, is_new);
}

static inline bool
is_before (const Entry *a, const Entry *b)
{
  return a->at != b->at ? a->at < b->at : a->event->order < b->event->order;
}

static inline void
place_in_front (Radix *q, Entry x)
{
  uint32_t i = q->to++;
  for (; i > q->from && is_before (&x, &q->front[i - 1]); i--)
    q->front[i] = q->front[i - 1];
  q->front[i] = x;
}

/* Nothing later than now is in the front from now on. */
static void
close_front (Radix *q)
{
  uint32_t end = q->to;
  for (q->to = q->from; q->to < end && q->front[q->to].at <= q->now;)
    q->to++;
  q->floor = (uint64_t) q->now;
  q->front_end = q->floor + 1;
  for (uint32_t i = q->to; i < end; i++)
    place_later (q, q->front[i], false);
}

static void
place (Radix *q, LsEvent *e)
{
  Entry x = { e->at, e };
  bool is_soon = (uint64_t) e->at < q->front_end;
  if (x.at == q->now) {
    place_now (q, x, true);
    return;
  }
  if (is_soon && q->to == MAX_FRONT) {
    close_front (q);
    is_soon = false;
  }
  if (is_soon) {
    place_in_front (q, x);
    e->place = q->front;
  } else
    place_later (q, x, true);
}

/* Places the entries of a list anew, in their order. */
static inline void
list_rewrite (Radix *q, List *list, PlaceFn place_one, bool fire_soon)
{
  List l = *list;
  *list = (List) { 0 };
  for (Chunk *c = l.first; c; c = list_drop_chunk (&q->chunks, &l)) {
    for (uint32_t i = l.from, end = chunk_end (&l, c); i < end; i++) {
      Entry x = c->entries[i];
      if (fire_soon)
        ls_event_prefetch (x.event);
      if (x.event)
        place_one (q, x, false);
      else
        q->chunks.n_removed--;
    }
  }
}

/* --- removing ---------------------------------------------------------- */

/* The first that is not before that time. */
static inline uint32_t
first_in_front (const Radix *q, LsTime at)
{
  uint32_t i = q->from;
  for (uint32_t n = q->to - i; n > 0;) {
    uint32_t half = n / 2;
    bool is_after = q->front[i + half].at < at;
    i += is_after ? half + 1 : 0;
    n = is_after ? n - half - 1 : half;
  }
  return i;
}

static bool
remove_from_front (Radix *q, const LsEvent *e)
{
  uint32_t i = q->to - q->from > FEW ? first_in_front (q, e->at) : q->from;
  while (i < q->to && q->front[i].event != e && q->front[i].at <= e->at)
    i++;
  if (i == q->to || q->front[i].event != e)
    return false;
  if (i - q->from < q->to - i) {
    memmove (&q->front[q->from + 1], &q->front[q->from], (i - q->from) * sizeof q->front[0]);
    q->from++;
  } else
    memmove (&q->front[i], &q->front[i + 1], (--q->to - i) * sizeof q->front[0]);
  return true;
}

static void
sweep (Radix *q)
{
  for (uint32_t p = 0; p < LS_N_PHASES; p++)
    list_rewrite (q, &q->instant[p], place_now, false);
  for (uint32_t i = 0; i < N_LEVELS * N_DIGITS; i++)
    list_rewrite (q, &q->later[i / N_DIGITS][i % N_DIGITS], place_later, false);
}

static void
vacate (Radix *q, LsEvent *e)
{
  bool is_now = e->at == q->now;
  if ((is_now || (uint64_t) e->at < q->front_end) && remove_from_front (q, e))
    return;
  uint32_t level = level_of (q, e->at);
  List *l = is_now ? &q->instant[ls_event_phase (e)] : &q->later[level][digit_of (e->at, level)];
  if (!l->has_places)
    list_give_places (l);
  ((Entry *) e->place)->event = NULL;
  if (++q->chunks.n_removed > q->n + NO_SWEEP)
    sweep (q);
}

/* --- opening ----------------------------------------------------------- */

/* The first digit of a level that has flags. */
static inline uint32_t
first_digit (const Radix *q, uint32_t level)
{
  uint32_t word = 0;
  while (q->flags[level][word] == 0)
    word++;
  return 64 * word + (uint32_t) __builtin_ctzll (q->flags[level][word]);
}

/* Of the first digit of the first level. */
static inline void
clear_flag (Radix *q, uint32_t level, uint32_t digit)
{
  uint64_t any = 0;
  q->flags[level][digit / 64] &= q->flags[level][digit / 64] - 1;
  for (uint32_t word = digit / 64; word < N_WORDS; word++)
    any |= q->flags[level][word];
  if (any == 0)
    q->levels &= q->levels - 1;
}

/* Of a list of one chunk. */
static inline void
few_to_front (Radix *q, List *l)
{
  const Entry *first = l->first->entries + l->from, *end = l->first->entries + l->to;
  q->from = q->to = 0;
  for (const Entry *x = first; x < end; x++)
    ls_event_prefetch (x->event);
  for (const Entry *x = first; x < end; x++)
    if (x->event)
      place_in_front (q, *x);
    else
      q->chunks.n_removed--;
  list_drop_chunk (&q->chunks, l);
}

/* Empties a list of at most TO_FRONT entries; returns how many had an event. */
static inline uint32_t
list_take (Radix *q, List *l, Entry *to)
{
  uint32_t n = 0;
  for (Chunk *c = l->first; c; c = list_drop_chunk (&q->chunks, l))
    for (uint32_t i = l->from, end = chunk_end (l, c); i < end; i++) {
      Entry x = c->entries[i];
      ls_event_prefetch (x.event);
      if (x.event)
        to[n++] = x;
      else
        q->chunks.n_removed--;
    }
  return n;
}

static inline uint32_t
part_of (Entry x, uint32_t shift)
{
  return (uint64_t) x.at >> (shift - PART_BITS) & (N_PARTS - 1);
}

/* Sorts a list, of 2^shift ps, into the front, unless too many of it are in one part of
 * its time: then they go to lower levels, and the front stays empty. Returns which. */
static G_GNUC_NO_INLINE bool
parts_to_front (Radix *q, List *l, uint32_t shift)
{
  G_STATIC_ASSERT (TO_FRONT <= UINT8_MAX && PART_BITS <= BITS);
  Entry all[TO_FRONT];
  uint8_t n_in[N_PARTS] = { 0 }, at[N_PARTS];
  uint32_t n = list_take (q, l, all), before = 0, most = 0;
  for (uint32_t i = 0; i < n; i++)
    n_in[part_of (all[i], shift)]++;
  for (uint32_t p = 0; p < N_PARTS; p++) {
    at[p] = (uint8_t) before;
    before += n_in[p];
    most = MAX (most, n_in[p]);
  }
  q->from = q->to = 0;
  if (most > MAX_PART) {
    for (uint32_t i = 0; i < n; i++)
      place_later (q, all[i], false);
    return false;
  }
  for (uint32_t i = 0; i < n; i++)
    q->front[at[part_of (all[i], shift)]++] = all[i];
  while (q->to < n)
    place_in_front (q, q->front[q->to]);
  return true;
}

/* Events of the first list will be prefetched one by one. */
static inline void
look_ahead (Radix *q)
{
  q->ahead = q->ahead_end = NULL;
  if (!q->levels)
    return;
  uint32_t level = (uint32_t) __builtin_ctz (q->levels);
  const List *l = &q->later[level][first_digit (q, level)];
  if (l->first) {
    q->ahead = l->first->entries + l->from;
    q->ahead_end = l->first->entries + chunk_end (l, l->first);
  }
}

/* Opens the first list, the times of which begin at `base`. Returns whether it went to
 * lower levels. */
static inline bool
open_list (Radix *q, List *l, uint64_t base, uint32_t level)
{
  q->floor = q->front_end = base;
  if (l->first == l->last && l->to - l->from <= FEW) {
    q->front_end = base + (UINT64_C (1) << level * BITS);
    few_to_front (q, l);
    return false;
  }
  if (level > 0 && list_is_within (l, TO_FRONT)) {
    if (!parts_to_front (q, l, level * BITS))
      return true;
    q->front_end = base + (UINT64_C (1) << level * BITS);
    look_ahead (q);
    return false;
  }
  if (level > 0) {
    list_rewrite (q, l, place_later, list_is_short (l));
    return true;
  }
  q->now = (LsTime) base;
  list_rewrite (q, l, place_now, true);
  return false;
}

/* Moves on to the next events, if one is before `before`: into the front, or, if many are
 * of one time, into the instant. Both are empty. */
static G_GNUC_NO_INLINE bool
open_next (Radix *q, LsTime before)
{
  while (q->levels) {
    uint32_t level = (uint32_t) __builtin_ctz (q->levels), shift = level * BITS;
    uint32_t digit = first_digit (q, level);
    List *l = &q->later[level][digit];
    if (!list_first (&q->chunks, l)) {
      clear_flag (q, level, digit);
      continue;
    }
    uint64_t base = ((q->floor >> shift & ~(uint64_t) (N_DIGITS - 1)) | digit) << shift;
    uint64_t end = base + (UINT64_C (1) << shift);
    if (end > (uint64_t) before && list_earliest (l) >= before)
      return false;
    clear_flag (q, level, digit);
    if (!open_list (q, l, base, level))
      return true;
  }
  return false;
}

/* --- the queue --------------------------------------------------------- */

static void *
radix_create (void)
{
  return g_new0 (Radix, 1);
}

static void
radix_destroy (void *queue)
{
  Radix *q = queue;
  for (Slab *s = q->chunks.slabs, *next; s; s = next) {
    next = s->next;
    g_aligned_free (s);
  }
  g_free (q);
}

static void
radix_push (void *queue, LsEvent *e)
{
  Radix *q = queue;
  g_assert (!ls_event_is_queued (e) && e->at >= q->now);
  q->n++;
  place (q, e);
}

static void
radix_update (void *queue, LsEvent *e, LsTime at, uint64_t order)
{
  Radix *q = queue;
  g_assert (at >= q->now);
  vacate (q, e);
  e->at = at;
  e->order = order;
  place (q, e);
}

static void
radix_remove (void *queue, LsEvent *e)
{
  Radix *q = queue;
  q->n--;
  vacate (q, e);
  e->place = NULL;
}

/* The list of the earliest phase that has events at the present time, or NULL. */
static List *
first_instant (Radix *q)
{
  for (uint32_t p = 0; q->has_instant && p < LS_N_PHASES; p++)
    if (list_first (&q->chunks, &q->instant[p]))
      return &q->instant[p];
  q->has_instant = false;
  return NULL;
}

static inline bool
is_front_next (const Radix *q, const List *instant)
{
  const Entry *x = &q->front[q->from];
  if (q->from == q->to || !instant)
    return q->from < q->to;
  return x->at == q->now && ls_event_phase (x->event) <= (uint32_t) (instant - q->instant);
}

static inline LsEvent *
take (Radix *q, Entry x)
{
  q->now = x.at;
  q->n--;
  x.event->place = NULL;
  return x.event;
}

/* Where the front is empty, or is not all that could be next. */
static G_GNUC_NO_INLINE LsEvent *
pop_any (Radix *q, LsTime before)
{
  if (q->now >= before)
    return NULL;
  List *instant = first_instant (q);
  if (q->from == q->to && !instant) {
    if (!open_next (q, before))
      return NULL;
    instant = first_instant (q);
  }
  if (!is_front_next (q, instant))
    return take (q, instant->first->entries[instant->from++]);
  return q->front[q->from].at < before ? take (q, q->front[q->from++]) : NULL;
}

static LsEvent *
radix_pop (void *queue, LsTime before)
{
  Radix *q = queue;
  if (q->has_instant || q->from == q->to)
    return pop_any (q, before);
  if (q->front[q->from].at >= before)
    return NULL;
  if (q->ahead < q->ahead_end)
    ls_event_prefetch (q->ahead++->event);
  return take (q, q->front[q->from++]);
}

static size_t
radix_size (void *queue)
{
  return ((Radix *) queue)->n;
}

const LsEvqType ls_evq_radix = {
  "radix", radix_create, radix_destroy, radix_push, radix_update, radix_remove, radix_pop, radix_size,
};
