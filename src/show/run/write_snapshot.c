/* show/run/write_snapshot.c — what PyTorch's allocator does on ranks of a job, as a memory snapshot: the
 * file that torch.cuda.memory._dump_snapshot() writes, which pytorch.org/memory_viz and
 * torch/cuda/_memory_viz.py show.
 *
 * Each rank is a device, in the order given. A frame has a name, a file and a line: the frames of a block are
 *
 *     layer:3:activations: fc1              what it is, made by which op of which layer
 *     micro-batch:5:forward 8 layers        the pass that made it
 *     stage:1:rank 8                        where
 *
 * Parameters are a block for each layer; of those cut over data parallelism its share. What is held for the
 * whole run is one allocation for the allocator, and so lies in one segment.
 *
 * Reference: PyTorch, torch/csrc/cuda/memory_snapshot.cpp, torch/cuda/_memory_viz.py. */
#include "show/run/write_run.h"

#include "base/list.h"
#include "data/text/pickle_out.h"
#include "data/text/write_file.h"

#define NO_PART UINT32_MAX
#define UNIT    512 /* of blocks: exec/memory/allocator.h */

/* Addresses of one device are apart from those of the next, and not 0. */
#define FIRST_ADDRESS (INT64_C (1) << 46)

/* An event, or a block of a segment, or what is drawn of it as one. */
typedef struct {
  const LsSnapshot *s;
  const LsSnapshotDevice *device;
  const LsMemoryEvent *event;
  const LsHistoryBlock *block;
  LsBlockUse use;
  uint64_t address, size, requested;
  uint32_t part; /* index in parts of the device, or NO_PART */
} Piece;

/* Blocks that lie behind each other, and sums of their bytes. */
typedef struct {
  guint device;
  const LsHistoryBlock *blocks;
  guint n;
  uint64_t total, allocated, active, requested;
} Segment;

/* --- frames ---------------------------------------------------------------------------- */

/* Where, a number, and what: "layer", 3, "fc1". */
typedef struct {
  char *where, *what;
  uint32_t line;
} Frame;

static void
add_frame (GArray *frames, char *where, uint32_t line, char *what)
{
  ls_list_add (frames, &(Frame) { where, what, line });
}

static void
add_part_frame (const Piece *p, GArray *frames, const char *category)
{
  uint32_t layer = g_array_index (p->device->parts, LsRankPart, p->part).layer;
  if (layer < LS_PART_EMBEDDING)
    add_frame (frames, g_strdup ("layer"), layer, g_strdup (category));
  else
    add_frame (frames, g_strdup ("model"), 0,
               g_strdup_printf ("%s: %s", category, layer == LS_PART_HEAD ? "head" : "embedding"));
}

static void
add_op_frame (const Piece *p, GArray *frames, const char *category, const LsOp *op, const LsInstance *i)
{
  char *what = g_strdup_printf ("%s: %s", category, op->name ? op->name : "op");
  if (op->layer != UINT16_MAX && p->s->first_layers)
    add_frame (frames, g_strdup ("layer"), p->s->first_layers[i->stage] + op->layer, what);
  else if (op->layer != UINT16_MAX)
    add_frame (frames, g_strdup_printf ("chunk %u, layer", i->chunk), op->layer, what);
  else if (op->unit != UINT16_MAX)
    add_frame (frames, g_strdup ("bucket"), op->unit, what);
  else
    add_frame (frames, g_strdup ("model"), 0, what);
}

static GArray *
frames_of (const Piece *p)
{
  GArray *frames = ls_list_new (sizeof (Frame), ls_clear_2_texts);
  if (!p || p->use.category == LS_N_MEM)
    return frames;
  const LsPlan *plan = p->s->plan;
  const char *category = ls_mem_category_names[p->use.category].name;
  const LsProgram *program = &plan->programs[ls_plan_role (plan, p->device->history->rank)];
  if (p->use.op) {
    const LsInstance *i = &program->instances[p->use.instance];
    add_op_frame (p, frames, category, p->use.op, i);
    add_frame (frames, g_strdup ("micro-batch"), i->mb, g_strdup (plan->segments[i->segment].name));
  } else {
    if (p->part != NO_PART)
      add_part_frame (p, frames, category);
    else
      add_frame (frames, g_strdup ("model"), 0, g_strdup (category));
    add_frame (frames, g_strdup ("step"), 0, g_strdup ("held throughout"));
  }
  add_frame (frames, g_strdup ("stage"), program->stage, g_strdup_printf ("rank %u", p->device->rank));
  return frames;
}

/* The list of frames, empty where the use is not known; where it was written before, that. written: char *,
 * what they say -> number of the object, + 1. */
static void
write_frames (LsPickleOut *w, GHashTable *written, const Piece *p)
{
  g_autoptr (GArray) frames = frames_of (p);
  GString *key = g_string_new (NULL);
  for (guint i = 0; i < frames->len; i++) {
    const Frame *f = &g_array_index (frames, Frame, i);
    g_string_append_printf (key, "%s\n%u\n%s\n", f->where, f->line, f->what);
  }
  g_autofree char *text = g_string_free (key, FALSE);
  gpointer known = g_hash_table_lookup (written, text);
  if (known) {
    ls_pickle_out_again (w, "frames", GPOINTER_TO_UINT (known) - 1);
    return;
  }
  ls_pickle_out_begin_array (w, "frames");
  for (guint i = 0; i < frames->len; i++) {
    const Frame *f = &g_array_index (frames, Frame, i);
    ls_pickle_out_begin_object (w, NULL);
    ls_pickle_out_string (w, "name", f->what);
    ls_pickle_out_string (w, "filename", f->where);
    ls_pickle_out_int (w, "line", f->line);
    ls_pickle_out_end_object (w);
  }
  ls_pickle_out_end_array (w);
  g_hash_table_insert (written, g_steal_pointer (&text), GUINT_TO_POINTER (ls_pickle_out_keep (w) + 1));
}

static uint64_t
address_of (guint device, uint64_t address)
{
  return (uint64_t) (device + 1) * FIRST_ADDRESS + address;
}

/* --- pieces: parameters by layer ------------------------------------------------------------ */

static uint64_t
count_params (const GArray *parts)
{
  uint64_t n = 0;
  for (guint i = 0; i < parts->len; i++)
    n += g_array_index (parts, LsRankPart, i).n_params;
  return n;
}

/* Cuts a block of parameters in the ratio of those of its parts, at whole units. Returns whether it did. */
static bool
cut (GArray *pieces, const Piece *whole)
{
  const GArray *parts = whole->device->parts;
  double n = (double) count_params (parts), sum = 0;
  uint64_t begin = 0;
  for (guint i = 0; i < parts->len && n > 0; i++) {
    sum += (double) g_array_index (parts, LsRankPart, i).n_params;
    uint64_t end = (uint64_t) (sum / n * (double) whole->requested) / UNIT * UNIT;
    bool is_last = i + 1 == parts->len;
    end = MIN (is_last ? whole->size : end, whole->size);
    if (end <= begin)
      continue;
    Piece p = *whole;
    p.address = whole->address + begin;
    p.size = end - begin;
    p.requested = is_last ? whole->requested - begin : end - begin;
    p.part = i;
    g_array_append_val (pieces, p);
    begin = end;
  }
  return begin > 0;
}

static void
add_pieces (GArray *pieces, const Piece *whole, bool is_block)
{
  bool is_held = is_block && !whole->use.op && whole->use.category == LS_MEM_PARAMETERS;
  if (!is_held || !cut (pieces, whole))
    g_array_append_vals (pieces, whole, 1);
}

static bool
is_of_block (const LsMemoryEvent *e)
{
  return e->action <= LS_ACTION_FREE_COMPLETED;
}

static GArray *
pieces_of_trace (const LsSnapshot *s, guint device)
{
  const LsSnapshotDevice *d = &s->devices[device];
  GArray *pieces = g_array_new (FALSE, FALSE, sizeof (Piece));
  for (guint i = 0; i < d->history->events->len; i++) {
    const LsMemoryEvent *e = &g_array_index (d->history->events, LsMemoryEvent, i);
    const Piece whole = { s, d, e, NULL, e->use, e->address, e->size, e->size, NO_PART };
    add_pieces (pieces, &whole, is_of_block (e));
  }
  return pieces;
}

static GArray *
pieces_of_segment (const LsSnapshot *s, const Segment *x)
{
  static const LsBlockUse nobody = { .category = LS_N_MEM };
  GArray *pieces = g_array_new (FALSE, FALSE, sizeof (Piece));
  for (guint i = 0; i < x->n; i++) {
    const LsHistoryBlock *b = &x->blocks[i];
    const Piece whole = {
      s,       &s->devices[x->device], NULL,   b, b->state == LS_BLOCK_FREE ? nobody : b->use, b->address,
      b->size, b->requested,           NO_PART
    };
    add_pieces (pieces, &whole, true);
  }
  return pieces;
}

static Segment
segment_of (guint device, const LsHistoryBlock *blocks, guint n)
{
  Segment x = { device, blocks, n, 0, 0, 0, 0 };
  for (guint i = 0; i < n; i++) {
    x.total += blocks[i].size;
    x.allocated += blocks[i].state == LS_BLOCK_IN_USE ? blocks[i].size : 0;
    x.active += blocks[i].state != LS_BLOCK_FREE ? blocks[i].size : 0;
    x.requested += blocks[i].state != LS_BLOCK_FREE ? blocks[i].requested : 0;
  }
  return x;
}

static GArray *
segments_of (const LsSnapshot *s)
{
  GArray *segments = g_array_new (FALSE, FALSE, sizeof (Segment));
  for (guint d = 0; d < s->n_devices; d++) {
    const GArray *blocks = s->devices[d].history->blocks;
    for (guint from = 0, to = 1; from < blocks->len; from = to++) {
      while (to < blocks->len && !g_array_index (blocks, LsHistoryBlock, to).begins_segment)
        to++;
      const Segment x = segment_of (d, &g_array_index (blocks, LsHistoryBlock, from), to - from);
      g_array_append_val (segments, x);
    }
  }
  return segments;
}

static const char *const states[] = { [LS_BLOCK_FREE] = "inactive",
                                      [LS_BLOCK_IN_USE] = "active_allocated",
                                      [LS_BLOCK_PENDING] = "active_pending_free" };

#include "show/snapshot_keys.h"

static gboolean
write_all (FILE *file, void *data, GError **error)
{
  g_autoptr (GHashTable) written = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  LsPickleOut w;
  ls_pickle_out_begin (&w, file);
  ls_pickle_out_begin_object (&w, NULL);
  ls_keys_snapshot (&w, data, written);
  ls_pickle_out_end_object (&w);
  ls_pickle_out_finish (&w);
  return TRUE;
}

gboolean
ls_snapshot_write (const LsSnapshot *s, const char *path, GError **error)
{
  return ls_write_file (path, write_all, (gpointer) s, error);
}
