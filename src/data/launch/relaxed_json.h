/* data/launch/relaxed_json.h — JSON as people write it by hand: with comments, commas behind the last item,
 * and words where a script puts values (private to launch/). */
#ifndef LS_DATA_LAUNCH_RELAXED_JSON_H
#define LS_DATA_LAUNCH_RELAXED_JSON_H

#include "data/text/json_doc.h"

/* Comments ("//", "#", of C) and commas behind the last item are passed over, as Hjson does, which DeepSpeed
 * loads; words without quotes (CONFIG_BATCH_SIZE, ${MICRO}) become texts "${CONFIG_BATCH_SIZE}", "${MICRO}".
 * Lines stay where they are. NULL and diagnostics if the rest is no JSON. */
LsJsonDoc *relaxed_json_parse (const char *text, gsize n, const char *name, LsDiagList *diags);

#endif
