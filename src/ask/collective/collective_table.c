#include "ask/collective/collective_table.h"

#include <lockstep/error.h>
#include <math.h>
#include <string.h>

/* --- a collective's messages, and who holds what after each round -------------------------------- */

static uint32_t
n_places (const LsCollectiveMessages *m)
{
  return m->n + m->n_switches;
}

/* The blocks of all places after so many rounds. */
static uint32_t *
after (const LsCollectiveMessages *m, uint32_t n_rounds)
{
  return m->held + (size_t) n_rounds * n_places (m) * m->n_blocks;
}

/* Whether a rank has something of a block at the start: the table of network/script.h. */
static bool
starts_with (const LsScript *s, uint32_t rank, uint32_t block)
{
  uint32_t part = s->part_of ? s->part_of[rank] : rank;
  switch (s->kind) {
  case LS_COLL_ALL_REDUCE:
  case LS_COLL_REDUCE_SCATTER:
  case LS_COLL_REDUCE:
    return true;
  case LS_COLL_ALL_GATHER:
  case LS_COLL_GATHER:
  case LS_COLL_BARRIER:
    return block / (s->n_blocks / s->n) == part;
  case LS_COLL_BROADCAST:
  case LS_COLL_SCATTER:
    return rank == s->root;
  case LS_COLL_ALL_TO_ALL:
    return block / s->n == rank;
  case LS_COLL_PERMUTE:
  case LS_COLL_COPY_PERMUTE:
    return block == rank;
  default:
    return rank == 0;
  }
}

static void
start (LsCollectiveMessages *m, const LsScript *s)
{
  for (uint32_t rank = 0; rank < m->n; rank++)
    for (uint32_t block = 0; block < m->n_blocks; block++)
      if (starts_with (s, rank, block))
        m->held[(size_t) rank * m->n_blocks + block] = 1u << rank;
}

/* What is sent is what the sender had when it entered the round. */
static void
deliver (LsCollectiveMessages *m, const LsCollectiveMessage *message)
{
  const uint32_t *from = after (m, message->round) + (size_t) message->from * m->n_blocks;
  uint32_t *to = after (m, message->round + 1) + (size_t) message->send.to * m->n_blocks;
  for (uint32_t i = 0; i < message->send.n; i++) {
    uint32_t block = ls_collective_messages_block (m, message, i);
    to[block] = message->send.reduces ? to[block] | from[block] : from[block];
  }
}

static void
run_round (LsCollectiveMessages *m, const LsScript *s, uint32_t round, LsSend *room)
{
  memcpy (after (m, round + 1), after (m, round), (size_t) n_places (m) * m->n_blocks * sizeof *m->held);
  for (uint32_t place = 0; place < n_places (m); place++) {
    uint32_t n = s->sends (s, place, round, room);
    for (uint32_t i = 0; i < n; i++) {
      LsCollectiveMessage message = { round, place, room[i] };
      g_array_append_val (m->messages, message);
      deliver (m, &message);
    }
  }
}

LsCollectiveMessages *
ls_collective_messages_new (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request,
                            GError **error)
{
  if (request->n > LS_COLLECTIVE_MESSAGES_MAX_RANKS) {
    g_set_error (error, LS_ERROR, LS_ERROR_LIMIT, "--messages is of %d %s at most; got %u",
                 LS_COLLECTIVE_MESSAGES_MAX_RANKS, ls_cluster_chip_word (&c->spec, 2), request->n);
    return NULL;
  }
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsScript *s = ls_coll_script (c, nccl, request, arena);
  LsCollectiveMessages *m = g_new0 (LsCollectiveMessages, 1);
  *m = (LsCollectiveMessages) {
    .n = s->n,
    .n_switches = s->n_switches,
    .n_blocks = s->n_blocks,
    .n_rounds = s->n_rounds,
    .block_bytes = s->block_bytes,
    .messages = g_array_new (FALSE, FALSE, sizeof (LsCollectiveMessage)),
  };
  m->held = g_new0 (uint32_t, (size_t) (m->n_rounds + 1) * n_places (m) * m->n_blocks);
  start (m, s);
  g_autofree LsSend *room = g_new (LsSend, MAX (1, s->max_sends));
  for (uint32_t round = 0; round < m->n_rounds; round++)
    run_round (m, s, round, room);
  return m;
}

void
ls_collective_messages_free (LsCollectiveMessages *m)
{
  if (!m)
    return;
  g_array_unref (m->messages);
  g_free (m->held);
  g_free (m);
}

uint32_t
ls_collective_messages_block (const LsCollectiveMessages *m, const LsCollectiveMessage *message, uint32_t i)
{
  return (uint32_t) ((message->send.first + (uint64_t) i * MAX (1, message->send.stride)) % m->n_blocks);
}

uint32_t
ls_collective_messages_held (const LsCollectiveMessages *m, uint32_t n_rounds, uint32_t place, uint32_t block)
{
  return after (m, n_rounds)[(size_t) place * m->n_blocks + block];
}

/* --- times of collectives as a table ------------------------------------------------------------- */

/* bytes/s */
static double
bandwidth (uint64_t bytes, double time_us)
{
  return time_us > 0 ? (double) bytes / time_us * 1e6 : 0;
}

double
ls_collective_time_us (const LsCollectiveRow *row)
{
  return (double) row->time / LS_US;
}

double
ls_collective_algbw (const LsCollectiveRow *row)
{
  return bandwidth (row->bytes, ls_collective_time_us (row));
}

double
ls_collective_busbw (const LsCollectiveRow *row)
{
  return ls_collective_algbw (row) * row->bus_factor;
}

double
ls_collective_measured_busbw (const LsCollectiveRow *row)
{
  return isnan (row->measured_us) ? NAN : bandwidth (row->bytes, row->measured_us) * row->bus_factor;
}
