/* data/launch/megatron_rules.h — what options of Megatron-LM mean together, and what they are where they
 * are not given (private to launch/). */
#ifndef LS_DATA_LAUNCH_MEGATRON_RULES_H
#define LS_DATA_LAUNCH_MEGATRON_RULES_H

#include "data/launch/import_reader.h"
#include "data/launch/launch_words.h"

typedef struct {
  LsImport *import;
  const LaunchWords *words;
  const char *script; /* "pretrain_gpt.py", NULL: not known                       */
  guint64 gpus;       /* ranks that are launched; 0: not known                    */
  bool is_dump;       /* all arguments, as a log has them, not only those given   */
  GHashTable *open;   /* keys whose options have values that the script leaves open: static strings */
} MegatronJob;

/* Reads all options. */
void megatron_read (MegatronJob *job);

/* What a script asks of its options, by megatron_model.c and megatron_strategy.c: */
const char *megatron_text (const MegatronJob *job, const char *name); /* NULL: not given, or with a hole */
bool megatron_is_on (const MegatronJob *job, const char *name);
guint64 megatron_number (const MegatronJob *job, const char *name); /* 0: not given, or no number */
void megatron_model (MegatronJob *job);
void megatron_strategy (MegatronJob *job);

#endif
