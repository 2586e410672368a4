#include "model/optimizer_kind.h"

/* --- ownership -------------------------------------------------------------------- */

static void
part_clear (LsOptimizerPart *part)
{
  for (guint i = 0; part->kernels && i < part->kernels->len; i++)
    g_free (g_array_index (part->kernels, LsOptimizerKernel, i).name);
  if (part->kernels)
    g_array_unref (part->kernels);
}

static void
kind_clear (gpointer data)
{
  LsOptimizerKind *kind = data;
  g_free (kind->name);
  g_free (kind->source);
  g_free (kind->note);
  for (guint i = 0; kind->parts && i < kind->parts->len; i++)
    part_clear (&g_array_index (kind->parts, LsOptimizerPart, i));
  if (kind->parts)
    g_array_unref (kind->parts);
}

LsOptimizerKind *
ls_optimizer_kind_new (void)
{
  return g_atomic_rc_box_new0 (LsOptimizerKind);
}

LsOptimizerKind *
ls_optimizer_kind_ref (LsOptimizerKind *kind)
{
  return kind ? g_atomic_rc_box_acquire (kind) : NULL;
}

void
ls_optimizer_kind_unref (LsOptimizerKind *kind)
{
  if (kind)
    g_atomic_rc_box_release_full (kind, kind_clear);
}

/* --- what it is --------------------------------------------------------------------- */

static const LsOptimizerPart *
part_at (const LsOptimizerKind *kind, guint i)
{
  return &g_array_index (kind->parts, LsOptimizerPart, i);
}

static const LsOptimizerKernel *
kernel_at (const LsOptimizerPart *part, guint i)
{
  return &g_array_index (part->kernels, LsOptimizerKernel, i);
}

bool
ls_optimizer_multiplies (const LsOptimizerKind *kind)
{
  for (guint p = 0; p < kind->parts->len; p++)
    for (guint i = 0; i < part_at (kind, p)->kernels->len; i++)
      if (kernel_at (part_at (kind, p), i)->bytes == 0)
        return true;
  return false;
}

bool
ls_optimizer_factors (const LsOptimizerKind *kind)
{
  for (guint p = 0; p < kind->parts->len; p++)
    if (part_at (kind, p)->row_bytes + part_at (kind, p)->column_bytes > 0)
      return true;
  return false;
}

bool
ls_optimizer_has_tiles (const LsOptimizerKind *kind)
{
  for (guint p = 0; p < kind->parts->len; p++)
    if (part_at (kind, p)->tile > 0)
      return true;
  return false;
}

double
ls_optimizer_least_state (const LsOptimizerKind *kind)
{
  double least = part_at (kind, 0)->state_bytes;
  for (guint p = 1; p < kind->parts->len; p++)
    least = MIN (least, part_at (kind, p)->state_bytes);
  return least;
}

uint64_t
ls_tensor_numel (const LsTensor *t)
{
  return t->rows * t->columns;
}

static bool
takes (const LsOptimizerPart *part, const LsTensor *t)
{
  bool fits = part->takes == LS_TAKES_ALL || t->kind == LS_TENSOR_MATRIX
      || (part->takes == LS_TAKES_2D && t->kind == LS_TENSOR_TABLE);
  return fits && ls_tensor_numel (t) >= part->min_elements;
}

const LsOptimizerPart *
ls_optimizer_part (const LsOptimizerKind *kind, const LsTensor *t)
{
  guint p = 0;
  while (!takes (part_at (kind, p), t))
    p++;
  return part_at (kind, p);
}

void
ls_optimizer_tiles (const LsOptimizerPart *part, const LsTensor *t, GArray *tiles)
{
  uint64_t tall = part->tile > 0 ? part->tile : t->rows, wide = part->tile > 0 ? part->tile : t->columns;
  for (uint64_t row = 0; row < t->rows; row += tall)
    for (uint64_t column = 0; column < t->columns; column += wide) {
      LsTensor tile = *t;
      tile.rows = MIN (tall, t->rows - row);
      tile.columns = MIN (wide, t->columns - column);
      g_array_append_val (tiles, tile);
    }
}

/* --- what it keeps -------------------------------------------------------------------- */

static bool
has_side (const LsOptimizerPart *part, uint64_t side)
{
  return side > 1 && (part->max_side == 0 || side <= part->max_side);
}

static double
squared (const LsOptimizerPart *part, uint64_t side)
{
  return has_side (part, side) ? (double) side * (double) side : 0;
}

uint64_t
ls_optimizer_state_bytes (const LsOptimizerPart *part, const LsTensor *t, uint64_t n)
{
  double bytes = part->state_bytes * (double) n;
  if (part->block > 0)
    bytes += part->block_bytes * (double) ((n + part->block - 1) / part->block);
  if (n == ls_tensor_numel (t))
    bytes += part->row_bytes * (double) t->rows + part->column_bytes * (double) t->columns
        + part->side_bytes * (squared (part, t->rows) + squared (part, t->columns));
  return (uint64_t) bytes;
}

/* --- what it runs ----------------------------------------------------------------------- */

static uint64_t
preconditioned (const LsOptimizerKernel *k, const LsTensor *t)
{
  return k->of == LS_SIDES_ROWS ? t->rows : t->columns;
}

static bool
applies (const LsOptimizerPart *part, const LsOptimizerKernel *k, const LsTensor *t)
{
  return k->of == LS_SIDES_NONE || has_side (part, preconditioned (k, t));
}

static uint64_t
side_of (int side, const LsTensor *t, LsTensorCut held)
{
  bool rows_are_short = held == LS_TENSOR_WHOLE ? t->rows <= t->columns : held == LS_TENSOR_COLUMNS;
  if (side == LS_SIDE_ROWS || side == LS_SIDE_COLUMNS)
    return side == LS_SIDE_ROWS ? t->rows : t->columns;
  return (side == LS_SIDE_SHORT) == rows_are_short ? t->rows : t->columns;
}

LsKernel
ls_optimizer_product (const LsOptimizerKernel *k, const LsTensor *t, LsTensorCut held)
{
  uint64_t depth = (uint64_t) (k->depth * (double) side_of (k->k, t, held) + 0.5);
  return ls_kernel_gemm (g_intern_string (k->name), (LsDtype) k->dtype, side_of (k->m, t, held),
                         side_of (k->n, t, held), MAX (depth, 1), 1, ls_dtype_bytes ((LsDtype) k->dtype),
                         k->adds);
}

LsKernel
ls_optimizer_stream (const LsOptimizerKernel *k, const LsTensor *t, uint64_t n)
{
  if (k->of != LS_SIDES_NONE)
    n = preconditioned (k, t) * preconditioned (k, t);
  LsKernel kernel = ls_kernel_stream (g_intern_string (k->name), LS_KERNEL_OPTIMIZER, LS_DTYPE_FP32, 1, n,
                                      k->bytes * (double) n, 0);
  kernel.access = (LsAccess) k->access;
  kernel.batch = 1;
  return kernel;
}

static double
work_of (const LsOptimizerKernel *k, const LsTensor *t)
{
  return k->bytes == 0 ? ls_optimizer_product (k, t, LS_TENSOR_WHOLE).flops
                       : ls_optimizer_stream (k, t, ls_tensor_numel (t)).bytes;
}

typedef struct {
  double work;
  guint i;
} Turn;

static gint
most_work_first (gconstpointer a, gconstpointer b)
{
  const Turn *x = a, *y = b;
  return x->work != y->work ? (x->work < y->work ? 1 : -1) : x->i < y->i ? -1 : x->i > y->i;
}

void
ls_optimizer_runs (const LsOptimizerPart *part, const LsOptimizerKernel *k, const LsTensor *const *tensors,
                   guint n, bool *ret_runs)
{
  g_autofree Turn *turns = g_new (Turn, n);
  guint n_turns = 0;
  for (guint i = 0; i < n; i++) {
    ret_runs[i] = applies (part, k, tensors[i]) && k->every == 1;
    if (applies (part, k, tensors[i]) && k->every > 1)
      turns[n_turns++] = (Turn) { work_of (k, tensors[i]), i };
  }
  qsort (turns, n_turns, sizeof *turns, most_work_first);
  double due = 0;
  for (guint j = 0; j < n_turns; j++) {
    due += turns[j].work / k->every;
    ret_runs[turns[j].i] = due >= turns[j].work / 2;
    due -= ret_runs[turns[j].i] ? turns[j].work : 0;
  }
}

double
ls_optimizer_flops (const LsOptimizerPart *part, const LsTensor *t)
{
  double flops = 0;
  for (guint i = 0; i < part->kernels->len; i++) {
    const LsOptimizerKernel *k = kernel_at (part, i);
    if (k->bytes == 0 && applies (part, k, t))
      flops += ls_optimizer_product (k, t, LS_TENSOR_WHOLE).flops * k->times / k->every;
  }
  return flops;
}
