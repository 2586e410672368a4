#include "show/run/write_run.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "show/quantity.h"
#include "show/text_table.h"

#define BAR_WIDTH     36
#define MAX_LINK_ROWS 5
#define WHAT_IFS      5 /* changes that a summary shows */
#define GIB           1073741824.0

#define BOLD    "1"
#define DIM     "2"
#define RED     "31"
#define GREEN   "32"
#define YELLOW  "33"
#define BLUE    "34"
#define MAGENTA "35"

typedef struct {
  GString *out;
  const LsSummaryText *text;
} Page;

static void G_GNUC_PRINTF (3, 4) paint (Page *p, const char *color, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  if (p->text->color)
    g_string_append_printf (p->out, "\033[%sm", color);
  g_string_append_vprintf (p->out, format, args);
  if (p->text->color)
    g_string_append (p->out, "\033[0m");
  va_end (args);
}

/* A bar of `fraction` of the full width, to an eighth of a character. */
static void
add_bar (Page *p, const char *color, double fraction)
{
  static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
  int n = (int) lround (CLAMP (fraction, 0, 1) * BAR_WIDTH * 8);
  g_autoptr (GString) bar = g_string_new (NULL);
  for (int i = 0; i < n / 8; i++)
    g_string_append (bar, p->text->ascii ? "#" : "█");
  g_string_append (bar, p->text->ascii ? (n % 8 >= 4 ? "#" : "") : eighths[n % 8]);
  if (bar->len > 0) {
    g_string_append (p->out, "  ");
    paint (p, color, "%s", bar->str);
  }
}

static void
add_figure (Page *p, const char *label, const char *value)
{
  paint (p, DIM, "  %-9s", label);
  g_string_append (p->out, "  ");
  paint (p, BOLD, "%-11s", value);
}

static void
end_line (Page *p)
{
  while (p->out->len > 0 && p->out->str[p->out->len - 1] == ' ')
    g_string_truncate (p->out, p->out->len - 1);
  g_string_append_c (p->out, '\n');
}

static void
add_speed (Page *p, const LsReport *r)
{
  g_autofree char *tokens = ls_text_count (r->tokens_per_s);
  g_autofree char *mfu = g_strdup_printf ("%.1f %%", 100 * r->mfu);
  g_autofree char *hfu = g_strdup_printf ("%.1f %%", 100 * r->hfu);
  add_figure (p, "tokens/s", tokens);
  add_figure (p, "MFU", mfu);
  add_figure (p, "HFU", hfu);
}

/* What logs and papers print of one GPU, and MFU as they count it. Under the columns of the line
 * above. */
static void
add_speed_of_one (Page *p, const LsReport *r)
{
  const int width = 11 + 2 + 9 + 2 + 11; /* of a value, and of the next label and value */
  g_autofree char *label = g_strdup_printf ("each %s", r->chip);
  g_autofree char *tokens = ls_text_count (r->tokens_per_s_per_gpu);
  g_autofree char *speeds = g_strdup_printf ("%.1f TFLOP/s, %s tokens/s", r->flops_per_gpu / 1e12, tokens);
  g_autofree char *all = g_strdup_printf ("%.1f %%", 100 * r->mfu_all_pairs);
  paint (p, DIM, "  %-9s", label);
  g_string_append (p->out, "  ");
  paint (p, BOLD, "%-*s", width, speeds);
  add_figure (p, "all pairs", all);
  end_line (p);
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

static void
add_headline (Page *p, const LsReport *r)
{
  if (p->text->title) {
    g_autofree char *params = params_text (r);
    paint (p, BOLD, "%s", p->text->title);
    paint (p, DIM, "%s", params);
    end_line (p);
  }
  if (p->text->subtitle) {
    paint (p, DIM, "%s", p->text->subtitle);
    end_line (p);
  }
  if (p->text->title || p->text->subtitle)
    end_line (p);

  g_autofree char *step = ls_text_time (r->step_time_s);
  add_figure (p, "step time", step);
  if (!isnan (r->mfu))
    add_speed (p, r);
  end_line (p);
  if (!isnan (r->mfu))
    add_speed_of_one (p, r);
}

static void
add_interval (Page *p, const LsReport *r)
{
  const LsInterval *i = p->text->interval;
  if (!i)
    return;
  g_autofree char *label = ls_interval_label (i);
  paint (p, DIM, "  %-9s  ", "interval");
  if (i->none) {
    paint (p, DIM, "%s", label);
  } else {
    g_autofree char *low = ls_text_time (i->low * r->step_time_s),
                    *high = ls_text_time (i->high * r->step_time_s);
    paint (p, BOLD, "%s to %s", low, high);
    paint (p, DIM, "  %s", label);
  }
  end_line (p);
}

static void
add_measured (Page *p, const LsReport *r)
{
  const LsMeasured *m = p->text->measured;
  if (!m || m->step_s <= 0)
    return;
  g_autofree char *measured = ls_text_time (m->step_s);
  g_autofree char *difference = g_strdup_printf ("%+.1f %%", 100 * (r->step_time_s / m->step_s - 1));
  add_figure (p, m->is_published ? "published" : "measured", measured);
  add_figure (p, "error", difference);
  if (m->source)
    paint (p, DIM, "  %s", m->source);
  end_line (p);
  for (guint i = 0; i < p->text->findings->len; i++) {
    paint (p, DIM, "  %s", (const char *) g_ptr_array_index (p->text->findings, i));
    end_line (p);
  }
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

/* Decimals of a millisecond that leave four digits or more of the whole. */
static void
add_time_row (Page *p, const char *label, double seconds, double frac)
{
  g_autofree char *time = ls_text_time (seconds);
  g_string_append_printf (p->out, "  %-14s %15s  %5.1f %%", label, time, 100 * frac);
}

static void
add_breakdown (Page *p, const LsReport *r)
{
  LsPart order[LS_N_PARTS];
  sort_parts (r, order);
  ls_text_heading (p->out, p->text->color, "Where the time went", "mean over %u rank%s", r->n_ranks,
                   r->n_ranks == 1 ? "" : "s");
  for (int i = 0; i < LS_N_PARTS && r->breakdown_s[order[i]] > 0; i++) {
    double s = r->breakdown_s[order[i]];
    g_autofree char *label = g_strdelimit (g_strdup (ls_part_name (order[i])), "_", ' ');
    add_time_row (p, label, s, s / r->step_time_s);
    add_bar (p, part_color (order[i]), s / r->breakdown_s[order[0]]);
    end_line (p);
  }
  add_time_row (p, "step", r->step_time_s, 1);
  end_line (p);
}

static void
add_memory_row (Page *p, const char *label, uint64_t bytes, uint64_t capacity)
{
  g_string_append_printf (p->out, "  %-14s %11.2f GiB  %5.1f %%", label, (double) bytes / GIB,
                          capacity > 0 ? 100 * (double) bytes / (double) capacity : 0);
}

static void
add_verdict (Page *p, const LsReport *r)
{
  bool is_left = ls_headroom_is_left (&r->headroom, r->needed_bytes, r->capacity_bytes);
  g_autofree char *verdict = ls_headroom_verdict (&r->headroom, r->needed_bytes, r->capacity_bytes);
  g_string_append (p->out, "  ");
  paint (p, !r->fits ? RED : is_left ? GREEN : YELLOW, "%s", verdict);
}

/* What PyTorch's allocator does at the limit; nothing where it does not meet it. */
static void
add_retries (Page *p, const LsRetriesReport *x)
{
  if (x->n == 0 || x->is_out_of_memory)
    return;
  g_autofree char *lost = ls_text_time (x->lost_s);
  paint (p, YELLOW, "  allocator retries %" G_GUINT64_FORMAT " a step", x->n);
  g_string_append_printf (p->out, ": %.1f GiB given back and %.1f GiB taken anew; %s",
                          (double) x->freed_bytes / GIB, (double) x->taken_bytes / GIB,
                          x->is_refused ? "not charged" : lost);
  end_line (p);
}

/* Parameters, gradients and optimizer, which papers count, in both units; and what a forward keeps at most,
 * at whatever time of the step. */
static void
add_states (Page *p, const LsReport *r)
{
  const uint64_t *own = r->by_category;
  double states = (double) (own[LS_MEM_PARAMETERS] + own[LS_MEM_GRADIENTS] + own[LS_MEM_OPTIMIZER]);
  g_string_append_printf (p->out, "  model states %13.2f GiB, %.2f GB; activations at most %.2f GiB",
                          states / GIB, states / 1e9, (double) own[LS_MEM_ACTIVATIONS] / GIB);
  end_line (p);
}

static void
add_memory (Page *p, const LsReport *r)
{
  ls_text_heading (p->out, p->text->color, "Memory at its peak", "rank %u, the fullest; of %.2f GiB",
                   r->peak_rank, (double) r->capacity_bytes / GIB);
  for (int c = 0; c < LS_N_MEM; c++) {
    if (r->at_peak[c] == 0)
      continue;
    g_autofree char *label = g_strdelimit (g_strdup (ls_mem_category_name (c)), "_", ' ');
    add_memory_row (p, label, r->at_peak[c], r->capacity_bytes);
    add_bar (p, BLUE, (double) r->at_peak[c] / (double) MAX (r->capacity_bytes, r->peak_bytes));
    end_line (p);
  }
  if (r->needed_bytes != r->peak_bytes) { /* segments of an allocator */
    add_memory_row (p, "alive at once", r->peak_bytes, r->capacity_bytes);
    end_line (p);
  }
  add_memory_row (p, "peak", r->needed_bytes, r->capacity_bytes);
  add_verdict (p, r);
  end_line (p);
  if (!isnan (r->mfu))
    add_states (p, r);
  ls_headroom_print (&r->headroom, 2, p->out);
  add_retries (p, &r->retries);
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

static void
add_link_row (Page *p, const LsLinkGroup *g, bool is_both)
{
  const char *arrow = strchr (g->name, '>');
  g_autofree char *name
      = is_both ? g_strdup_printf ("%.*s<%s", (int) (arrow - g->name), g->name, arrow) : g_strdup (g->name);
  g_autofree char *most = g_strdup_printf ("%.1f", 100 * g->max_utilisation),
                  *mean = g_strdup_printf ("%.1f", 100 * g->mean_utilisation);
  g_autofree char *bytes = g_strdup_printf ("%.2f GB", g->bytes / g->n / 1e9);
  bool is_alike = strcmp (most, mean) == 0;
  g_string_append_printf (p->out, "  %-36s %6s %%", name, most);
  if (is_alike)
    g_string_append_printf (p->out, "  %12s %12s", "", bytes);
  else
    g_string_append_printf (p->out, "  mean %5s %% %12s", mean, bytes);
  if (g->n > 1 || is_both)
    paint (p, DIM, is_alike ? "  (%u alike)" : "  (%u links)", is_both ? 2 * g->n : g->n);
  end_line (p);
}

/* Symmetric links share a row, those of both directions too. */
static void
add_links (Page *p, const LsReport *r)
{
  if (r->n_link_groups == 0)
    return;
  ls_text_heading (p->out, p->text->color, "Busiest links",
                   "share of capacity and payload of a step: the most of one link, mean of all");
  for (guint i = 0, row = 0; i < r->n_link_groups && row < MAX_LINK_ROWS; i++) {
    int reverse = find_reverse (r, i);
    if (reverse >= 0 && reverse < (int) i)
      continue;
    add_link_row (p, &r->link_groups[i], reverse >= 0);
    row++;
  }
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

static void
add_network (LsTextTable *t, const LsReport *r, const LsNetworkTime *n)
{
  ls_text_table_add (t, "%s", n->name);
  ls_text_table_take (t, n->refused ? g_strdup ("refused") : ls_text_time (n->step_time_s));
  ls_text_table_take (
      t,
      n->refused ? NULL
                 : g_strdup_printf ("%+.2f %%", 100 * (n->step_time_s / r->networks[0].step_time_s - 1)));
  for (int part = 0; part < LS_N_PARTS; part++)
    if (is_of_network (r, (LsPart) part))
      ls_text_table_take (t, n->refused ? NULL : ls_text_time (n->breakdown_s[part]));
  if (n->refused)
    ls_text_table_note (t, n->refused);
}

/* Networks beside each other: how far they disagree, and about what. */
static void
add_networks (Page *p, const LsReport *r)
{
  char align[LS_TEXT_TABLE_MAX_COLUMNS + 1] = "lrr";
  if (r->n_networks == 0)
    return;
  ls_text_heading (p->out, p->text->color, "Networks", "the same step, against %s", r->networks[0].name);
  for (int part = 0; part < LS_N_PARTS; part++)
    if (is_of_network (r, (LsPart) part))
      g_strlcat (align, "r", sizeof align);
  LsTextTable t;
  ls_text_table_init (&t, align);
  ls_text_table_take (&t, NULL);
  ls_text_table_add (&t, "step");
  ls_text_table_take (&t, NULL);
  for (int part = 0; part < LS_N_PARTS; part++)
    if (is_of_network (r, (LsPart) part))
      ls_text_table_take (&t, g_strdelimit (g_strdup (ls_part_name ((LsPart) part)), "_", ' '));
  for (guint i = 0; i < r->n_networks; i++)
    add_network (&t, r, &r->networks[i]);
  ls_text_table_print (&t, 2, p->out);
}

static void
add_footer (Page *p, const LsReport *r)
{
  if (r->share_measured + r->share_fitted + r->share_roofline > 0)
    ls_text_heading (p->out, p->text->color, "Kernel times",
                     "%.1f %% measured, %.1f %% fitted, %.1f %% roofline; %.1f %% extrapolated",
                     100 * r->share_measured, 100 * r->share_fitted, 100 * r->share_roofline,
                     100 * r->share_extrapolated);
  else
    ls_text_heading (p->out, p->text->color, "Kernel times", "as recorded in the trace");

  g_autofree char *ops = ls_text_grouped ((double) r->n_op_instances, 0);
  paint (p, BOLD, "Simulated     ");
  g_autofree char *fold = r->n_classes < r->n_ranks
      ? g_strdup_printf (" (%.3g to 1)", (double) r->n_ranks / r->n_classes)
      : g_strdup ("");
  g_autofree char *pieces = r->n_coarse > 0
      ? g_strdup_printf (", %.0f %% of segments in one piece, the others opened",
                         100.0 * (double) r->n_coarse / (double) r->n_segments)
      : g_strdup ("");
  paint (p, DIM, "%u steps of %s ops, %u rank%s in %u class%s%s%s; digest %016" G_GINT64_MODIFIER "x",
         r->n_steps, ops, r->n_ranks, r->n_ranks == 1 ? "" : "s", r->n_classes, r->n_classes == 1 ? "" : "es",
         fold, pieces, (guint64) r->digest);
  end_line (p);
}

char *
ls_summary_format (const LsReport *r, const LsSummaryText *text)
{
  Page page = { .out = g_string_new (NULL), .text = text };
  add_headline (&page, r);
  add_interval (&page, r);
  add_measured (&page, r);
  add_breakdown (&page, r);
  add_memory (&page, r);
  add_links (&page, r);
  add_networks (&page, r);
  if (text->critical_path)
    ls_critical_to_text (text->critical_path, text->color, page.out);
  if (text->sensitivity)
    ls_sensitivity_to_text (text->sensitivity, text->color, text->ascii, page.out);
  ls_faults_to_text (text->faults, text->color, page.out);
  ls_ecmp_to_text (text->ecmp, text->color, page.out);
  if (text->what_if)
    ls_what_if_print_gains (text->what_if, WHAT_IFS, page.out);
  if (text->step_spread)
    ls_spread_to_text (text->step_spread, text->color, page.out);
  add_footer (&page, r);
  return g_string_free (page.out, FALSE);
}
