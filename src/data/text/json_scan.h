/* data/text/json_scan.h — JSON as people write it by hand: with comments, commas behind the last item, and
 * words where a script puts values. */
#ifndef LS_DATA_TEXT_JSON_SCAN_H
#define LS_DATA_TEXT_JSON_SCAN_H

#include "data/text/json_doc.h"

/* Comments ("//", "#", of C) and commas behind the last item are passed over, as Hjson does, which DeepSpeed
 * loads; words without quotes (CONFIG_BATCH_SIZE, ${MICRO}) become texts "${CONFIG_BATCH_SIZE}", "${MICRO}".
 * Lines stay where they are. NULL and diagnostics if the rest is no JSON. */
LsJsonDoc *relaxed_json_parse (const char *text, gsize n, const char *name, LsDiagList *diags);

/* Infinity and -Infinity, which Python writes where it has one, become null, as long as they were. */
void ls_json_blank_infinities (char *text);

#endif
