#include "exec/shortcuts/refine.h"

#include <string.h>

/* --- numbering -------------------------------------------------------------- */

static uint32_t
slots_for (uint32_t n)
{
  uint32_t n_slots = 16;
  while (n_slots < 2 * (uint64_t) n)
    n_slots *= 2;
  return n_slots;
}

/* ids: [slots_for (n)] scratch: into first_of, + 1; 0: free. */
static uint32_t
number (const LsSig *sig, uint32_t n, uint32_t *ids, uint32_t *ret)
{
  uint32_t n_ids = 0, mask = slots_for (n) - 1;
  g_autofree uint32_t *first_of = g_new (uint32_t, MAX (1, n));
  memset (ids, 0, ((size_t) mask + 1) * sizeof *ids);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = (uint32_t) (sig[i].a >> 32 ^ sig[i].a) & mask; /* of sums the last bits are often 0 */
    if (i > 0 && sig[i].a == sig[i - 1].a && sig[i].b == sig[i - 1].b) {
      ret[i] = ret[i - 1];
      continue;
    }
    while (ids[at] != 0) {
      const LsSig *other = &sig[first_of[ids[at] - 1]];
      if (other->a == sig[i].a && other->b == sig[i].b)
        break;
      at = (at + 1) & mask;
    }
    if (ids[at] == 0) {
      first_of[n_ids++] = i;
      ids[at] = n_ids;
    }
    ret[i] = ids[at] - 1;
  }
  return n_ids;
}

uint32_t
sigs_number (const LsSig *sig, uint32_t n, uint32_t *ret)
{
  g_autofree uint32_t *ids = g_new (uint32_t, slots_for (n));
  return number (sig, n, ids, ret);
}

LsSig *
sig_keep (LsArena *arena, LsSig sig)
{
  LsSig *kept = ls_arena_new_array (arena, LsSig, 1);
  *kept = sig;
  return kept;
}

uint32_t
sigs_id (GHashTable *ids, LsArena *arena, LsSig sig)
{
  guint known = GPOINTER_TO_UINT (g_hash_table_lookup (ids, &sig));
  if (known > 0)
    return known;
  guint id = g_hash_table_size (ids) + 1;
  g_hash_table_insert (ids, sig_keep (arena, sig), GUINT_TO_POINTER (id));
  return id;
}

/* --- what is refined ---------------------------------------------------------- */

RefineLists
refine_lists_new (bool has_uses, LsArena *arena)
{
  return (RefineLists) { .loads = ls_arena_list (arena, sizeof (RefineLoad)),
                         .first = ls_arena_list (arena, sizeof (uint32_t)),
                         .members = ls_arena_list (arena, sizeof (RefineMember)),
                         .first_member = ls_arena_list (arena, sizeof (uint32_t)),
                         .uses = has_uses ? ls_arena_list (arena, sizeof (RefineUse)) : NULL };
}

void
refine_begin (RefineLists *l, bool is_comm)
{
  g_array_append_val (l->first, l->loads->len);
  if (is_comm)
    g_array_append_val (l->first_member, l->members->len);
}

RefineLoad *
refine_add_loads (RefineLists *l, uint32_t n)
{
  g_array_set_size (l->loads, l->loads->len + n);
  return &g_array_index (l->loads, RefineLoad, l->loads->len - n);
}

void
refine_add_load (RefineLists *l, uint32_t resource, uint64_t coef, uint32_t pattern)
{
  *refine_add_loads (l, 1) = (RefineLoad) { coef, resource, pattern };
}

void
refine_add_use (RefineLists *l, uint32_t resource, uint64_t coef, uint32_t owner, uint32_t pattern)
{
  const RefineUse use = { coef, resource, owner, pattern };
  if (l->uses)
    g_array_append_val (l->uses, use);
}

void
refine_take_lists (Refine *r, RefineLists *l)
{
  refine_begin (l, true); /* none: where the last ends */
  r->n_uses = l->uses ? l->uses->len : l->loads->len;
  r->uses = l->uses ? (RefineUse *) (gpointer) l->uses->data : NULL;
  r->loads = (RefineLoad *) (gpointer) l->loads->data;
  r->first = (uint32_t *) (gpointer) l->first->data;
  r->members = (RefineMember *) (gpointer) l->members->data;
  r->first_member = (uint32_t *) (gpointer) l->first_member->data;
}

/* --- a round ------------------------------------------------------------------- */

typedef struct {
  const Refine *r;
  Classes c;
  uint32_t n_patterns; /* with SEEN_ONLY, the first */
  uint32_t *ids;       /* of number() */
  LsSig *scratch;      /* [communicators, ranks or resources, what is most]    */
  LsSig *sum;          /* [resources]                                          */
  LsSig *word;         /* [n_words] hashes of classes, or of each pattern of a class */
  uint32_t n_words;
  bool has_all; /* of each pattern */
} Round;

/* Those of n classes from the one numbered `first` on: where these are few, of each pattern. */
static void
hash_classes (Round *x, uint64_t kind, uint32_t first, uint32_t n)
{
  x->has_all = first > 0 ? x->has_all : (uint64_t) (n + x->c.n_ranks) * x->n_patterns <= x->n_words;
  uint32_t n_each = x->has_all ? x->n_patterns : 1;
  LsSig *word = &x->word[(size_t) first * n_each];
  for (uint32_t i = 0; i < n; i++) {
    LsSig own = ls_sig_of (kind << 32 | i);
    for (uint32_t p = 0; p < n_each; p++)
      *word++ = x->has_all ? ls_sig_with (own, p - 1) : own;
  }
}

static inline LsSig
word_of (const Round *x, uint32_t class, uint32_t pattern)
{
  return x->has_all ? x->word[(size_t) class * x->n_patterns + (uint32_t) (pattern + 1)]
                    : ls_sig_with (x->word[class], pattern);
}

/* S of one that loads resources, of those that are not ample; words are those of resources. */
static LsSig
loads_of (const Round *x, uint32_t owner)
{
  const Refine *r = x->r;
  LsSig sum = { 0 };
  for (uint32_t i = r->first[owner]; i < r->first[owner + 1]; i++) {
    const RefineLoad *l = &r->loads[i];
    if (l->coef > 0 && !r->is_ample[l->resource])
      ls_sig_add_times (&sum, l->coef, word_of (x, x->c.resource[l->resource], l->pattern));
  }
  return sum;
}

/* T of a communicator over its members. */
static LsSig
members_of (const Round *x, uint32_t comm)
{
  const Refine *r = x->r;
  LsSig sum = { 0 };
  for (uint32_t i = r->first_member[comm]; i < r->first_member[comm + 1]; i++) {
    const RefineMember *m = &r->members[i];
    ls_sig_add_times (&sum, m->n, ls_sig_of ((uint64_t) (m->slot + 16) << 32 | x->c.rank[m->rank]));
  }
  return sum;
}

static void
refine_comms (Round *x)
{
  uint32_t n = x->r->n_comms;
  hash_classes (x, 1, 0, x->c.n_resources);
  for (uint32_t i = 0; i < n; i++) {
    x->scratch[i] = ls_sig_of (x->c.comm[i]);
    ls_sig_add_times (&x->scratch[i], 1, members_of (x, i));
    ls_sig_add_times (&x->scratch[i], 1, loads_of (x, i));
  }
  x->c.n_comms = number (x->scratch, n, x->ids, x->c.comm);
}

static void
refine_ranks (Round *x)
{
  uint32_t n = x->r->n_ranks;
  hash_classes (x, 1, 0, x->c.n_resources);
  for (uint32_t i = 0; i < n; i++) {
    const LsBinding *b = x->r->bindings ? &x->r->bindings[i] : NULL;
    LsSig sig = ls_sig_of (x->c.rank[i]);
    for (int s = 0; s < LS_SLOT_PREV && b; s++)
      ls_sig_add (&sig, b->comm[s] == UINT32_MAX ? UINT64_MAX : x->c.comm[b->comm[s]]);
    for (int p = 0; p < 2 && b; p++)
      if (x->r->peers[b->role] & 1 << p)
        ls_sig_add (&sig, x->c.rank[b->peer[p]]);
    ls_sig_add_sig (&sig, loads_of (x, x->r->n_comms + i));
    x->scratch[i] = sig;
  }
  x->c.n_ranks = number (x->scratch, n, x->ids, x->c.rank);
}

/* Among those of communicators, then of ranks. */
static inline uint32_t
class_of_owner (const Round *x, uint32_t owner)
{
  return owner < x->r->n_comms ? x->c.comm[owner] : x->c.n_comms + x->c.rank[owner - x->r->n_comms];
}

/* By T. */
static void
refine_resources (Round *x)
{
  const Refine *r = x->r;
  LsSig *sum = x->sum;
  hash_classes (x, 2, 0, x->c.n_comms);
  hash_classes (x, 3, x->c.n_comms, x->c.n_ranks);
  memset (sum, 0, r->n_resources * sizeof *sum);
  for (uint32_t i = 0; i < r->n_uses && r->uses; i++) {
    const RefineUse *u = &r->uses[i];
    ls_sig_add_times (&sum[u->resource], u->coef, word_of (x, class_of_owner (x, u->owner), u->pattern));
  }
  for (uint32_t owner = 0; owner < r->n_comms + r->n_ranks && !r->uses; owner++)
    for (uint32_t i = r->first[owner], class = class_of_owner (x, owner); i < r->first[owner + 1]; i++) {
      const RefineLoad *l = &r->loads[i];
      if (l->pattern != REFINE_SEEN_ONLY)
        ls_sig_add_times (&sum[l->resource], r->counts_once ? 1 : l->coef, word_of (x, class, l->pattern));
    }
  for (uint32_t t = 0; t < r->n_resources; t++) {
    x->scratch[t] = ls_sig_of (x->c.resource[t]);
    ls_sig_add_times (&x->scratch[t], 1, sum[t]);
  }
  x->c.n_resources = number (x->scratch, r->n_resources, x->ids, x->c.resource);
}

/* Parts of a round. Where one splits a class, the others are to be looked at again; ranks see ranks, too. */
enum { OF_COMMS, OF_RANKS, OF_RESOURCES };
static void (*const refine_part[]) (Round *) = { refine_comms, refine_ranks, refine_resources };

/* What their patterns come to, with SEEN_ONLY. */
static uint32_t
count_patterns (const Refine *r)
{
  uint32_t most = 0;
  for (uint32_t i = 0; i < r->first[r->n_comms + r->n_ranks]; i++)
    most = MAX (most, (uint32_t) (r->loads[i].pattern + 1));
  for (uint32_t i = 0; i < r->n_uses && r->uses; i++)
    most = MAX (most, (uint32_t) (r->uses[i].pattern + 1));
  return most + 1;
}

Classes
refine (const Refine *r, LsArena *arena)
{
  uint32_t n_ranks = r->n_ranks, n_comms = r->n_comms,
           most = MAX (MAX (n_ranks, n_comms), r->n_resources) + 1;
  g_autoptr (LsArena) scratch = ls_arena_new ();
  Round x = { .r = r,
              .ids = ls_arena_new_array (scratch, uint32_t, slots_for (most)),
              .scratch = ls_arena_new_array (scratch, LsSig, most),
              .sum = ls_arena_new_array (scratch, LsSig, r->n_resources),
              .n_patterns = count_patterns (r),
              .n_words = MAX (n_comms + n_ranks, most),
              .c = { .rank = ls_arena_new_array (arena, uint32_t, n_ranks),
                     .comm = ls_arena_new_array (arena, uint32_t, n_comms),
                     .resource = ls_arena_new_array (arena, uint32_t, r->n_resources) } };
  x.word = ls_arena_new_array (scratch, LsSig, x.n_words);
  const uint32_t *const n_classes[] = { &x.c.n_comms, &x.c.n_ranks, &x.c.n_resources };
  x.c.n_ranks = number (r->rank, n_ranks, x.ids, x.c.rank);
  x.c.n_comms = number (r->comm, n_comms, x.ids, x.c.comm);
  x.c.n_resources = number (r->resource, r->n_resources, x.ids, x.c.resource);
  for (uint32_t part = OF_COMMS, n_left = 3; n_left > 0; part = (part + 1) % 3) {
    uint32_t before = *n_classes[part];
    refine_part[part](&x);
    n_left = *n_classes[part] == before ? n_left - 1 : part == OF_RANKS ? 3 : 2;
  }
  return x.c;
}
