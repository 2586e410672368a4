/* tests/unit/network/prover.h — runs a script with sets of contributions instead of
 * numbers, and says what is wrong with it. */
#ifndef LS_TESTS_NETWORK_PROVER_H
#define LS_TESTS_NETWORK_PROVER_H

#include <string.h>

#include "network/script.h"

/* How often each member's contribution is in each block of each place. */
typedef struct {
  const LsScript *s;
  uint32_t n_places;
  uint8_t *have, *before; /* [place][block][member]; before: on entering the round */
  uint8_t *writes;        /* [place][block] of this round: 1 adds, 2 replaces      */
  uint32_t *received;     /* [place] of this round                                 */
  char *wrong;            /* NULL: nothing so far                                  */
} Proof;

static inline uint8_t *
at_block (const Proof *p, uint8_t *of, uint32_t place, uint32_t block)
{
  return of + ((size_t) place * p->s->n_blocks + block) * p->s->n;
}

static inline uint32_t
part_of (const LsScript *s, uint32_t member)
{
  return s->part_of ? s->part_of[member] : member;
}

static inline bool
is_of_part (const LsScript *s, uint32_t block, uint32_t member)
{
  return block / (s->n_blocks / s->n) == part_of (s, member);
}

/* What this member contributes to a block at the start. */
static inline bool
starts_with (const LsScript *s, uint32_t member, uint32_t block)
{
  switch (s->kind) {
  case LS_COLL_ALL_REDUCE:
  case LS_COLL_REDUCE_SCATTER:
  case LS_COLL_REDUCE:
    return true;
  case LS_COLL_ALL_GATHER:
  case LS_COLL_GATHER:
  case LS_COLL_BARRIER:
    return is_of_part (s, block, member);
  case LS_COLL_BROADCAST:
  case LS_COLL_SCATTER:
    return member == s->root;
  case LS_COLL_ALL_TO_ALL:
    return block / s->n == member;
  case LS_COLL_PERMUTE:
  case LS_COLL_COPY_PERMUTE:
    return block == member;
  default:
    return member == 0;
  }
}

/* Whether it must have that block, whole, at the end. */
static inline bool
ends_with (const LsScript *s, uint32_t member, uint32_t block)
{
  switch (s->kind) {
  case LS_COLL_REDUCE_SCATTER:
  case LS_COLL_SCATTER:
    return is_of_part (s, block, member);
  case LS_COLL_REDUCE:
  case LS_COLL_GATHER:
    return member == s->root;
  case LS_COLL_ALL_TO_ALL:
    return block % s->n == member;
  case LS_COLL_PERMUTE:
  case LS_COLL_COPY_PERMUTE:
    return (block + 1) % s->n == member;
  case LS_COLL_SEND_RECV:
    return member == 1;
  default:
    return true;
  }
}

static inline bool
is_whole (const Proof *p, uint32_t place, uint32_t block)
{
  const uint8_t *has = at_block (p, p->have, place, block);
  for (uint32_t i = 0; i < p->s->n; i++)
    if (has[i] != (starts_with (p->s, i, block) ? 1 : 0))
      return false;
  return true;
}

static inline bool
is_empty (const Proof *p, const uint8_t *block)
{
  for (uint32_t i = 0; i < p->s->n; i++)
    if (block[i])
      return false;
  return true;
}

#define WRONG(p, ...) ((p)->wrong = (p)->wrong ? (p)->wrong : g_strdup_printf (__VA_ARGS__))

static inline void
deliver (Proof *p, uint32_t from, const LsSend *send, uint32_t round)
{
  const LsScript *s = p->s;
  if (send->to >= p->n_places || send->to == from || send->n == 0 || send->n > s->n_blocks) {
    WRONG (p, "round %u: place %u sends %u blocks to %u", round, from, send->n, send->to);
    return;
  }
  p->received[send->to]++;
  for (uint32_t i = 0; i < send->n; i++) {
    uint32_t block = (send->first + i * MAX (1, send->stride)) % s->n_blocks;
    const uint8_t *data = at_block (p, p->before, from, block);
    uint8_t *to = at_block (p, p->have, send->to, block),
            *writes = &p->writes[(size_t) send->to * s->n_blocks + block];
    if (is_empty (p, data))
      WRONG (p, "round %u: place %u sends block %u, which it does not have", round, from, block);
    if (*writes == 2 || (*writes == 1 && !send->reduces))
      WRONG (p, "round %u: block %u of place %u is replaced and written again", round, block, send->to);
    *writes = send->reduces ? 1 : 2;
    for (uint32_t m = 0; m < s->n; m++)
      to[m] = send->reduces ? to[m] + data[m] : data[m];
  }
}

static inline void
run_round (Proof *p, uint32_t round)
{
  const LsScript *s = p->s;
  g_autofree LsSend *sends = g_new (LsSend, s->max_sends);
  memcpy (p->before, p->have, (size_t) p->n_places * s->n_blocks * s->n);
  memset (p->writes, 0, (size_t) p->n_places * s->n_blocks);
  memset (p->received, 0, p->n_places * sizeof *p->received);
  for (uint32_t place = 0; place < p->n_places; place++) {
    uint32_t n = s->sends (s, place, round, sends);
    if (n > s->max_sends)
      WRONG (p, "round %u: place %u has %u sends, %u at most", round, place, n, s->max_sends);
    for (uint32_t i = 0; i < n; i++)
      deliver (p, place, &sends[i], round);
  }
  for (uint32_t place = 0; place < p->n_places; place++)
    if (p->received[place] != s->n_receives (s, place, round))
      WRONG (p, "round %u: place %u receives %u messages and waits for %u", round, place, p->received[place],
             s->n_receives (s, place, round));
}

/* NULL: the script does what its kind says. Newly allocated. */
static inline char *
what_is_wrong (const LsScript *s)
{
  Proof p = { .s = s, .n_places = s->n + s->n_switches };
  size_t n_blocks = (size_t) p.n_places * s->n_blocks;
  p.have = g_malloc0 (n_blocks * s->n);
  p.before = g_malloc0 (n_blocks * s->n);
  p.writes = g_malloc0 (n_blocks);
  p.received = g_new0 (uint32_t, p.n_places);
  for (uint32_t m = 0; m < s->n; m++)
    for (uint32_t b = 0; b < s->n_blocks; b++)
      at_block (&p, p.have, m, b)[m] = starts_with (s, m, b);
  for (uint32_t r = 0; r < s->n_rounds && !p.wrong; r++)
    run_round (&p, r);
  for (uint32_t m = 0; m < s->n && !p.wrong; m++)
    for (uint32_t b = 0; b < s->n_blocks; b++)
      if (ends_with (s, m, b) && !is_whole (&p, m, b))
        WRONG (&p, "at the end member %u has not every contribution to block %u once", m, b);
  g_free (p.have);
  g_free (p.before);
  g_free (p.writes);
  g_free (p.received);
  return p.wrong;
}

#endif
