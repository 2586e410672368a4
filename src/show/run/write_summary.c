/* show/run/write_summary.c — the result of a run for people. */
#include "show/run/write_run.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "show/quantity.h"
#include "show/text_table.h"

#define BAR_WIDTH     36
#define MAX_LINK_ROWS 5
#define WHAT_IFS      5 /* changes that a summary shows */

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

/* "; 46.7 B parameters, 12.9 B active"; "" where what is trained is not known. */
static char *
params_text (const LsReport *r)
{
  if (r->n_params == 0)
    return g_strdup ("");
  bool is_sparse = r->n_active_params != r->n_params;
  g_autofree char *n_active = ls_text_count ((double) r->n_active_params),
                  *n_adapters = ls_text_count ((double) r->n_adapter_params);
  g_autofree char *active = is_sparse ? g_strdup_printf (", %s active", n_active) : g_strdup ("");
  g_autofree char *frozen = r->n_adapter_params == 0
      ? g_strdup ("")
      : g_strdup_printf (", frozen, and %s of adapters", n_adapters);
  g_autofree char *all = ls_text_count ((double) r->n_params);
  return g_strdup_printf ("; %s parameters%s%s", all, active, frozen);
}

static char *
one_text (const LsReport *r)
{
  g_autofree char *tokens = ls_text_count (r->tokens_per_s_per_gpu);
  return g_strdup_printf ("%.1f TFLOP/s, %s tokens/s", r->flops_per_gpu / 1e12, tokens);
}

static const char *
part_color (LsPart part)
{
  switch (part) {
  case LS_PART_FORWARD:
  case LS_PART_BACKWARD:
  case LS_PART_OPTIMIZER:
    return GREEN;
  case LS_PART_RECOMPUTE:
    return BLUE;
  case LS_PART_BUBBLE:
  case LS_PART_SKEW:
    return RED;
  case LS_PART_HOST:
  case LS_PART_OTHER:
    return MAGENTA;
  default: /* slowdown and exposed communication */
    return YELLOW;
  }
}

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

/* Of links of both directions "a<>b". */
static char *
link_name (const LsLinkGroup *g, bool is_both)
{
  const char *arrow = strchr (g->name, '>');
  return is_both ? g_strdup_printf ("%.*s<%s", (int) (arrow - g->name), g->name, arrow) : g_strdup (g->name);
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

#include "show/summary_text.h"
