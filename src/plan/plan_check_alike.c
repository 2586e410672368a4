/* plan/plan_check_alike.c — programs whose events and buffers come and go alike: one is looked at for all.
 *
 * Problem. Where ranks have experts of different load each has a program of its own, which differs in shapes
 * and bytes only.
 *
 * Method. Two segments are of one shape if they record and wait for the same events and allocate and free the
 * same buffers, of the same categories, in the same order; two programs if their instances are, for the same
 * micro-batches and chunks. What check_lifetimes() finds right in one is right in the other, but for bytes: a
 * buffer is to be freed as what was allocated. That holds wherever all events of a program that have one
 * buffer id and chunk have the same bytes, else the program is looked at by itself. */
#include <string.h>

#include "plan/plan_check.h"

typedef struct {
  uint32_t role; /* + 1: whose; else nothing is known */
  uint64_t bytes;
} Bytes;

struct LsPlanShapes {
  const LsPlan *plan;
  uint32_t *shape;      /* [n_segments]                                             */
  GHashTable *programs; /* GBytes: those that were asked for                        */
  uint32_t *seen;       /* [n_segments * n_chunks] role + 1 that was last there     */
  Bytes *bytes;         /* [n_chunks * ID_END] of the role at hand                  */
};

#define ID_END (UINT16_MAX + 1u)

static void
append_shape (GByteArray *text, const LsOp *op)
{
  bool has_event = op->kind == LS_OP_RECORD || op->kind == LS_OP_WAIT;
  if (!has_event && op->n_buffers == 0)
    return;
  uint16_t head[] = { has_event ? op->kind : LS_OP_KERNEL, has_event ? op->event : 0, op->n_buffers };
  g_byte_array_append (text, (const guint8 *) head, sizeof head);
  for (uint32_t i = 0; i < op->n_buffers; i++) {
    const LsBufferEvent *b = &op->buffers[i];
    uint16_t buffer[] = { b->id, b->category, b->is_free };
    g_byte_array_append (text, (const guint8 *) buffer, sizeof buffer);
  }
}

static void
find_shapes (LsPlanShapes *x)
{
  g_autoptr (GHashTable) ids
      = g_hash_table_new_full (g_bytes_hash, g_bytes_equal, (GDestroyNotify) g_bytes_unref, NULL);
  for (uint32_t s = 0; s < x->plan->n_segments; s++) {
    const LsSegment *seg = &x->plan->segments[s];
    GByteArray *text = g_byte_array_new ();
    for (uint32_t o = 0; o < seg->n_ops; o++)
      append_shape (text, &seg->ops[o]);
    GBytes *key = g_byte_array_free_to_bytes (text);
    gpointer id = g_hash_table_lookup (ids, key);
    x->shape[s] = id ? GPOINTER_TO_UINT (id) : g_hash_table_size (ids) + 1;
    if (id)
      g_bytes_unref (key);
    else
      g_hash_table_insert (ids, key, GUINT_TO_POINTER (x->shape[s]));
  }
}

LsPlanShapes *
ls_plan_shapes_new (const LsPlan *plan)
{
  LsPlanShapes *x = g_new0 (LsPlanShapes, 1);
  x->plan = plan;
  x->shape = g_new (uint32_t, plan->n_segments + 1);
  x->programs = g_hash_table_new_full (g_bytes_hash, g_bytes_equal, (GDestroyNotify) g_bytes_unref, NULL);
  x->seen = g_new0 (uint32_t, (gsize) plan->n_segments * plan->n_chunks + 1);
  x->bytes = g_new0 (Bytes, (gsize) plan->n_chunks * ID_END + 1);
  find_shapes (x);
  return x;
}

void
ls_plan_shapes_free (LsPlanShapes *x)
{
  if (!x)
    return;
  g_free (x->shape);
  g_hash_table_unref (x->programs);
  g_free (x->seen);
  g_free (x->bytes);
  g_free (x);
}

static bool
is_new_name_or_same (LsPlanShapes *x, uint32_t role, uint16_t chunk, const LsBufferEvent *b)
{
  Bytes *known = &x->bytes[(gsize) chunk * ID_END + b->id];
  if (known->role == role + 1)
    return known->bytes == b->bytes;
  *known = (Bytes) { role + 1, b->bytes };
  return true;
}

/* All that one buffer id and chunk names has the same bytes. */
static bool
has_bytes_by_name (LsPlanShapes *x, uint32_t role)
{
  const LsProgram *p = &x->plan->programs[role];
  for (uint32_t i = 0; i < p->n_instances; i++) {
    const LsInstance *in = &p->instances[i];
    uint32_t *seen = &x->seen[(gsize) in->segment * x->plan->n_chunks + in->chunk];
    if (*seen == role + 1)
      continue;
    *seen = role + 1;
    const LsSegment *seg = &x->plan->segments[in->segment];
    for (uint32_t o = 0; o < seg->n_ops; o++)
      for (uint32_t b = 0; b < seg->ops[o].n_buffers; b++)
        if (!is_new_name_or_same (x, role, in->chunk, &seg->ops[o].buffers[b]))
          return false;
  }
  return true;
}

static GBytes *
shape_of_program (const LsPlanShapes *x, uint32_t role)
{
  const LsProgram *p = &x->plan->programs[role];
  gsize n = 2 + 3 * (gsize) p->n_instances;
  uint32_t *text = g_new (uint32_t, n), *end = text;
  *end++ = p->n_lead;
  *end++ = p->n_events;
  for (uint32_t i = 0; i < p->n_instances; i++) {
    *end++ = x->shape[p->instances[i].segment];
    *end++ = p->instances[i].mb;
    *end++ = p->instances[i].chunk;
  }
  return g_bytes_new_take (text, n * sizeof *text);
}

bool
ls_plan_shapes_is_known (LsPlanShapes *x, uint32_t role)
{
  GBytes *key = shape_of_program (x, role);
  bool is_known = g_hash_table_contains (x->programs, key);
  g_hash_table_add (x->programs, key);
  return is_known && has_bytes_by_name (x, role);
}
