/* show/run/write_memory.h — what ranks hold, for people and for programs (`memory --json`),
 * and a picture of one rank over a step. */
#ifndef LS_SHOW_RUN_WRITE_MEMORY_H
#define LS_SHOW_RUN_WRITE_MEMORY_H

#include "ask/memory_view.h"
#include "show/write_whatif.h"

/* "These changes make it fit ...", a table; nothing for NULL. */
void ls_memory_advice_print (const LsMemoryAdvice *a, GString *out);
/* The key "advice" of the object that is open; nothing for NULL. */
void ls_json_advice (LsJsonOut *w, const LsMemoryAdvice *a);

/* Newly allocated, ending in a newline. */
char *ls_memory_to_text (const LsMemoryTable *t);
char *ls_memory_to_json (const LsMemoryTable *t);
char *ls_memory_to_csv (const LsMemoryTable *t);

#endif
