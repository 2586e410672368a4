/* Pins what launch files mean by the keys of our files, what is told of them and what is refused: the cases of
 * tests/import (support/expected_cases.h), and what no case can say. */
#include <glib/gstdio.h>

#include "data/jobs/job_files.h"
#include "expected_cases.h"
#include "import_check.h"

/* From a folder of their own. */
static bool
load (const LsExpectedCase *c, char *const *texts, LsImported *import, LsDiagList *diags)
{
  g_autofree char *folder = g_dir_make_tmp ("lockstep-import-XXXXXX", NULL);
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free), given = g_ptr_array_new ();
  for (guint i = 0; i < c->files->len; i++) {
    const LsCaseFile *file = &g_array_index (c->files, LsCaseFile, i);
    char *path = *file->name == ':' ? g_strdup (file->name) : g_build_filename (folder, file->name, NULL);
    g_autofree char *parent = g_path_get_dirname (path);
    g_ptr_array_add (paths, path);
    if (*path != ':')
      LS_CHECK (g_mkdir_with_parents (parent, 0700) == 0 && g_file_set_contents (path, texts[i], -1, NULL));
    if (file->is_given)
      g_ptr_array_add (given, path);
  }
  g_ptr_array_add (given, NULL);
  bool ok = ls_import_load ((const char *const *) given->pdata, NULL, import, diags);
  for (guint i = 0; i < paths->len; i++)
    for (char *path = paths->pdata[i]; strlen (path) >= strlen (folder) && g_remove (path) == 0;)
      *strrchr (path, '/') = '\0';
  return ok;
}

static gpointer
import_files (const LsExpectedCase *c, const char *option, char **said)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_auto (GStrv) texts = g_new0 (char *, c->files->len + 1);
  LsImported *import = g_new0 (LsImported, 1);
  for (guint i = 0; i < c->files->len; i++)
    texts[i] = ls_case_text (&g_array_index (c->files, LsCaseFile, i), option);
  const char *name = g_array_index (c->files, LsCaseFile, 0).name;
  bool ok = c->files->len > 1 ? load (c, texts, import, diags)
                              : ls_import_read (texts[0], strlen (texts[0]), name, NULL, import, diags);
  *said = ls_diag_list_format (diags);
  if (!ok)
    g_clear_pointer (&import, g_free);
  return import;
}

static void
clear (gpointer import)
{
  ls_import_clear (import);
  g_free (import);
}

/* The keys of the strategy that only rules of the program say. */
static char *
rules_of (const LsImported *import)
{
  GString *keys = g_string_new (NULL);
  for (const LsField *f = ls_strategy_fields; f->key; f++)
    if (ls_import_remark (import, LS_REMARK_BY_RULE, f->key))
      g_string_append_printf (keys, "%s%s", keys->len > 0 ? " " : "", f->key);
  return g_string_free (keys, FALSE);
}

static bool
has_key (const LsField *fields, const char *key)
{
  while (fields->key && strcmp (fields->key, key) != 0)
    fields++;
  return fields->key != NULL;
}

/* NULL: it is not set. */
static char *
found (const LsImported *import, const char *key)
{
  const LsMeasured *m = &import->measured;
  const char *const names[] = { "files", "step_s", "log_lines", "allocated_bytes", "reserved_bytes" };
  const double numbers[] = { import->files->len, m->step_s, m->n_lines, m->memory_bytes, m->reserved_bytes };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (strcmp (key, names[i]) == 0)
      return g_strdup_printf ("%.13g", numbers[i]);
  if (strcmp (key, "program") == 0)
    return g_strdup (import->program);
  if (strcmp (key, "rules") == 0)
    return rules_of (import);
  bool is_ours = has_key (ls_strategy_fields, key) || has_key (ls_model_fields, key);
  return is_ours ? value_of (import, key) : g_strdup ("there is no such key");
}

/* Of that kind, or one of the files. */
static bool
has_remark (const LsImported *import, LsRemarkKind kind, const char *part)
{
  for (guint i = 0; kind == LS_N_REMARKS && i < import->files->len; i++)
    if (strstr (import->files->pdata[i], part))
      return true;
  return has_line (import, kind, part);
}

/* NULL: it holds; else what is so. */
static char *
contradiction (gconstpointer result, const char *what)
{
  const LsImported *import = result;
  static const char *const remarks[] = { "unknown", "conflict", "inferred", "ignored", "file" };
  static const LsRemarkKind kinds[]
      = { LS_REMARK_UNKNOWN, LS_REMARK_CONFLICT, LS_REMARK_INFERRED, LS_REMARK_IGNORED, LS_N_REMARKS };
  bool is_not = g_str_has_prefix (what, "not ");
  g_auto (GStrv) words = g_strsplit (what + (is_not ? strlen ("not ") : 0), " ", 2);
  for (guint i = 0; words[0] && i < G_N_ELEMENTS (remarks); i++)
    if (strcmp (words[0], remarks[i]) == 0)
      return has_remark (import, kinds[i], words[1] ? words[1] : "") != is_not
          ? NULL
          : g_strdup (is_not ? "there is such a line" : "there is none");
  if (!words[0] || !words[1] != is_not)
    return g_strdup ("expected KEY VALUE, or \"not\" before a key or a remark");
  g_autofree char *is = found (import, words[0]);
  return g_strcmp0 (is, words[1]) == 0 ? NULL : g_strdup (is ? is : "it is not set");
}

static void
launch_files_mean_what_is_said (void)
{
  static const LsCaseKind kind = { import_files, contradiction, clear };
  ls_cases_run ("import", &kind, 540);
}

static void
the_same_is_told_once (void)
{
  LsImported import;
  guint n = 0;
  if (!read_text ("deepspeed train.py --deepspeed --zero_stage 3 --model_name_or_path gpt2 "
                  "--per_device_train_batch_size 8",
                  &import))
    return;
  for (guint i = 0; i < import.remarks->len; i++) {
    const LsRemark *r = &g_array_index (import.remarks, LsRemark, i);
    n += r->kind == LS_REMARK_UNKNOWN && strstr (r->text, "how many GPUs: nothing");
  }
  LS_CHECK_INT (n, ==, 1);
  ls_import_clear (&import);
}

/* As many lines as real ones have, each of which holds those before it. */
static void
long_lists_of_data_are_read (void)
{
  GString *text = g_string_new ("D=\"\"\n");
  for (int i = 0; i < 300; i++)
    g_string_append_printf (text, "D=\"${D} 855056046544 ${ROOT}/en_fineweb-rescored_score_%04d_document\"\n",
                            i);
  g_string_append (text,
                   "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 1024 "
                   "--num-attention-heads 16 --tokenizer-type Llama2Tokenizer --data-path $D\n");
  check (text->str, "gpus=8; layers=24");
  g_string_free (text, TRUE);
}

/* A model by its name has as many parameters as the file that is written of it, layer by layer. */
static void
models_of_names_are_whole (void)
{
  static const char *const names[] = { "nvidia/Llama-3_3-Nemotron-Super-49B-v1", "google/gemma-4-E2B",
                                       "moonshotai/Kimi-Linear-48B-A3B-Instruct", "Qwen/Qwen3-30B-A3B" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *text
        = g_strconcat ("torchrun train.py --bf16 --per_device_train_batch_size 1 --max_seq_length "
                       "512 --model_name_or_path ",
                       names[i], NULL);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsModel own = { 0 }, written = { 0 };
    bool is_decoder;
    LsImported import;
    if (!LS_CHECK (ls_model_of_name (names[i], &own, &is_decoder)) || !read_text (text, &import))
      continue;
    if (LS_CHECK (ls_model_read (import.model, &written, NULL, diags)))
      LS_CHECK_INT (ls_model_params (&written, written.vocab), ==, ls_model_params (&own, own.vocab));
    ls_model_clear (&written);
    ls_model_clear (&own);
    ls_import_clear (&import);
  }
}

LS_TEST_SUITE (LS_TEST (launch_files_mean_what_is_said), LS_TEST (the_same_is_told_once),
               LS_TEST (long_lists_of_data_are_read), LS_TEST (models_of_names_are_whole))
