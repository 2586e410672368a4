#include "show/write_collective.h"

#include <math.h>

#include <lockstep/units.h>

#define MAX_COLUMNS 16

/* Ranks whose contributions are in a block: "0+2"; "-": of none. Newly allocated. */
static char *
contributors (uint32_t set)
{
  GString *out = g_string_new (NULL);
  for (uint32_t i = 0; set >> i; i++)
    if (set >> i & 1)
      g_string_append_printf (out, out->len > 0 ? "+%u" : "%u", i);
  if (out->len == 0)
    g_string_append_c (out, '-');
  return g_string_free (out, FALSE);
}

/* A rank, or a switch behind them. Newly allocated. */
static char *
place_name (const LsCollectiveMessages *m, uint32_t place)
{
  return place < m->n ? g_strdup_printf ("%u", place) : g_strdup_printf ("switch%u", place - m->n);
}

/* "0 4 5". Newly allocated. */
static char *
blocks_of (const LsCollectiveMessages *m, const LsCollectiveMessage *message)
{
  GString *out = g_string_new (NULL);
  for (uint32_t i = 0; i < message->send.n; i++)
    g_string_append_printf (out, i > 0 ? " %u" : "%u", ls_collective_messages_block (m, message, i));
  return g_string_free (out, FALSE);
}

/* "0+1 - 2": a block each; "-": nothing of it. Newly allocated. */
static char *
held_by (const LsCollectiveMessages *m, uint32_t n_rounds, uint32_t place)
{
  GString *out = g_string_new (NULL);
  for (uint32_t block = 0; block < m->n_blocks; block++) {
    g_autofree char *set = contributors (ls_collective_messages_held (m, n_rounds, place, block));
    g_string_append_printf (out, block > 0 ? " %s" : "%s", set);
  }
  return g_string_free (out, FALSE);
}

/* Ranks, and switches behind them. */
static uint32_t
n_places (const LsCollectiveMessages *m)
{
  return m->n + m->n_switches;
}

#include "show/collective_keys.h"

/* ---- text ---- */

/* Blocks from here on that hold the same, where there are too many for a column each; else 1. */
static uint32_t
count_alike (const LsCollectiveMessages *m, uint32_t n_rounds, uint32_t rank, uint32_t first)
{
  uint32_t n = 1, set = ls_collective_messages_held (m, n_rounds, rank, first);
  while (m->n_blocks > MAX_COLUMNS && first + n < m->n_blocks
         && ls_collective_messages_held (m, n_rounds, rank, first + n) == set)
    n++;
  return n;
}

static void
append_rank (GString *out, const LsCollectiveMessages *m, uint32_t n_rounds, uint32_t rank)
{
  g_string_append_printf (out, "%4u ", rank);
  for (uint32_t block = 0, n; block < m->n_blocks; block += n) {
    g_autofree char *set = contributors (ls_collective_messages_held (m, n_rounds, rank, block));
    n = count_alike (m, n_rounds, rank, block);
    g_string_append_c (out, ' ');
    if (n > 1)
      g_string_append_printf (out, "%ux", n);
    g_string_append (out, set);
  }
  g_string_append_c (out, '\n');
}

/* A block a column; "-": nothing of it, "21x0": of 21 blocks what is rank 0's. */
static void
append_held (GString *out, const LsCollectiveMessages *m, uint32_t n_rounds, const char *when)
{
  g_string_append_printf (out, "# %s: by rank, of each block whose part is in it\n", when);
  for (uint32_t rank = 0; rank < m->n; rank++)
    append_rank (out, m, n_rounds, rank);
}

static void
append_message (GString *out, const LsCollectiveMessages *m, const LsCollectiveMessage *message)
{
  g_autofree char *from = place_name (m, message->from), *to = place_name (m, message->send.to);
  g_autofree char *blocks = blocks_of (m, message);
  g_string_append_printf (out, "%7u  %4s  %4s  %s%s\n", message->round, from, to, blocks,
                          message->send.reduces ? ", added" : "");
}

void
ls_messages_append (GString *out, const LsCollectiveMessages *m)
{
  if (m->messages->len == 0) {
    g_string_append (out, "# no messages\n");
    return;
  }
  g_autofree char *bytes = ls_format_bytes ((uint64_t) m->block_bytes);
  g_string_append_printf (out, "# messages %u, rounds %u, blocks %u of %s\n", m->messages->len, m->n_rounds,
                          m->n_blocks, bytes);
  append_held (out, m, 0, "before");
  g_string_append (out, "# round  from    to  blocks\n");
  for (guint i = 0; i < m->messages->len; i++)
    append_message (out, m, &g_array_index (m->messages, LsCollectiveMessage, i));
  append_held (out, m, m->n_rounds, "after");
}
