/* show/run/write_summary.c — the result of a run for people. */
#include "show/run/write_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "data/text/write_file.h"
#include "job/assumptions.h"
#include "show/text_table.h"
#include "show/run/timeline_boxes.h"
#include "show/run_keys.h"

#define BAR_WIDTH     36
#define MAX_LINK_ROWS 5

#define BOLD    "1"
#define DIM     "2"
#define RED     "31"
#define GREEN   "32"
#define YELLOW  "33"
#define BLUE    "34"
#define MAGENTA "35"

/* A bar of `fraction` of the full width, to an eighth of a character, at the end of a line. */
static void
append_bar (GString *out, const LsSummaryText *text, const char *color, double fraction)
{
  static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
  int n = (int) lround (CLAMP (fraction, 0, 1) * BAR_WIDTH * 8);
  g_autoptr (GString) bar = g_string_new (NULL);
  for (int i = 0; i < n / 8; i++)
    g_string_append (bar, text->ascii ? "#" : "█");
  g_string_append (bar, text->ascii ? (n % 8 >= 4 ? "#" : "") : eighths[n % 8]);
  if (bar->len > 0) {
    g_string_append (out, "  ");
    ls_text_paint (out, text->color, color);
    g_string_append (out, bar->str);
    ls_text_paint (out, text->color, "0");
  }
  ls_text_end_line (out);
}

/* NULL: yellow, slowdown and exposed communication. */
static const char *const part_colors[LS_N_PARTS] = {
  [LS_PART_FORWARD] = GREEN,  [LS_PART_BACKWARD] = GREEN, [LS_PART_OPTIMIZER] = GREEN,
  [LS_PART_RECOMPUTE] = BLUE, [LS_PART_BUBBLE] = RED,     [LS_PART_SKEW] = RED,
  [LS_PART_HOST] = MAGENTA,   [LS_PART_OTHER] = MAGENTA,
};

/* Longest first; equal ones in the order of the keys. */
static void
sort_parts (const LsReport *r, LsPart order[LS_N_PARTS])
{
  for (int i = 0; i < LS_N_PARTS; i++) {
    int at = i;
    for (; at > 0 && r->breakdown_s[i] > r->breakdown_s[order[at - 1]]; at--)
      order[at] = order[at - 1];
    order[at] = (LsPart) i;
  }
}

/* Whether b is a the other way: "leaf0>node1/nic2" and "node1/nic2>leaf0", and within a node
 * "node1/gpu0>nvswitch" and "node1/nvswitch>gpu0". */
static bool
is_reverse (const char *a, const char *b)
{
  const char *arrow = strchr (a, '>'), *slash = strchr (a, '/');
  if (!arrow)
    return false;
  g_autofree char *swapped = g_strdup_printf ("%s>%.*s", arrow + 1, (int) (arrow - a), a);
  if (strcmp (swapped, b) == 0)
    return true;
  if (!slash || slash > arrow)
    return false;
  g_autofree char *inside = g_strdup_printf ("%.*s/%s>%.*s", (int) (slash - a), a, arrow + 1,
                                             (int) (arrow - slash - 1), slash + 1);
  return strcmp (inside, b) == 0;
}

/* Of a row: the group that carries as much the other way; -1: none. */
static int
find_reverse (const LsReport *r, guint i)
{
  const LsLinkGroup *g = &r->link_groups[i];
  for (guint k = 0; k < r->n_link_groups; k++) {
    const LsLinkGroup *other = &r->link_groups[k];
    if (k != i && other->n == g->n && other->bytes == g->bytes && other->max_utilisation == g->max_utilisation
        && is_reverse (g->name, other->name))
      return (int) k;
  }
  return -1;
}

/* What depends on the network: waiting, and what sharing costs; only where there is any. */
static bool
is_of_network (const LsReport *r, LsPart part)
{
  if (part < LS_PART_SLOWDOWN || part > LS_PART_SKEW)
    return false;
  for (guint i = 0; i < r->n_networks; i++)
    if (!r->networks[i].refused && r->networks[i].breakdown_s[part] > 0)
      return true;
  return false;
}

/* ---- sections: the critical path, how a run follows the hardware, how steps vary, seeds of hashed routing,
 * single faults ---- */

/* Rows of a text. */
#define MAX_OPS          20
#define MAX_LINKS        10
#define MAX_RANKS        10
#define N_SHOWN          20 /* faults */
#define ELASTICITY_WIDTH 30
#define LABEL_WIDTH      28

/* Most effect first; of equals that which the table has first. */
static void
sort (const LsSensitivityTable *t, guint *order)
{
  for (guint i = 0; i < t->n; i++) {
    guint at = i;
    for (; at > 0 && fabs (t->rows[i].elasticity) > fabs (t->rows[order[at - 1]].elasticity); at--)
      order[at] = order[at - 1];
    order[at] = i;
  }
}

/* What a table of links is of. */
typedef struct {
  const LsTimeline *timeline;
  const LsCluster *cluster;
} Table;

/* Of ranks that were only taken for alike nothing is known. */
static bool
is_expanded (const LsTimeline *t)
{
  uint64_t n_rows = 0;
  for (uint32_t rank = 0; rank < t->n_ranks; rank++)
    n_rows += ls_timeline_spans (t, ls_timeline_representative (t, rank))->n;
  return !t->is_sampled && n_rows <= LS_SPANS_MAX_ROWS;
}

#include "show/summary_text.h"

/* ---- tables of a run as CSV: what its links carried, the spans of its ranks ---- */

gboolean
ls_links_write (const LsTimeline *timeline, const LsCluster *cluster, const char *path, GError **error)
{
  g_autoptr (LsCluster) whole = ls_cluster_spell_out (cluster); /* with all names */
  Table table = { timeline, whole };
  return ls_write_file (path, write_links, &table, error);
}

gboolean
ls_spans_write (const LsTimeline *t, const char *path, GError **error)
{
  return ls_write_file (path, write_spans, (void *) t, error);
}

char *
ls_spans_to_csv (const LsTimeline *t)
{
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream (&text, &size);
  if (!out)
    return NULL;
  write_spans (out, (void *) t, NULL);
  bool ok = fclose (out) == 0;
  char *csv = ok ? g_strndup (text, size) : NULL;
  free (text);
  return csv;
}
