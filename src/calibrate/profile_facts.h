/* calibrate/profile_facts.h — what a profile of kernelbench says besides its kernels, by group and name of
 * its rows (private to calibrate/). */
#ifndef LS_CALIBRATE_PROFILE_FACTS_H
#define LS_CALIBRATE_PROFILE_FACTS_H

#include "data/measured/read_profile.h"

/* The last row of that name, the largest of its sizes; NULL: there is none. */
const LsProfileFact *ls_profile_fact (const LsProfile *profile, const char *group, const char *name);
/* "ratio=1.08" of a row's note; NaN: it is not there. */
double ls_profile_noted (const LsProfileFact *fact, const char *key);
/* Whether the note has that word: "variant=default". */
bool ls_profile_has_word (const LsProfileFact *fact, const char *word);
/* Mean of a value of the notes over the rows of a name that have it; NaN: there are none. */
double ls_profile_mean_noted (const LsProfile *profile, const char *group, const char *name, const char *key);

#endif
