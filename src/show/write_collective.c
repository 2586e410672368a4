/* show/write_collective.c — times of collectives as text, JSON and CSV. */
#include "show/answers.h"

#include <math.h>
#include <string.h>

#include <lockstep/units.h>

#include "job/assumptions.h"

#define MAX_COLUMNS   16 /* of blocks */
#define ELEMENT_BYTES 4  /* nccl-tests' default type, float */

static double
error_pct (const LsCollectiveRow *row)
{
  return 100 * (ls_collective_time_us (row) / row->measured_us - 1);
}

/* ---- text ---- */

/* What times rest on, in lines of comments. Newly allocated. */
static char *
rests_on (const LsCollectiveTable *t)
{
  g_autofree char *text = ls_assumptions_text (t->assumptions);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  return g_strjoinv ("\n#", lines);
}

/* A number in as many digits as fit, right-aligned behind a blank; as nccl-tests shortens them. */
static char *
fitting (int width, double value)
{
  static const char *const formats[] = { "%.2f", "%.1f", "%.0f", "%.1e" };
  char buffer[G_ASCII_DTOSTR_BUF_SIZE] = "";
  for (size_t i = 0; i < G_N_ELEMENTS (formats); i++)
    if ((int) strlen (g_ascii_formatd (buffer, sizeof buffer, formats[i], value)) <= width)
      break;
  return g_strdup_printf (" %*s", width, buffer);
}

/* Elements as nccl-tests counts them: what one rank gives to or takes from each other. */
static uint64_t
count_of (const LsCollectiveRow *row)
{
  static const char *const dealt[]
      = { "all-gather", "reduce-scatter", "all-to-all", "gather", "scatter", NULL };
  return row->bytes / ELEMENT_BYTES / (g_strv_contains (dealt, row->op) ? row->n_ranks : 1);
}

static const char *
redop_of (const LsCollectiveRow *row)
{
  static const char *const adding[] = { "all-reduce", "reduce", "reduce-scatter", NULL };
  return g_strv_contains (adding, row->op) ? "sum" : "none";
}

static int
root_of (const LsCollectiveRow *row)
{
  static const char *const rooted[] = { "broadcast", "reduce", "gather", "scatter", NULL };
  return g_strv_contains (rooted, row->op) ? 0 : -1;
}

/* By how much the slowest exceeds the fastest, percent. */
static double
disagreement_pct (const LsCollectiveRow *rows, guint n)
{
  LsTime low = rows[0].time, high = rows[0].time;
  for (guint i = 1; i < n; i++) {
    low = MIN (low, rows[i].time);
    high = MAX (high, rows[i].time);
  }
  return low > 0 ? 100 * ((double) high / (double) low - 1) : 0;
}

/* ---- messages ---- */

/* A rank, or a switch behind them. Newly allocated. */
static char *
place_name (const LsCollectiveMessages *m, uint32_t place)
{
  return place < m->n ? g_strdup_printf ("%u", place) : g_strdup_printf ("switch%u", place - m->n);
}

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

#include "show/collective_text.h"
#include "show/collective_keys.h"
