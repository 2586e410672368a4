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
void megatron_model (LaunchJob *job);
void megatron_vocab (LaunchJob *job);       /* a part of that */
void megatron_hybrid (LaunchJob *job);      /* another: layers by a pattern */
void megatron_predictions (LaunchJob *job); /* a part of that, also of a model that is in no file here */
/* A number by today's name of an option, by an older one, or where neither is given. */
guint64 megatron_number_or (const LaunchJob *job, const char *name, const char *older, guint64 otherwise);
void megatron_strategy (LaunchJob *job);
/* What arguments.py asserts of a command line; recipes, which do not pass there, may have gathers alone. */
void megatron_check_gathers (LaunchJob *job);
void megatron_precision (LaunchJob *job);  /* a part of that */
void megatron_changes (LaunchJob *job);    /* the same of what only changes another job: no defaults */
void megatron_stages (LaunchJob *job);     /* a part of that */
void megatron_fused_rope (LaunchJob *job); /* one kernel rotates, and nothing is copied around attention */
void megatron_engine (LaunchJob *job);     /* what variables tell Transformer Engine, behind all else */
void megatron_kernels (LaunchJob *job);
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
void megatron_optimizer (LaunchJob *job);     /* a part of that, with what adds to gradients */
void megatron_dispatcher (LaunchJob *job);    /* another */
/* The model has experts, or is not in the files. */
bool megatron_may_have_experts (const LaunchJob *job);
void megatron_graphs (LaunchJob *job);        /* another */
void megatron_fp8_attention (LaunchJob *job); /* behind the number format and cp */
void megatron_formats (LaunchJob *job);       /* of single modules, behind the number format */
/* The file of --te-precision-config-file in place of its name, before options are read, where it is here. */
void megatron_read_formats (const ImportFiles *files, LaunchWords *words);
/* Such a file as that value, JSON, newly allocated; NULL: it is no mapping of YAML. name: for its path. */
char *megatron_formats_text (const char *text, gsize n, const char *name);

/* --- options ----------------------------------------------------------------------------------- */

/* Options of Megatron-LM and what they are in our files: strategies/programs/megatron.json. */

const OptionTable *megatron_options (void);

/* Modules that selective recomputation names, and the parts of ours that they are; ends in NULL. */
typedef struct {
  const char *theirs, *ours;
  int part;
} MegatronModule;
extern const MegatronModule megatron_modules[];

#endif
