/* io/write_whatif.h — what single changes gain, for people and for programs. */
#ifndef LS_IO_WRITE_WHATIF_H
#define LS_IO_WRITE_WHATIF_H

#include <stdbool.h>
#include <stdint.h>

#include "io/json_out.h"

/* A change, simulated or refused. */
typedef struct {
  char *change;     /* options to append: "--schedule zb-h1"; NULL: none, the job itself */
  const char *idea; /* static: what kind of change                                       */
  const char *cost; /* static: what it takes beside time and memory; NULL: nothing       */
  char *refused;    /* why it was not simulated; NULL: it was, and what follows holds    */
  double step_time_s, tokens_per_s;
  double gain;      /* share of tokens/s more than the job has                           */
  uint64_t needed_bytes, capacity_bytes; /* of the fullest rank                          */
  uint64_t short_bytes; /* of the capacity, less the headroom that is asked for; 0: it fits */
  bool fits;
  double usd_per_million_tokens; /* NAN: no price is known                               */
  guint number;     /* in the order in which changes are proposed                        */
} LsWhatIfRow;

typedef struct {
  LsWhatIfRow now; /* the job as it is */
  GArray *rows;    /* LsWhatIfRow: most gain first, then those that were refused; or as somebody else ranks them */
  const char *left_out; /* static: a sentence on changes that were not proposed, and why; NULL: all were */
} LsWhatIf;

void ls_what_if_free (LsWhatIf *w); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsWhatIf, ls_what_if_free)

typedef struct {
  const char *title, *subtitle; /* borrowed */
  guint top;                    /* changes shown that gain and fit; 0: all changes, also those that gain nothing or were refused */
} LsWhatIfText;

/* Newly allocated, ending in a newline. JSON and CSV have all rows. */
char *ls_what_if_to_text (const LsWhatIf *w, const LsWhatIfText *text);
char *ls_what_if_to_json (const LsWhatIf *w);
char *ls_what_if_to_csv (const LsWhatIf *w);

guint ls_what_if_n_fit (const LsWhatIf *w);
/* A table of the first `top` changes that fit, or that do not, with the memory that they save; top 0: of all. */
void ls_what_if_print_savings (const LsWhatIf *w, bool that_fit, guint top, GString *out);
/* The keys of all of it, in the object that is open. */
void ls_json_what_if (LsJsonOut *out, const LsWhatIf *w);

#endif
