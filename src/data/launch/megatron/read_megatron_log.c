/* A log of Megatron-LM: the arguments that it prints, and the lines of its iterations.
 *
 *     ------------------------ arguments ------------------------
 *       num_layers ...................................... 64
 *     -------------------- end of arguments ---------------------
 *      iteration  20/ 1000 | ... | elapsed time per iteration (ms): 2711.1 | ... | global batch size: 4 | ...
 *     [Rank 51] (after 20 iterations) memory (MB) | allocated: 19494.4 | max allocated: 22106.0 | ...
 */
#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/log_steps.h"
#include "data/launch/megatron/megatron_rules.h"

#define MIB 1048576.0

/* --- arguments ------------------------------------------------------------------------------------- */

/* Behind what launchers put in front of a line: "0: ", "[default0]:". */
static const char *
skip_prefix (const char *line, const char *end)
{
  while (line < end && g_ascii_isspace (*line))
    line++;
  const char *p = line;
  while (p < end && !g_ascii_isspace (*p) && *p != ':')
    p++;
  if (p >= end || *p != ':')
    return line;
  for (p++; p < end && g_ascii_isspace (*p); p++)
    ;
  return p;
}

/* "  num_layers ....... 64", "  long_name_without_dots  False". */
static void
read_argument (LaunchWords *words, const char *line, const char *end)
{
  const char *name = skip_prefix (line, end), *p = name;
  while (p < end && (g_ascii_isalnum (*p) || *p == '_'))
    p++;
  const char *value = p;
  while (value < end && strchr (" .", *value))
    value++;
  if (p == name || value == p)
    return;
  g_autofree char *key = g_strndup (name, (gsize) (p - name)),
                  *text = g_strstrip (g_strndup (value, (gsize) (end - value)));
  launch_words_add_value (words, key, text);
}

/* Where the dump begins, behind its headline; NULL: there is none. */
static const char *
find_dump (const char *text)
{
  const char *head = strstr (text, "--- arguments ---");
  return head ? log_line_end (head) : NULL;
}

static void
read_dump (const char *text, LaunchWords *words)
{
  for (const char *p = find_dump (text); p && *p == '\n';) {
    const char *end = log_line_end (++p);
    if (g_strstr_len (p, end - p, "end of arguments"))
      return;
    read_argument (words, p, end);
    p = end;
  }
}

/* --- iterations ------------------------------------------------------------------------------------ */

static void
read_line (const char *line, gsize n, GArray *lines, LsImportMeasured *m)
{
  double ms = log_number_behind (line, n, "elapsed time per iteration (ms):"),
         s = log_number_behind (line, n, "elapsed time per iteration (s):"),
         batch = log_number_behind (line, n, "global batch size:"),
         allocated = log_number_behind (line, n, "max allocated:"),
         reserved = log_number_behind (line, n, "max reserved:");
  const LogStep read = { isnan (ms) ? s : ms / 1000, isnan (batch) ? 0 : batch };
  if (read.step_s > 0)
    g_array_append_val (lines, read);
  if (allocated > 0 && g_strstr_len (line, (gssize) n, "memory (MB)")) {
    m->allocated_bytes = MAX (m->allocated_bytes, allocated * MIB);
    m->reserved_bytes = MAX (m->reserved_bytes, isnan (reserved) ? 0 : reserved * MIB);
  }
}

static void
read_iterations (const char *text, LsImport *import)
{
  g_autoptr (GArray) lines = g_array_new (FALSE, FALSE, sizeof (LogStep));
  for (const char *p = text; *p;) {
    const char *end = log_line_end (p);
    read_line (p, (gsize) (end - p), lines, &import->measured);
    p = *end ? end + 1 : end;
  }
  log_measure (lines, import);
}

/* --- the whole ------------------------------------------------------------------------------------- */

/* " > padded vocab (size: 50257) with 431 dummy tokens (new size: 50688)" */
static void
read_vocab (const char *text, LsImport *import)
{
  const char *line = strstr (text, "padded vocab (size:");
  double size = line ? log_number_behind (line, (gsize) (log_line_end (line) - line), "(size:") : NAN;
  if (size >= 1 && size <= 1 << 24)
    import_set_model_number (import, "vocab", (guint64) size);
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0];
  g_autoptr (LaunchWords) words = launch_words_new ();
  import->program = "Megatron-LM";
  read_dump (file->text, words);
  if (words->options->len == 0) {
    ls_diag_add (diags, LS_ERROR_INPUT, file->path, 0, 0, NULL, NULL, NULL,
                 "this log has iterations but no arguments: what is trained is not known");
    return false;
  }
  LaunchJob job = { .import = import, .words = words, .is_dump = true };
  megatron_read (&job);
  read_vocab (file->text, import);
  read_iterations (file->text, import);
  return true;
}

static bool
is_its (const ImportFile *file)
{
  const char *dump = find_dump (file->text);
  return dump && strstr (dump, "end of arguments");
}

const ImportReader import_megatron_log = { "a log of Megatron-LM", is_its, read };
