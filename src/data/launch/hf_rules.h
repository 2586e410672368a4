/* data/launch/hf_rules.h — whose options are those of Hugging Face's Trainer by other names, and what starts
 * it (private to launch/). */
#ifndef LS_DATA_LAUNCH_HF_RULES_H
#define LS_DATA_LAUNCH_HF_RULES_H

#include "data/launch/option_table.h"
#include "data/launch/program/program_map.h"

/* A configuration of accelerate; a script that launches a Trainer, or a program around one, and what that
 * names. False: with a diagnostic. */
bool hf_read_configuration (const ImportFiles *files, LsImport *import, LsDiagList *diags);
bool hf_read_script (const LaunchKind *kind, const ImportFiles *files, LsImport *import, LsDiagList *diags);
bool hf_read_around (const ImportFiles *files, LsImport *import, LsDiagList *diags); /* its configuration */
/* Whether a YAML is one, with a name of a model under the option of the program that it is. */
bool hf_is_around (const ImportFile *file);

/* --- hf_dialects.c: programs around a Trainer, which are data (ProgramAround) ------------------------- */

/* Options of Hugging Face's Trainer and of accelerate, and what they are in our files: strategies/programs/
 * trainer.json. */
const OptionTable *hf_options (void);

/* Whether an option matters to a Trainer, or is one of a program around it. */
bool hf_knows (const char *name);
/* Whether one such option is enough of a command: its script names or writes a configuration of DeepSpeed. */
bool hf_needs_one (const ImportFiles *files);
bool hf_dialect_is_own (const ProgramMap *d); /* of a user */

/* By its command, or by an option of it; NULL: it is a Trainer itself, or unknown. */
const ProgramMap *hf_dialect_of (const char *script, const LaunchWords *words);

/* An option, as it is written, that only releases of it for transformers 4 have; NULL: none is there. */
const char *hf_dialect_old (const ProgramMap *d, const LaunchWords *words);

/* Whether it trains on the next token; false: with a diagnostic. */
bool hf_dialect_check (const ProgramMap *d, const char *script, const LaunchWords *words, const char *path,
                       LsDiagList *diags);

#endif
