#include "show/write_collective.h"

#include <math.h>
#include <string.h>

#define ELEMENT_BYTES 4 /* nccl-tests' default type, float */

double
ls_collective_error_pct (const LsCollectiveRow *row)
{
  return 100 * (ls_collective_time_us (row) / row->measured_us - 1);
}

/* ---- CSV ---- */

/* A name as a cell (RFC 4180). */
static void
append_cell (GString *out, const char *text)
{
  if (!text[strcspn (text, ",\"\r\n")]) {
    g_string_append (out, text);
    return;
  }
  g_auto (GStrv) parts = g_strsplit (text, "\"", -1);
  g_autofree char *doubled = g_strjoinv ("\"\"", parts);
  g_string_append_printf (out, "\"%s\"", doubled);
}

/* "," and the value so that it reads back as the same double. */
static void
append_double (GString *out, double value)
{
  g_string_append_c (out, ',');
  ls_csv_append_number (out, value);
}

static void
append_csv_row (GString *out, const LsCollectiveRow *row, gboolean is_comparison)
{
  append_cell (out, row->cluster);
  g_string_append_c (out, ',');
  append_cell (out, row->op);
  g_string_append_printf (out, ",%u,%u,%" G_GUINT64_FORMAT ",%s,%s,%s", row->n_ranks, row->n_nodes,
                          row->bytes, row->algorithm, row->protocol, row->network);
  append_double (out, ls_collective_time_us (row));
  append_double (out, ls_collective_algbw (row) / 1e9);
  append_double (out, ls_collective_busbw (row) / 1e9);
  if (is_comparison) {
    append_double (out, row->measured_us);
    append_double (out, ls_collective_error_pct (row));
  }
  g_string_append_c (out, '\n');
}

char *
ls_collective_to_csv (const LsCollectiveTable *t)
{
  GString *out = g_string_new (
      "cluster,op,gpus,nodes,size_bytes,algorithm,protocol,network,time_us,algbw_GBps,busbw_GBps");
  g_string_append (out, t->is_comparison ? ",measured_us,error_pct\n" : "\n");
  for (guint i = 0; i < t->n_rows; i++)
    append_csv_row (out, &t->rows[i], t->is_comparison);
  return g_string_free (out, FALSE);
}

/* ---- text: sizes ---- */

/* A number in as many digits as fit, right-aligned; as nccl-tests shortens them. */
static void
append_fitting (GString *out, int width, double value)
{
  static const char *const formats[] = { "%.2f", "%.1f", "%.0f", "%.1e" };
  char buffer[G_ASCII_DTOSTR_BUF_SIZE] = "";
  for (size_t i = 0; i < G_N_ELEMENTS (formats); i++)
    if ((int) strlen (g_ascii_formatd (buffer, sizeof buffer, formats[i], value)) <= width)
      break;
  g_string_append_printf (out, "  %*s", width, buffer);
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

/* How lines begin: those of a table over GPUs with their number. */
static void
append_heading (GString *out, const LsCollectiveTable *t)
{
  if (t->is_scaling)
    g_string_append_printf (out, "#%6s          size", t->chips);
  else
    g_string_append (out, "#       size");
  g_string_append (out, "         count      type   redop    root");
}

static void
append_units (GString *out, const LsCollectiveTable *t)
{
  g_string_append (out, t->is_scaling ? "#                 (B)" : "#        (B)");
  g_string_append (out, "    (elements)                          ");
}

static void
append_call (GString *out, const LsCollectiveTable *t, const LsCollectiveRow *row)
{
  if (t->is_scaling)
    g_string_append_printf (out, "%7u  ", row->n_ranks);
  g_string_append_printf (out, "%12" G_GUINT64_FORMAT "  %12" G_GUINT64_FORMAT "  %8s  %6s  %6d", row->bytes,
                          count_of (row), "float", redop_of (row), root_of (row));
}

static const char *
or_dash (const char *text)
{
  return *text ? text : "-";
}

static int
algorithm_width (const LsCollectiveTable *t)
{
  size_t width = strlen ("algorithm");
  for (guint i = 0; i < t->n_rows; i++)
    width = MAX (width, strlen (t->rows[i].algorithm));
  return (int) width;
}

static void
append_names (GString *out, const LsCollectiveTable *t, const char *algorithm, const char *protocol)
{
  g_string_append_printf (out, "  %-*s  %s\n", algorithm_width (t), or_dash (algorithm), or_dash (protocol));
}

static void
append_size (GString *out, const LsCollectiveTable *t, const LsCollectiveRow *row)
{
  append_call (out, t, row);
  append_fitting (out, 9, ls_collective_time_us (row));
  append_fitting (out, 7, ls_collective_algbw (row) / 1e9);
  append_fitting (out, 7, ls_collective_busbw (row) / 1e9);
  append_names (out, t, row->algorithm, row->protocol);
}

static void
append_table (GString *out, const LsCollectiveTable *t)
{
  append_heading (out, t);
  g_string_append (out, "       time    algbw    busbw");
  append_names (out, t, "algorithm", "protocol");
  append_units (out, t);
  g_string_append (out, "       (us)   (GB/s)   (GB/s)\n");
  double sum = 0;
  for (guint i = 0; i < t->n_rows; i++) {
    append_size (out, t, &t->rows[i]);
    sum += ls_collective_busbw (&t->rows[i]) / 1e9;
  }
  if (t->is_scaling)
    return; /* a mean over numbers of GPUs says nothing */
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append_printf (out, "# Avg bus bandwidth    : %s\n",
                          g_ascii_formatd (buffer, sizeof buffer, "%g", sum / MAX (t->n_rows, 1)));
}

/* ---- text: fidelities side by side ---- */

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

static void
append_networks_title (GString *out, const LsCollectiveTable *t)
{
  append_heading (out, t);
  for (guint k = 0; k < t->n_networks; k++)
    g_string_append_printf (out, "  %18s", t->rows[k].network);
  g_string_append (out, "  disagree");
  append_names (out, t, "algorithm", "protocol");
  append_units (out, t);
  for (guint k = 0; k < t->n_networks; k++)
    g_string_append_printf (out, "  %9s  %7s", "(us)", "(GB/s)");
  g_string_append (out, "       (%)\n");
}

static void
append_networks (GString *out, const LsCollectiveTable *t)
{
  append_networks_title (out, t);
  double worst = 0;
  for (guint i = 0; i + t->n_networks <= t->n_rows; i += t->n_networks) {
    const LsCollectiveRow *rows = &t->rows[i];
    double disagreement = disagreement_pct (rows, t->n_networks);
    worst = fmax (worst, disagreement);
    append_call (out, t, rows);
    for (guint k = 0; k < t->n_networks; k++) {
      append_fitting (out, 9, ls_collective_time_us (&rows[k]));
      append_fitting (out, 7, ls_collective_busbw (&rows[k]) / 1e9);
    }
    append_fitting (out, 8, disagreement);
    append_names (out, t, rows->algorithm, rows->protocol);
  }
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append_printf (out, "# Largest disagreement : %s %%\n",
                          g_ascii_formatd (buffer, sizeof buffer, "%.2f", worst));
}

/* ---- text: errors ---- */

static void
append_percent (GString *out, int width, const char *format, double value)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE] = "-";
  if (!isnan (value))
    g_ascii_formatd (buffer, sizeof buffer, format, value);
  g_string_append_printf (out, "%*s", width, buffer);
}

static void
append_family (GString *out, int width, const LsCollectiveFamily *f)
{
  g_string_append_printf (out, "%-*s%6u", width, f->name, f->all.n);
  append_percent (out, 16, "%.1f", f->large.mape_pct);
  append_percent (out, 16, "%.1f", f->small.mape_pct);
  append_percent (out, 9, "%+.1f", f->all.bias_pct);
  append_percent (out, 9, "%+.1f", f->all.worst_pct);
  g_string_append_c (out, '\n');
}

static void
append_errors (GString *out, const LsCollectiveTable *t)
{
  glong width = 14;
  for (guint i = 0; i < t->n_families; i++)
    width = MAX (width, g_utf8_strlen (t->families[i].name, -1));
  g_string_append_printf (out, "%-*s%6s%16s%16s%9s%9s\n", (int) width, "cluster/op", "n", "mape% >= 1 MiB",
                          "mape% < 1 MiB", "bias %", "worst %");
  for (guint i = 0; i < t->n_families; i++)
    append_family (out, (int) width, &t->families[i]);
  append_family (out, (int) width, &t->total);
}

char *
ls_collective_to_text (const LsCollectiveTable *t)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "# %s\n", t->title);
  if (t->is_comparison)
    append_errors (out, t);
  else if (t->n_networks > 1)
    append_networks (out, t);
  else
    append_table (out, t);
  if (t->messages)
    ls_messages_append (out, t->messages);
  return g_string_free (out, FALSE);
}
