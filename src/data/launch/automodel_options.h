/* data/launch/automodel_options.h — the options of NeMo AutoModel: which of them torchtitan has under another
 * name, which read_automodel.c reads, which matter neither to time nor to memory (private to launch/). */
#ifndef LS_DATA_LAUNCH_AUTOMODEL_OPTIONS_H
#define LS_DATA_LAUNCH_AUTOMODEL_OPTIONS_H

#include "data/launch/option_table.h"

#define AUTOMODEL_EARLY_DEEPEP "model.backend.enable_deepep" /* until 2026 */

extern const OptionTable automodel_options;

/* In which formats it multiplies, reduces, and keeps what it steps on; the optimizer: automodel_formats.c,
 * behind how it shards. */
void automodel_formats (LaunchJob *job);

#endif
