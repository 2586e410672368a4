/* data/text/json_scan.h — is this text JSON, and if not, where not; JSON as people write it by hand.
 *
 * cJSON, which then builds the tree, recurses, reads "01" and raw control
 * characters, and says of an error only where it gave up. */
#ifndef LS_DATA_TEXT_JSON_SCAN_H
#define LS_DATA_TEXT_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "data/text/json_doc.h"

#define LS_JSON_MAX_DEPTH 64

typedef struct {
  size_t offset;    /* of the offending byte             */
  char *message;    /* newly allocated                   */
  const char *hint; /* static, may be NULL               */
} LsJsonFault;

/* text: NUL-terminated valid UTF-8. On failure fills *reterr_fault, whose message
 * the caller frees. */
bool ls_json_scan (const char *text, LsJsonFault *reterr_fault);

/* JSON as people write it by hand: with comments, commas behind the last item, and words where a
 * script puts values. */

/* Comments ("//", "#", of C) and commas behind the last item are passed over, as Hjson does, which DeepSpeed
 * loads; words without quotes (CONFIG_BATCH_SIZE, ${MICRO}) become texts "${CONFIG_BATCH_SIZE}", "${MICRO}".
 * Lines stay where they are. NULL and diagnostics if the rest is no JSON. */
LsJsonDoc *relaxed_json_parse (const char *text, gsize n, const char *name, LsDiagList *diags);

/* Infinity and -Infinity, which Python writes where it has one, become null, as long as they were. */
void ls_json_blank_infinities (char *text);

#endif
