/* data/text/lookalikes.h — files of other programs that people try, known by what stands in them, and what
 * reads them, or what is read in their place. */
#ifndef LS_DATA_TEXT_LOOKALIKES_H
#define LS_DATA_TEXT_LOOKALIKES_H

/* A sentence, static; NULL: like nothing that is known. */
const char *ls_lookalike_hint (const char *text);

#endif
