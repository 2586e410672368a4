/* io/write_memory.h — what ranks hold, for people and for programs (`memory --json`, names
 * of DESIGN.md section 9), and a picture of one rank over a step. */
#ifndef LS_IO_WRITE_MEMORY_H
#define LS_IO_WRITE_MEMORY_H

#include "analysis/headroom.h"
#include "analysis/memory_formulas.h"
#include "exec/memory.h"
#include "io/write_whatif.h"

/* A class of ranks. */
typedef struct {
  const LsClassMemory *m; /* borrowed */
  uint32_t stage;         /* of the pipeline */
  uint32_t peak_mb;       /* micro-batch of the op at the peak */
  const char *peak_segment, *peak_op; /* borrowed; NULL: before the first of the step */
  LsMemoryFormula formula;
} LsMemoryRow;

#define LS_ADVICE_MAX_CHANGES 4 /* that are tried together */
#define LS_ADVICE_N_NEAREST 5   /* that are told where none is enough */

/* What would make the job fit. */
typedef struct {
  LsWhatIf *tried;  /* the job as it is, short of memory; rows: what is too much for the least memory first, then the fastest */
  guint n_left_out; /* changes that might do and were not simulated */
} LsMemoryAdvice;

void ls_memory_advice_free (LsMemoryAdvice *advice); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsMemoryAdvice, ls_memory_advice_free)

typedef struct {
  const char *title, *subtitle; /* borrowed */
  const LsMemory *memory;       /* borrowed */
  GArray *rows;                 /* LsMemoryRow */
  double step_time_s;
  uint64_t capacity_bytes, context_bytes;
  bool fits;
  const LsHeadroom *headroom; /* borrowed */
  const LsMemoryAdvice *advice; /* borrowed; NULL: not asked for */
} LsMemoryTable;

/* "These changes make it fit ...", a table; nothing for NULL. */
void ls_memory_advice_print (const LsMemoryAdvice *a, GString *out);
/* The key "advice" of the object that is open; nothing for NULL. */
void ls_json_advice (LsJsonOut *w, const LsMemoryAdvice *a);

void ls_memory_table_clear (LsMemoryTable *t);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LsMemoryTable, ls_memory_table_clear)

/* Newly allocated, ending in a newline. */
char *ls_memory_to_text (const LsMemoryTable *t);
char *ls_memory_to_json (const LsMemoryTable *t);
char *ls_memory_to_csv (const LsMemoryTable *t);

#endif
