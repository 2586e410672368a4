/* Which program's files these are. */
#include <string.h>

#include "data/launch/import_reader.h"
#include "data/launch/launch_script.h"
#include "data/text/read_file.h"

/* --- the registry ----------------------------------------------------------------------------------- */

/* Told in this order: a log has words of a script too. */
static const ImportReader *const readers[] = {
  &import_megatron_log,
  &import_megatron_test,
  &import_torchtitan_log,
  &import_deepspeed_log,
  &import_primus,
  &import_torchtitan,
  &import_torchtitan_python,
  &import_torchtitan_script,
  &import_internevo_script,
  &import_internevo,
  &import_xtuner_1_script,
  &import_xtuner_1,
  &import_xtuner_script,
  &import_xtuner,
  &import_litgpt,
  &import_litgpt_script,
  &import_torchtune,
  &import_torchtune_script,
  &import_nanochat,
  &import_nanotron,
  &import_nanotron_script,
  &import_lingua,
  &import_lingua_script,
  &import_olmo,
  &import_olmo_script,
  &import_llm_foundry,
  &import_maxtext_models,
  &import_maxtext,
  &import_levanter,
  &import_veomni,
  &import_nemo,
  &import_automodel,
  &import_neox,
  &import_axolotl,
  &import_llama_factory,
  &import_deepspeed,
  &import_accelerate,
  &import_verl,
  &import_megatron_swift,
  &import_hf_script,
  &import_mlperf,
  &import_bridge_python,
  &import_bridge_script,
  &import_megatron,
};

static const ImportReader *
reader_of (const ImportFile *file)
{
  for (guint i = 0; i < G_N_ELEMENTS (readers); i++)
    if (readers[i]->is_its (file))
      return readers[i];
  return NULL;
}

static bool
is_script_name (const char *word)
{
  static const char *const ends[] = { ".sh", ".bash", ".slurm", ".sbatch" };
  for (guint i = 0; i < G_N_ELEMENTS (ends); i++)
    if (g_str_has_suffix (word, ends[i]))
      return true;
  return false;
}

/* By a script that lies beside and is named: one that only submits it says nothing of the job itself. NULL:
 * none is known. */
static const ImportReader *
reader_beside (const ImportFile *file, const ImportReader *first)
{
  static const char *const own[] = { "--num-layers", "--tensor-model-parallel-size", "pretrain_" };
  const ImportReader *reader = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (own); i++)
    if (strstr (file->text, own[i]))
      return NULL;
  g_auto (GStrv) words = g_strsplit_set (file->text, " \t\n\r\"'`;&|()=/", -1);
  g_autofree char *folder = g_path_get_dirname (file->path), *self = g_path_get_basename (file->path);
  for (char **word = words; *word && !reader; word++) {
    if (!is_script_name (*word) || strcmp (*word, self) == 0)
      continue;
    g_autofree char *path = g_build_filename (folder, *word, NULL);
    g_autoptr (LsDiagList) none = ls_diag_list_new ();
    size_t n = 0;
    g_autofree char *text = g_file_test (path, G_FILE_TEST_IS_REGULAR)
        ? ls_read_file (path, LAUNCH_MAX_BESIDE, &n, none)
        : NULL;
    ImportYaml yaml = { 0 };
    const ImportFile other = { .path = path, .text = text, .n = n, .yaml = &yaml };
    reader = text ? reader_of (&other) : NULL;
    reader = reader == first ? NULL : reader;
    cJSON_Delete (yaml.tree);
  }
  return reader;
}

const ImportReader *
import_choose (const ImportFiles *files)
{
  const ImportReader *first = reader_of (&files->files[0]);
  bool is_script = first == &import_megatron && g_str_has_prefix (files->files[0].text, "#!");
  for (guint i = 1; i < files->n && is_script; i++) {
    const ImportReader *other
        = g_str_has_prefix (files->files[i].text, "#!") ? reader_of (&files->files[i]) : NULL;
    if (other && other != first)
      return other;
  }
  const ImportReader *beside = is_script || !first ? reader_beside (&files->files[0], first) : NULL;
  return beside ? beside : first;
}

/* --- logs beside a job's files -------------------------------------------------------------------- */

const ImportReader *
import_log_reader_of (const ImportFile *file)
{
  for (guint i = 0; i < G_N_ELEMENTS (readers); i++)
    if (readers[i]->has_steps && readers[i]->has_steps (file->text))
      return readers[i];
  return NULL;
}

guint
import_set_logs_apart (ImportFile *files, guint n)
{
  g_autofree ImportFile *logs = g_new0 (ImportFile, n);
  guint n_files = 0, n_logs = 0;
  for (guint i = 0; i < n; i++)
    if (n > 1 && import_log_reader_of (&files[i]) && (i > 0 || !reader_of (&files[i])))
      logs[n_logs++] = files[i];
    else
      files[n_files++] = files[i];
  memcpy (files + n_files, logs, n_logs * sizeof *logs);
  return n_files;
}
