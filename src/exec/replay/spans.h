/* exec/replay/spans.h — references to spans, spans as recorded, and the digest of a step (private). */
#ifndef LS_EXEC_REPLAY_SPANS_H
#define LS_EXEC_REPLAY_SPANS_H

#include "base/digest.h"
#include "exec/replay/timeline.h"

typedef struct Run Run;
typedef struct Rank Rank;
typedef struct Frame Frame;
typedef struct XJob XJob;

/* A span is referred to by its index among the spans of its step on its rank, with the
 * low bits of that step on top; LS_SPAN_NONE: no span. Spans are kept two steps deep:
 * what an op of step s waited for is a span of s or s - 1, or not told. */
typedef uint32_t SpanRef;
#define SPAN_STEP_BITS   3
#define SPAN_INDEX_BITS  (32 - SPAN_STEP_BITS)
#define SPAN_PARITY(ref) ((ref) >> SPAN_INDEX_BITS & 1)
#define SPAN_INDEX(ref)  ((ref) & ((1u << SPAN_INDEX_BITS) - 1))

static inline SpanRef
span_ref (uint32_t step, uint32_t index)
{
  return step << SPAN_INDEX_BITS | index;
}

static inline bool
span_is_of (SpanRef ref, uint32_t step)
{
  return ref != LS_SPAN_NONE && (ref ^ span_ref (step, 0)) >> SPAN_INDEX_BITS == 0;
}

/* The same, as far as step s may refer to it. */
static inline SpanRef
span_known (SpanRef ref, uint32_t s)
{
  return span_is_of (ref, s) || span_is_of (ref, s - 1) ? ref : LS_SPAN_NONE;
}

/* matched: or alone, as in LsSpan. */
SpanRef span_add (Run *x, Rank *r, const Frame *f, uint16_t op, LsTime start, LsTime matched, LsTime end,
                  LsCause kind, SpanRef cause);
LsSpan *span_at (Rank *r, SpanRef span); /* NULL: none, or not kept */
/* n spans of ops that are over, and so read again only if the step is reported. True: it never is; they are
 * counted from *ret_first on, and need not be added. False: nothing has changed. */
bool spans_skip (Run *x, Rank *r, uint32_t step, uint32_t n, uint32_t *ret_first);

/* Something of this step was over at this time, of weight digest_of() or, of several alike, their
 * sum: the digest is linear in it, and depends on times from the start of the step only. */
static inline uint64_t
digest_of (uint64_t what)
{
  return ls_sig_mix (what + LS_SIG_SALT_A);
}

/* The weight of one rank for what it does: a copy, or what it sends to a rank at that distance. */
#define DIGEST_COPY            UINT64_MAX
#define DIGEST_RANKS_PER_BLOCK 4096
static inline uint64_t
digest_word_of_rank (uint32_t rank_in_block)
{
  return ls_sig_mix (LS_SIG_SALT_B + rank_in_block * LS_SIG_SALT_A);
}

static inline uint64_t
digest_word_of_block (uint64_t what, uint32_t block)
{
  return ls_sig_mix (digest_of (what) + block * LS_SIG_SALT_A);
}

static inline uint64_t
digest_weight (uint64_t what, uint32_t rank)
{
  return digest_word_of_rank (rank % DIGEST_RANKS_PER_BLOCK)
      * digest_word_of_block (what, rank / DIGEST_RANKS_PER_BLOCK);
}

void digest_add (XJob *job, uint32_t step, LsTime at, uint64_t weight);
uint64_t digest_of_step (const XJob *job, uint32_t step); /* over last on all ranks: its duration too */

#endif
