/* io/write_memory.h — what ranks hold, for people and for programs (`memory --json`, names
 * of DESIGN.md section 9), and a picture of one rank over a step. */
#ifndef LS_IO_WRITE_MEMORY_H
#define LS_IO_WRITE_MEMORY_H

#include "analysis/headroom.h"
#include "analysis/memory_formulas.h"
#include "exec/memory.h"
#include "io/json_out.h"

/* A class of ranks. */
typedef struct {
  const LsClassMemory *m; /* borrowed */
  uint32_t stage;         /* of the pipeline */
  uint32_t peak_mb;       /* micro-batch of the op at the peak */
  const char *peak_segment, *peak_op; /* borrowed; NULL: before the first of the step */
  LsMemoryFormula formula;
} LsMemoryRow;

/* A change of the job that makes it fit. */
typedef struct {
  char *change;          /* "--recompute full --zero 1" */
  double step_time_s;
  uint64_t needed_bytes; /* of its fullest rank */
} LsMemoryChange;

typedef struct {
  uint64_t short_bytes;  /* what is missing    */
  double step_time_s;    /* of the job as it is, simulated as the changes are */
  GArray *changes;       /* LsMemoryChange, fastest first */
  bool is_simple;        /* single changes are enough, and keep all on the GPU */
  guint n_simulated;     /* changes tried  */
  guint n_left_out;      /* pairs that might do and were not tried */
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

/* "These single changes make it fit ...", a table; nothing for NULL. */
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
