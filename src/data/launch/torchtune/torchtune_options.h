/* data/launch/torchtune/torchtune_options.h — the options of torchtune: which of them torchtitan has under
 * another name, which read_torchtune.c reads, which matter neither to time nor to memory (private to
 * launch/). */
#ifndef LS_DATA_LAUNCH_TORCHTUNE_OPTIONS_H
#define LS_DATA_LAUNCH_TORCHTUNE_OPTIONS_H

#include <cjson/cJSON.h>

#include "data/launch/option_table.h"

extern const OptionTable torchtune_options;

/* Reads a configuration, which it frees, with a model behind the first file if there is one; gpus: as many
 * as tune run is told, 0: not known. False: with a diagnostic. */
bool torchtune_read (cJSON *tree, guint64 gpus, const ImportFiles *files, LsImport *import,
                     LsDiagList *diags); /* read_torchtune.c */

#endif
