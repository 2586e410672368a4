/* data/text/json_scan.h — is this text JSON (RFC 8259)? Strict, iterative, and exact
 * about where and why not.
 *
 * cJSON, which then builds the tree, recurses, reads "01" and raw control
 * characters, and says of an error only where it gave up. */
#ifndef LS_DATA_TEXT_JSON_SCAN_H
#define LS_DATA_TEXT_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#define LS_JSON_MAX_DEPTH 64

typedef struct {
  size_t offset;    /* of the offending byte             */
  char *message;    /* newly allocated                   */
  const char *hint; /* static, may be NULL               */
} LsJsonFault;

/* text: NUL-terminated valid UTF-8. On failure fills *reterr_fault, whose message
 * the caller frees. */
bool ls_json_scan (const char *text, LsJsonFault *reterr_fault);

#endif
