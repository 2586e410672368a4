#include <math.h>
#include <string.h>

#include "data/measured/nccl_tests_run.h"

#define MAX_RANK   (1u << 20)
#define MAX_BYTES  ((guint64) 1 << 50)
#define MAX_LABELS 5 /* size, count, type, redop, root: old versions leave the last two blank */
#define MIN_LABELS 3

typedef struct {
  LsNcclTests *t;
  LsDiagList *diags;
  LsNcclTestsDevices devices;
  const char *line; /* the one being read */
  int number;
  guint n_values;  /* columns from the first time on; 0: no title line yet    */
  guint at_wrong;  /* the column #wrong out of place, counted from that time  */
  bool is_useless; /* the title line says that no row is worth reading        */
  bool is_over;    /* "concluded" was read                                    */
} Reader;

static void G_GNUC_PRINTF (2, 3) complain (const Reader *r, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (r->diags, LS_ERROR_INPUT, r->t->path, r->number, 1, NULL, r->line, NULL, "%s", message);
}

/* The words of a line; owned by the caller. */
static GPtrArray *
words_of (const char *line)
{
  GPtrArray *words = g_ptr_array_new_with_free_func (g_free);
  g_auto (GStrv) parts = g_strsplit_set (line, " \t\r", -1);
  for (char **part = parts; *part; part++)
    if (**part)
      g_ptr_array_add (words, g_strdup (*part));
  return words;
}

static const char *
word (const GPtrArray *words, guint i)
{
  return i < words->len ? g_ptr_array_index (words, i) : "";
}

static guint
find (const GPtrArray *words, const char *what, guint from)
{
  guint i = from;
  while (i < words->len && strcmp (word (words, i), what) != 0)
    i++;
  return i;
}

/* "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong": a
 * timestamp is a date and a time of day. */
static void
read_titles (Reader *r, const GPtrArray *words)
{
  if (r->n_values > 0) {
    complain (r,
              "a second title line: where the run that it belongs to begins is not said; expected its first "
              "lines (\"# nThread ...\")");
    return;
  }
  guint time = find (words, "time", 1), wrong = find (words, "#wrong", time);
  r->is_useless = find (words, "cputime", 1) < words->len;
  if (r->is_useless)
    complain (r, "these are times of the host (-C 1), not of the collective");
  else if (wrong >= words->len || wrong - time < 3)
    complain (r, "expected the columns time, algbw, busbw and #wrong");
  else {
    bool has_stamp = find (words, "timestamp", time) < words->len;
    r->n_values = words->len - time + has_stamp;
    r->at_wrong = wrong - time;
  }
}

/* "#  Rank  0 Group  0 Pid  31 on node-1 device  0 [0x07] NVIDIA A100-SXM4-40GB"; old
 * versions have no group. */
static void
read_device (Reader *r, const GPtrArray *words)
{
  if (r->t->rows->len > 0) {
    complain (r,
              "devices of another run: where it begins is not said; expected its first lines (\"# nThread "
              "...\")");
    return;
  }
  guint on = find (words, "on", 0), device = find (words, "device", on), group = find (words, "Group", 0);
  guint64 rank, of_group = 0;
  bool ok = g_ascii_string_to_unsigned (word (words, 2), 10, 0, MAX_RANK, &rank, NULL) && on + 1 < words->len
      && device + 1 < words->len;
  if (ok && group < on)
    ok = g_ascii_string_to_unsigned (word (words, group + 1), 10, 0, MAX_RANK, &of_group, NULL);
  if (!ok) {
    complain (r, "expected \"#  Rank N Group N Pid N on HOST device N [BUS] NAME\"");
    return;
  }
  ls_nccl_tests_add_device (&r->devices, rank, of_group, word (words, on + 1));
  const char *name = strchr (r->line, ']');
  if (!r->t->gpu && name)
    r->t->gpu = g_strstrip (g_strdup (name + 1));
}

static void
read_setting (Reader *r, const GPtrArray *words)
{
  guint64 n_threads, n_gpus;
  if (g_ascii_string_to_unsigned (word (words, 2), 10, 1, MAX_RANK, &n_threads, NULL)
      && strcmp (word (words, 3), "nGpus") == 0
      && g_ascii_string_to_unsigned (word (words, 4), 10, 1, MAX_RANK / n_threads, &n_gpus, NULL))
    r->devices.per_process = (guint) (n_threads * n_gpus);
  else
    complain (r, "expected \"# nThread N nGpus N ...\"");
}

static void
read_out_of_bounds (Reader *r, const GPtrArray *words)
{
  const char *n = word (words, find (words, ":", 0) + 1);
  guint64 count;
  if (!g_ascii_string_to_unsigned (n, 10, 0, G_MAXUINT64, &count, NULL))
    complain (r, "expected \"# Out of bounds values : N OK\"");
  else if (count > 0)
    complain (r, "%s out of bounds values: times of wrong results are worth nothing", n);
}

/* Runs that write into one file at a time mix their lines. */
static void
read_end (Reader *r, const GPtrArray *words)
{
  g_autofree char *test = ls_nccl_tests_name (word (words, 4));
  if (r->is_over || (r->t->test && g_strcmp0 (test, r->t->test) != 0))
    complain (r, "the end of %s_perf in a run of %s_perf: lines of several runs are mixed",
              test ? test : "another", r->t->test ? r->t->test : "another");
  r->is_over = true;
}

static void
read_comment (Reader *r)
{
  static const char test[] = "# Collective test starting:", end[] = "# Collective test concluded:",
                    version[] = "nccl-library=";
  g_autoptr (GPtrArray) words = words_of (r->line);
  const char *first = word (words, 1), *library = strstr (r->line, version);
  if (g_str_has_prefix (r->line, test)) {
    g_free (r->t->test);
    r->t->test = ls_nccl_tests_name (word (words, 4));
  } else if (g_str_has_prefix (r->line, end))
    read_end (r, words);
  else if (library && !r->t->version)
    r->t->version = g_strndup (library + strlen (version), strspn (library + strlen (version), "0123456789"));
  else if (strcmp (first, "nThread") == 0)
    read_setting (r, words);
  else if (strcmp (first, "Rank") == 0)
    read_device (r, words);
  else if (strcmp (first, "size") == 0)
    read_titles (r, words);
  else if (g_str_has_prefix (r->line, "# Out of bounds values"))
    read_out_of_bounds (r, words);
}

static bool
number (const char *text, double *ret_value)
{
  char *end;
  *ret_value = g_ascii_strtod (text, &end);
  return *text && *end == '\0' && isfinite (*ret_value);
}

static void
read_row (Reader *r)
{
  g_autoptr (GPtrArray) words = words_of (r->line);
  if (r->is_over) {
    complain (r,
              "figures after the end of the run: lines of several runs are mixed, or the first ones of the "
              "next are missing");
    return;
  }
  if (r->n_values == 0) {
    complain (r, "expected the title line of nccl-tests (\"# size count type ...\") before this");
    return;
  }
  guint64 bytes;
  double time_us, algbw, n_wrong = 0;
  guint n = words->len, time = n - r->n_values;
  const char *wrong = word (words, time + r->at_wrong);
  bool ok = n >= MIN_LABELS + r->n_values && n <= MAX_LABELS + r->n_values
      && g_ascii_string_to_unsigned (word (words, 0), 10, 0, MAX_BYTES, &bytes, NULL)
      && number (word (words, time), &time_us) && number (word (words, time + 1), &algbw)
      && (strcmp (wrong, "N/A") == 0 || number (wrong, &n_wrong));
  if (!ok) {
    complain (r, "the line is damaged: expected size, count, type, redop, root and %u figures", r->n_values);
    return;
  }
  g_autofree char *trouble
      = bytes > 0 ? ls_nccl_tests_row_trouble ((double) bytes, time_us, algbw, n_wrong) : NULL;
  const LsNcclTestsRow row = { bytes, time_us };
  if (trouble)
    complain (r, "%s", trouble);
  else if (bytes > 0)
    g_array_append_val (r->t->rows, row);
}

/* What MPI and NCCL print in between ("NCCL version 2.18.5+cuda12.2", a host's banner) is
 * no row: those begin with a blank or a digit. */
static bool
is_row (const char *line)
{
  const char *first = line + strspn (line, " \t");
  return g_ascii_isdigit (*first) || (*first == '-' && g_ascii_isdigit (first[1]));
}

bool
ls_nccl_tests_read_lines (LsNcclTests *t, char **lines, guint first, guint last, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  Reader r = { .t = t, .diags = diags };
  ls_nccl_tests_devices_init (&r.devices);
  for (guint i = first; i < last; i++) {
    r.number = (int) i + 1;
    r.line = g_strchomp (lines[i]);
    if (*r.line == '#')
      read_comment (&r);
    else if (*r.line == '{')
      complain (&r, "JSON among text; expected a file for each");
    else if (is_row (r.line) && !r.is_useless)
      read_row (&r);
  }
  if (r.devices.has_groups)
    ls_diag_add (diags, LS_ERROR_INPUT, t->path, t->line, t->line > 0, NULL, NULL, NULL,
                 "several groups of ranks ran at once: their times are not those of one alone");
  t->n_ranks = ls_nccl_tests_n_ranks (&r.devices);
  t->n_hosts = g_hash_table_size (r.devices.hosts);
  ls_nccl_tests_devices_clear (&r.devices);
  return ls_diag_list_n (diags) == n_before;
}
