/* data/launch/hf_rules.h — what options of Hugging Face's Trainer and of accelerate mean together (private
 * to launch/). */
#ifndef LS_DATA_LAUNCH_HF_RULES_H
#define LS_DATA_LAUNCH_HF_RULES_H

#include "data/launch/option_table.h"
#include "data/launch/program/program_map.h"

/* A profile of strategies/software, and what says so: a release that a program asks for, or an option. NULL:
 * nothing. */
typedef struct {
  const char *software, *why;
  bool is_option;
} HfRelease;

#define HF_RELEASE_4 "hf-trainer-2024" /* of transformers 4 */
#define HF_RELEASE_5 "hf-trainer-2026"

/* A model's file among those behind the first. False: with a diagnostic. */
bool hf_read_model (const ImportFiles *files, LsImport *import, LsDiagList *diags);

/* An option, in whichever section of a configuration; NULL: none is there. */
const LaunchOption *hf_find (const LaunchJob *job, const char *name);

bool hf_uses_deepspeed (const LaunchJob *job);

/* --- hf_kind.c ------------------------------------------------------------------------------------- */

/* By the name of a script: it trains no decoder. */
bool hf_does_other (const char *script);
/* An option that only what learns from preferences declares, whether a command says it or not. */
bool hf_is_of_other (const char *name);
/* By the name of its script, or an option that no other job has; what only generates or evaluates says no
 * batch that is trained on. Of a configuration alone by its data set: the command says the task. d, script:
 * NULL: none is known. False: with a diagnostic. */
bool hf_check_task (const ProgramMap *d, const char *script, const LaunchWords *said, const char *path,
                    LsDiagList *diags);
/* Whether it may be a Trainer: not where options of its own say how it computes and shards, and none is there
 * that only a Trainer has. d, script: as above. False: with a diagnostic. */
bool hf_check_trainer (const ProgramMap *d, const char *script, const LaunchWords *said, const char *path,
                       LsDiagList *diags);
/* Accelerators and degrees of software that is not known. script: NULL: none. False: with a diagnostic. */
bool hf_check_software (const char *script, const LaunchWords *words, const char *path, LsDiagList *diags);

/* --- hf_deepspeed.c -------------------------------------------------------------------------------- */

/* Buckets that a file of DeepSpeed leaves to a Trainer, "auto", by the width of the model, if that is known
 * (transformers/integrations/deepspeed.py). */
void hf_fill_buckets (const LsImport *import, LaunchWords *words);

/* --- hf_deepspeed.c -------------------------------------------------------------------------------- */

/* Whether these are arguments of a Trainer, whose defaults hold then. */
bool hf_has_trainer (const LaunchWords *words);

/* --- hf_dialects.c: programs around a Trainer, which are data (ProgramAround) ------------------------- */

/* Options of Hugging Face's Trainer and of accelerate, and what they are in our files: strategies/programs/
 * trainer.json. */
const OptionTable *hf_options (void);

/* const ProgramMap *, in the order in which they are asked; kept. */
const GPtrArray *hf_dialects (void);

/* By its command, or by an option of it; NULL: it is a Trainer itself, or unknown. */
const ProgramMap *hf_dialect_of (const char *script, const LaunchWords *words);

/* Of the options as they are said. */
HfRelease hf_dialect_release (const ProgramMap *d, const LaunchWords *words);

/* Whether it trains on the next token; false: with a diagnostic. */
bool hf_dialect_check (const ProgramMap *d, const char *script, const LaunchWords *words, const char *path,
                       LsDiagList *diags);

/* Its options as those of a Trainer, with its defaults; what is told of them is told. gpus: 0: not known.
 * NULL: with a diagnostic. */
LaunchWords *hf_dialect_words (const ProgramMap *d, LaunchWords *words, guint64 gpus, LsImport *import,
                               LsDiagList *diags);

#endif
