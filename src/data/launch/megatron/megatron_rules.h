/* data/launch/megatron/megatron_rules.h — which modules of Megatron-LM run in which format (private to
 * launch/); what its options mean is data: strategies/programs/megatron.json. */
#ifndef LS_DATA_LAUNCH_MEGATRON_MEGATRON_RULES_H
#define LS_DATA_LAUNCH_MEGATRON_MEGATRON_RULES_H

#include "data/launch/import_reader.h"
#include "data/launch/option_table.h"

void megatron_formats (LaunchJob *job); /* of single modules, behind the number format */
/* Such a file as that value, JSON, newly allocated; NULL: it is no mapping of YAML. name: for its path. */
char *megatron_formats_text (const char *text, gsize n, const char *name);

#endif
