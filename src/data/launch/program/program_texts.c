/* Functions of expressions about texts and files next to the job's: what of a text is decided, and recipes of
 * formats, modules and layouts. */
#include "data/jobs/read_software.h"
#include "data/launch/launch_gpus.h"
#include "data/launch/launch_script.h"
#include "data/launch/megatron/megatron_rules.h"
#include "data/launch/program/program_map.h"
#include "data/launch/python/python_names.h"
#include "data/launch/yaml_config.h"
#include "data/shell/shell.h"
#include "data/text/read_file.h"

static ProgramValue
taken (char *text)
{
  return text ? (ProgramValue) { text, NAN } : program_none ();
}

/* A text of which the script leaves nothing open. */
static ProgramValue
f_decided (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = a[0].value.text;
  return taken (text && !ls_shell_has_hole (text) ? g_strdup (text) : NULL);
}

/* How many a text says, "8", "gpu:a100:8"; 0: it does not. */
static ProgramValue
f_count_in (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (a[0].value.text ? (double) launch_last_number (a[0].value.text) : 0);
}

/* What the first group of a pattern as of Perl is in a text; none: that does not fit. */
static ProgramValue
f_group (ProgramRun *run, const ProgramArgument *a)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GMatchInfo) match = NULL;
  g_autoptr (GRegex) pattern
      = g_regex_new (a[1].value.text ? a[1].value.text : "", G_REGEX_RAW, G_REGEX_MATCH_DEFAULT, &error);
  if (!pattern && !run->wrong)
    run->wrong = g_strdup (error->message);
  if (pattern && a[0].value.text && g_regex_match (pattern, a[0].value.text, G_REGEX_MATCH_DEFAULT, &match))
    return taken (g_match_info_fetch (match, 1));
  return program_none ();
}

/* Kinds of layers of each chunk as letters, "Ett|tL". */
static ProgramValue
f_letters_at (ProgramRun *run, const ProgramArgument *a)
{
  const cJSON *node = run->tree ? yaml_config_find (run->tree, a[0].word) : NULL;
  return taken (program_letters (node, a[1].value.text ? a[1].value.text : ""));
}

/* A recipe of formats, a mapping or the name of its file, as Megatron-LM's option of one is read. */
static ProgramValue
f_formats_at (ProgramRun *run, const ProgramArgument *a)
{
  const cJSON *node = run->tree ? yaml_config_find (run->tree, a[0].word) : NULL;
  const char *path = cJSON_GetStringValue (node);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  gsize n;
  g_autofree char *file = path ? ls_read_file (path, LAUNCH_MAX_BESIDE, &n, diags) : NULL;
  if (file)
    g_ptr_array_add (run->job->import->files, g_strdup (path));
  char *printed = cJSON_IsObject (node) ? cJSON_PrintUnformatted (node) : NULL;
  ProgramValue v = taken (printed ? g_strdup (printed) : file ? megatron_formats_text (file, n, path) : NULL);
  cJSON_free (printed);
  return v;
}

/* The text of a module in Python, a.b.c, in the checkout that the job's first file lies in. */
static ProgramValue
f_module (ProgramRun *run, const ProgramArgument *a)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  gsize n;
  g_autofree char *path = run->files ? python_find_module (run->files->files[0].path, a[0].word) : NULL;
  return taken (path ? ls_read_file (path, LAUNCH_MAX_BESIDE, &n, diags) : NULL);
}

/* The software that a version of a package is. */
static ProgramValue
f_package (ProgramRun *run, const ProgramArgument *a)
{
  return taken (a[1].value.text ? ls_software_of_package (a[0].word, a[1].value.text) : NULL);
}

const ProgramFunction program_text_functions[] = {
  { "decided", "v", f_decided, true }, { "count_in", "v", f_count_in, true },
  { "group", "vv", f_group, true },    { "letters_at", "wv", f_letters_at, true },
  { "formats_at", "w", f_formats_at }, { "module", "w", f_module },
  { "package", "wv", f_package },      { NULL },
};
