/* data/launch/hf_rules.h — what options of Hugging Face's Trainer and of accelerate mean together (private
 * to launch/). */
#ifndef LS_DATA_LAUNCH_HF_RULES_H
#define LS_DATA_LAUNCH_HF_RULES_H

#include "data/launch/option_table.h"

typedef struct {
  LaunchJob job;
  LaunchWords *deepspeed; /* the configuration of DeepSpeed; NULL: none was read */
  bool has_trainer;       /* arguments of a Trainer are among the options, whose defaults then hold */
} HfJob;

/* A model's file among those behind the first. False: with a diagnostic. */
bool hf_read_model (const ImportFiles *files, LsImport *import, LsDiagList *diags);

/* The file that configures DeepSpeed; NULL: none is named. */
const char *hf_deepspeed_file (const LaunchJob *job);

/* Reads all options: job->table is set by it. */
void hf_read (HfJob *job);

/* --- hf_options.c ---------------------------------------------------------------------------------- */

/* Options of Hugging Face's Trainer and of accelerate, and what they are in our files: TrainingArguments
 * (transformers 4.57, training_args.py), keys of accelerate's configuration (1.10,
 * commands/config/config_args.py) since 0.11, and flags of accelerate launch. */

extern const OptionTable hf_options;

#endif
