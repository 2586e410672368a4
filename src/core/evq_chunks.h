/* core/evq_chunks.h — lists of events in chunks, for the fast queue (private to core/).
 *
 * Entries hold the time beside the event, so that moving a list reads and writes in sequence and touches no
 * event. What is removed leaves an empty entry. An event knows the entry that it was put into when it was
 * new; after a move that is out of date until the list gives places. Chunks that are given back are used
 * again; all are freed together. */
#ifndef LS_CORE_EVQ_CHUNKS_H
#define LS_CORE_EVQ_CHUNKS_H

#include <glib.h>

#include "core/evq.h"

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

static inline void
chunks_free (Chunks *p)
{
  for (Slab *s = p->slabs, *next; s; s = next) {
    next = s->next;
    g_aligned_free (s);
  }
}

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

#endif
