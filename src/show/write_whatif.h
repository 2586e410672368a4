/* show/write_whatif.h — what single changes gain, for people and for programs. */
#ifndef LS_SHOW_WRITE_WHATIF_H
#define LS_SHOW_WRITE_WHATIF_H

#include "ask/whatif.h"
#include "data/text/json_out.h"

typedef struct {
  const char *title, *subtitle; /* borrowed */
  guint
      top; /* changes shown that gain and fit; 0: all changes, also those that gain nothing or were refused */
} LsWhatIfText;

/* Newly allocated, ending in a newline. JSON and CSV have all rows. */
char *ls_what_if_to_text (const LsWhatIf *w, const LsWhatIfText *text);
char *ls_what_if_to_json (const LsWhatIf *w);
char *ls_what_if_to_csv (const LsWhatIf *w);

/* A section of a summary: the first `top` changes that gain, with a heading. */
void ls_what_if_print_gains (const LsWhatIf *w, guint top, GString *out);

/* A table of the first `top` changes that fit, or that do not, with the memory that they save; top 0: of
 * all. */
void ls_what_if_print_savings (const LsWhatIf *w, bool that_fit, guint top, GString *out);
/* The keys of all of it, in the object that is open. */
void ls_json_what_if (LsJsonOut *out, const LsWhatIf *w);

#endif
