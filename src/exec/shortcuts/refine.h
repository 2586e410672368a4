/* exec/shortcuts/refine.h — which ranks, communicators and resources behave alike: colour
 * refinement (private to exec/).
 *
 * Problem. Find the coarsest partition in which things of one class see the same: by
 * induction over time they are then always in the same state.
 *
 *     rank           colours of its communicators by slot, of the neighbours that it sends to
 *                    or hears from, and S over its own loads (kernels on its HBM, its sends
 *                    and copies)
 *     communicator   multiset of (colour, slot) of its members, and S over its loads
 *     resource       T over all loads on it
 *
 * A resource that is ample (cluster/places.h) has no say in what loads it: S leaves it out. It has a
 * class all the same, by T, which tells what it carries.
 *
 * Loads are summed, as the solver does: S gives for each (pattern, colour of resource) the
 * sum of coefficients, T for each (pattern, colour of who loads). With equal S and T over
 * all of a class, k activities of one colour on n resources of another can be replaced by
 * one activity on one resource with the coefficient k S / n, which is a whole number as
 * k S and n T count the same coefficients (core/maxmin.h: bit for bit).
 *
 * Algorithm. Colours are numbered; each round hashes what a thing sees together with its
 * colour into 128 bits and numbers anew, until no class splits (Weisfeiler and Leman,
 * 1968; Cardon and Crochemore, Theoretical Computer Science 19, 1982). Sums of
 * coefficients are hashed as sums, coefficient times hash, so that the order is of no
 * consequence. That is a proof up to a collision: where coefficients are multiples of 2^z (z is
 * 20 for one whole flow, 25 for 32) each of two sums keeps 64 - z bits, so among 2^20 things
 * the chance that any two are taken for alike though they are not is about 2^(39 - 2 (64 - z)),
 * 2^-39 for z = 25. Nothing looks for one afterwards, but fold_uses() asserts that k S / n has no
 * remainder, and --fold check compares the runs.
 *
 * Worked example: two rings of four ranks on eight GPUs, one of them on a slower link: the
 * link differs at the start, its ring in round 1, the four ranks of that ring in the same
 * round, their HBMs too; round 2 splits nothing: 2 classes of 4 ranks.
 *
 * Cost. O((loads + ranks * slots) * rounds); a difference spreads at least one hop a round,
 * and there are at most as many rounds as classes. */
#ifndef LS_EXEC_SHORTCUTS_REFINE_H
#define LS_EXEC_SHORTCUTS_REFINE_H

#include "base/digest.h"
#include "plan/plan.h"

/* Returns how many differ; ret[i]: which of them sig[i] is, in the order of the first of each. */
uint32_t sigs_number (const LsSig *sig, uint32_t n, uint32_t *ret);

LsSig *sig_keep (LsArena *arena, LsSig sig);

/* The number of a thing in a table of LsSig > number, from 1 on: the next one where it is new; its key is
 * then kept in the arena. */
uint32_t sigs_id (GHashTable *ids, LsArena *arena, LsSig sig);

#define REFINE_SEEN_ONLY UINT32_MAX /* pattern of what the owner sees, and does not load */

typedef struct {
  uint64_t coef;     /* 0: loaded, but not seen                             */
  uint32_t resource; /* 0 .. n_resources - 1: those that are loaded         */
  uint32_t pattern;  /* which of those of the rank or communicator it is of */
} RefineLoad;

/* One of the things that make a communicator or load a resource, `n` or `coef` times. */
typedef struct {
  uint64_t n;
  uint32_t rank;
  uint32_t slot;
} RefineMember;

typedef struct {
  uint64_t coef;
  uint32_t resource;
  uint32_t owner; /* as an index into first */
  uint32_t pattern;
} RefineUse;

/* `rank`, `comm` and `resource`: what tells things apart to begin with. Each thing may stand for many
 * (fold_blocks.h), so that members and uses do not follow from bindings and loads. */
typedef struct Refine {
  uint32_t n_ranks, n_comms, n_resources;
  LsBinding *bindings;  /* [n_ranks]; NULL: ranks have neither communicators nor neighbours */
  const uint8_t *peers; /* [n_roles] bit i: of ranks of this role, peer[i] matters */
  LsSig *rank, *comm, *resource;
  bool *is_ample; /* [n_resources] */
  RefineLoad *loads;
  uint32_t *first; /* [n_comms + n_ranks + 1] loads of each communicator, then of each rank */
  RefineMember *members;
  uint32_t *first_member; /* [n_comms + 1] */
  RefineUse *uses;        /* [n_uses] NULL: they are what loads say, as each thing is itself */
  uint32_t n_uses;
  bool counts_once; /* then: each load once, whatever its coefficient */
} Refine;

/* The i-th, unless they count once. *owner: of the one before it, 0 of the first; then its own. */
static inline RefineUse
refine_use (const Refine *r, uint32_t i, uint32_t *owner)
{
  if (r->uses)
    return r->uses[i];
  while (r->first[*owner + 1] <= i)
    ++*owner;
  return (RefineUse) { r->loads[i].coef, r->loads[i].resource, *owner, r->loads[i].pattern };
}

/* Classes are numbered in the order of their first member; lists are in the arena. */
typedef struct {
  uint32_t *rank, *comm, *resource;
  uint32_t n_ranks, n_comms, n_resources; /* classes */
} Classes;

/* Loads, members and uses as they are found: loads and members of those that are begun one after the other,
 * communicators before ranks; uses of any, NULL as in Refine. */
typedef struct {
  GArray *loads, *first, *members, *first_member, *uses;
} RefineLists;

RefineLists refine_lists_new (bool has_uses, LsArena *arena);
void refine_begin (RefineLists *l, bool is_comm);          /* a communicator, or a rank */
RefineLoad *refine_add_loads (RefineLists *l, uint32_t n); /* to be set before the next are added */
void refine_add_load (RefineLists *l, uint32_t resource, uint64_t coef, uint32_t pattern);
/* owner: that loads the resource, counted with communicators first. */
void refine_add_use (RefineLists *l, uint32_t resource, uint64_t coef, uint32_t owner, uint32_t pattern);
/* All of them, for one whose numbers are set. */
void refine_take_lists (Refine *r, RefineLists *l);

Classes refine (const Refine *r, LsArena *arena);

#endif
