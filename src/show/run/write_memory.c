/* show/run/write_memory.c — what ranks hold, whether it fits, next to formulas, and advice. */
#include "show/run/write_run.h"

#include <math.h>

#include "job/assumptions.h"

static const LsMemoryRow *
row_at (const LsMemoryTable *t, guint i)
{
  return &g_array_index (t->rows, LsMemoryRow, i);
}

static double
states_of (const uint64_t bytes[LS_N_MEM])
{
  return (double) (bytes[LS_MEM_PARAMETERS] + bytes[LS_MEM_GRADIENTS] + bytes[LS_MEM_OPTIMIZER]);
}

static double
states_formula (const LsMemoryFormula *f)
{
  return f->parameters + f->gradients + f->optimizer;
}

/* Whether accelerators of several sizes hold it. */
static bool
has_kinds (const LsMemoryTable *t)
{
  for (guint i = 0; i < t->rows->len; i++)
    if (g_array_index (t->rows, LsMemoryRow, i).m->capacity_bytes != t->capacity_bytes)
      return true;
  return false;
}

static bool
is_caching (const LsMemoryTable *t)
{
  return t->memory->options.allocator == LS_MEMORY_CACHING;
}

/* Whether some rank does. */
static bool
is_held (const LsMemoryTable *t, LsMemCategory category)
{
  bool is_there = false;
  for (guint i = 0; i < t->rows->len; i++)
    is_there |= row_at (t, i)->m->category_peak[category] > 0;
  return is_there;
}

/* By which part what is simulated exceeds a formula; NaN: there is none. */
static double
excess (double formula, double simulated)
{
  return isnan (formula) ? NAN : formula > 0 ? simulated / formula - 1 : 0;
}

static bool
any_formula (const LsMemoryTable *t)
{
  for (guint i = 0; i < t->rows->len; i++)
    if (!isnan (states_formula (&row_at (t, i)->formula)))
      return true;
  return false;
}

static uint64_t
needed_bytes (const LsMemoryTable *t)
{
  return ls_memory_fullest (t->memory)->needed_bytes;
}

#include "show/memory_text.h"

/* --- JSON ------------------------------------------------------------------------ */

void
ls_json_advice (LsJsonOut *w, const LsWhatIf *a)
{
  ls_json_out_uint (w, "n_left_out", a->n_untried);
  ls_json_what_if (w, a);
}

#include "show/memory_keys.h"
