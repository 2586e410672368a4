/* show/write_captured.h — a captured program's memory as text and JSON, newly allocated. */
#ifndef LS_SHOW_WRITE_CAPTURED_H
#define LS_SHOW_WRITE_CAPTURED_H

#include "ask/captured.h"

char *ls_captured_to_text (const LsCaptured *c);
char *ls_captured_to_json (const LsCaptured *c);
/* A test suite of one case, "fits", for continuous integration. command: what was captured. */
char *ls_captured_to_junit (const LsCaptured *c, const char *command);
/* Layouts of a program, a row each. */
char *ls_capture_layouts_to_text (const LsCaptureLayouts *layouts);
char *ls_capture_layouts_to_json (const LsCaptureLayouts *layouts);

#endif
