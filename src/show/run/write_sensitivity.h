/* show/run/write_sensitivity.h — how a step follows the hardware, for people and for programs. */
#ifndef LS_SHOW_RUN_WRITE_SENSITIVITY_H
#define LS_SHOW_RUN_WRITE_SENSITIVITY_H

#include "ask/sensitivity.h"
#include "data/text/json_out.h"

/* Appends a section of a summary (show/run/write_summary.h), longest bar first. is_ascii: no block
 * characters. */
void ls_sensitivity_to_text (const LsSensitivityTable *t, bool is_color, bool is_ascii, GString *out);

/* The member "sensitivity" of an object. */
void ls_sensitivity_to_json (const LsSensitivityTable *t, LsJsonOut *w);

#endif
