/* data/launch/megatron/megatron_rules.h — what options of Megatron-LM mean together, and what they are
 * where they are not given (private to launch/). */
#ifndef LS_DATA_LAUNCH_MEGATRON_MEGATRON_RULES_H
#define LS_DATA_LAUNCH_MEGATRON_MEGATRON_RULES_H

#include "data/launch/import_reader.h"
#include "data/launch/option_table.h"

/* Whether a job trains a decoder on the next token, by its script (NULL: not known) and its options; false:
 * with a diagnostic that says what else it does. */
bool megatron_trains_decoder (const LaunchWords *words, const char *script, const char *path,
                              LsDiagList *diags);
/* Whether a script of this name trains no decoder. */
bool megatron_does_other (const char *script);

/* Of it: */
/* What is behind --deepspeed, after the strategy: the stage, and what the file of --deepspeed-config says. */
void megatron_deepspeed (LaunchJob *job, const LaunchWords *deepspeed);
/* megatron_yaml.c: the arguments of --yaml-cfg, which take the place of own, the command's. NULL: with a
 * diagnostic. */
LaunchWords *megatron_yaml_words (const ImportFiles *files, const LaunchWords *own, LsImport *import,
                                  LsDiagList *diags);
/* The file of DeepSpeed, which the script writes or which lies beside it; the caller frees it; NULL: it is
 * not here, or no JSON. */
LaunchWords *megatron_deepspeed_file (const ImportFiles *files, const LaunchWords *words);
void megatron_namespace (LaunchWords *words); /* before options are read */
void megatron_formats (LaunchJob *job);       /* of single modules, behind the number format */
/* The file of --te-precision-config-file in place of its name, before options are read, where it is here. */
void megatron_read_formats (const ImportFiles *files, LaunchWords *words);
/* Such a file as that value, JSON, newly allocated; NULL: it is no mapping of YAML. name: for its path. */
char *megatron_formats_text (const char *text, gsize n, const char *name);

/* --- options ----------------------------------------------------------------------------------- */

/* Options of Megatron-LM and what they are in our files: strategies/programs/megatron.json. */

const OptionTable *megatron_options (void);

#endif
