#include "show/run/write_snapshot.h"

#include "data/text/pickle_out.h"
#include "data/text/write_file.h"

#define NO_PART UINT32_MAX
#define UNIT    512 /* of blocks: exec/memory/allocator.h */

/* Addresses of one device are apart from those of the next, and not 0. */
#define FIRST_ADDRESS (INT64_C (1) << 46)

typedef struct {
  const LsSnapshot *s;
  const LsSnapshotDevice *device;
  guint number; /* of the device */
  LsPickleOut out;
  GHashTable *frames; /* char *, what they say -> number of the object, + 1 */
} Writer;

/* A block, or what is drawn of it as one. */
typedef struct {
  uint64_t address, size, requested;
  uint32_t part; /* index in parts of the device, or NO_PART */
} Piece;

static const LsBlockUse nobody = { .category = LS_N_MEM };

/* --- frames ---------------------------------------------------------------------------- */

/* Where, a number, and what: "layer", 3, "fc1". */
typedef struct {
  char *where, *what;
  uint32_t line;
} Frame;

static void
clear_frame (gpointer frame)
{
  Frame *f = frame;
  g_free (f->where);
  g_free (f->what);
}

static void
add_frame (GArray *frames, char *where, uint32_t line, char *what)
{
  Frame f = { where, what, line };
  g_array_append_val (frames, f);
}

static void
add_part_frame (const Writer *w, GArray *frames, const char *category, uint32_t part)
{
  uint32_t layer = g_array_index (w->device->parts, LsRankPart, part).layer;
  if (layer < LS_PART_EMBEDDING)
    add_frame (frames, g_strdup ("layer"), layer, g_strdup (category));
  else
    add_frame (frames, g_strdup ("model"), 0,
               g_strdup_printf ("%s: %s", category, layer == LS_PART_HEAD ? "head" : "embedding"));
}

static void
add_op_frame (const Writer *w, GArray *frames, const char *category, const LsOp *op, const LsInstance *i)
{
  char *what = g_strdup_printf ("%s: %s", category, op->name ? op->name : "op");
  if (op->layer != UINT16_MAX && w->s->first_layers)
    add_frame (frames, g_strdup ("layer"), w->s->first_layers[i->stage] + op->layer, what);
  else if (op->layer != UINT16_MAX)
    add_frame (frames, g_strdup_printf ("chunk %u, layer", i->chunk), op->layer, what);
  else if (op->unit != UINT16_MAX)
    add_frame (frames, g_strdup ("bucket"), op->unit, what);
  else
    add_frame (frames, g_strdup ("model"), 0, what);
}

static GArray *
frames_of (const Writer *w, LsBlockUse use, uint32_t part)
{
  GArray *frames = g_array_new (FALSE, FALSE, sizeof (Frame));
  g_array_set_clear_func (frames, clear_frame);
  if (use.category == LS_N_MEM)
    return frames;
  const char *category = ls_mem_category_names[use.category].name;
  const LsProgram *p = &w->s->plan->programs[ls_plan_role (w->s->plan, w->device->history->rank)];
  if (use.op) {
    const LsInstance *i = &p->instances[use.instance];
    add_op_frame (w, frames, category, use.op, i);
    add_frame (frames, g_strdup ("micro-batch"), i->mb, g_strdup (w->s->plan->segments[i->segment].name));
  } else {
    if (part != NO_PART)
      add_part_frame (w, frames, category, part);
    else
      add_frame (frames, g_strdup ("model"), 0, g_strdup (category));
    add_frame (frames, g_strdup ("step"), 0, g_strdup ("held throughout"));
  }
  add_frame (frames, g_strdup ("stage"), p->stage, g_strdup_printf ("rank %u", w->device->rank));
  return frames;
}

static void
write_frame (LsPickleOut *out, const Frame *f)
{
  ls_pickle_out_begin_dict (out);
  ls_pickle_out_text (out, "name");
  ls_pickle_out_text (out, f->what);
  ls_pickle_out_text (out, "filename");
  ls_pickle_out_text (out, f->where);
  ls_pickle_out_text (out, "line");
  ls_pickle_out_int (out, f->line);
  ls_pickle_out_end (out);
}

/* The list of frames, empty where the use is not known; where it was written before, that. */
static void
write_frames (Writer *w, LsBlockUse use, uint32_t part)
{
  g_autoptr (GArray) frames = frames_of (w, use, part);
  GString *key = g_string_new (NULL);
  for (guint i = 0; i < frames->len; i++) {
    const Frame *f = &g_array_index (frames, Frame, i);
    g_string_append_printf (key, "%s\n%u\n%s\n", f->where, f->line, f->what);
  }
  g_autofree char *text = g_string_free (key, FALSE);
  gpointer known = g_hash_table_lookup (w->frames, text);
  ls_pickle_out_text (&w->out, "frames");
  if (known) {
    ls_pickle_out_again (&w->out, GPOINTER_TO_UINT (known) - 1);
    return;
  }
  ls_pickle_out_begin_list (&w->out);
  for (guint i = 0; i < frames->len; i++)
    write_frame (&w->out, &g_array_index (frames, Frame, i));
  ls_pickle_out_end (&w->out);
  g_hash_table_insert (w->frames, g_steal_pointer (&text),
                       GUINT_TO_POINTER (ls_pickle_out_keep (&w->out) + 1));
}

/* --- members ----------------------------------------------------------------------------- */

static void
write_int (Writer *w, const char *key, uint64_t value)
{
  ls_pickle_out_text (&w->out, key);
  ls_pickle_out_int (&w->out, (int64_t) value);
}

static void
write_text (Writer *w, const char *key, const char *value)
{
  ls_pickle_out_text (&w->out, key);
  ls_pickle_out_text (&w->out, value);
}

static void
write_bool (Writer *w, const char *key, bool value)
{
  ls_pickle_out_text (&w->out, key);
  ls_pickle_out_bool (&w->out, value);
}

static void
write_address (Writer *w, const char *key, uint64_t address)
{
  write_int (w, key, (uint64_t) (w->number + 1) * FIRST_ADDRESS + address);
}

/* --- parameters by layer ------------------------------------------------------------------- */

static uint64_t
count_params (const GArray *parts)
{
  uint64_t n = 0;
  for (guint i = 0; i < parts->len; i++)
    n += g_array_index (parts, LsRankPart, i).n_params;
  return n;
}

/* Cuts a block of parameters in the ratio of those of its parts, at whole units. */
static void
cut (const Writer *w, GArray *pieces, Piece whole)
{
  const GArray *parts = w->device->parts;
  double n = (double) count_params (parts), sum = 0;
  uint64_t begin = 0;
  for (guint i = 0; i < parts->len && n > 0; i++) {
    sum += (double) g_array_index (parts, LsRankPart, i).n_params;
    uint64_t end = (uint64_t) (sum / n * (double) whole.requested) / UNIT * UNIT;
    bool is_last = i + 1 == parts->len;
    end = MIN (is_last ? whole.size : end, whole.size);
    if (end <= begin)
      continue;
    Piece p = { whole.address + begin, end - begin, is_last ? whole.requested - begin : end - begin, i };
    g_array_append_val (pieces, p);
    begin = end;
  }
}

/* Piece: what is drawn of a block. */
static GArray *
pieces_of (const Writer *w, LsBlockUse use, Piece whole)
{
  GArray *pieces = g_array_new (FALSE, FALSE, sizeof (Piece));
  if (!use.op && use.category == LS_MEM_PARAMETERS)
    cut (w, pieces, whole);
  if (pieces->len == 0)
    g_array_append_val (pieces, whole);
  return pieces;
}

/* --- the trace ------------------------------------------------------------------------------- */

static const char *
category_of (const LsMemoryEvent *e)
{
  bool is_block = e->action <= LS_ACTION_FREE_COMPLETED;
  return is_block ? ls_mem_category_names[e->use.category].name : "unknown";
}

/* MemoryViz needs "unknown" among the categories if there are any: those of segments. */
static void
write_entry (Writer *w, const LsMemoryEvent *e, const Piece *p)
{
  ls_pickle_out_begin_dict (&w->out);
  write_text (w, "action", ls_memory_action_name ((LsMemoryAction) e->action));
  if (e->action == LS_ACTION_OOM)
    write_int (w, "device_free", e->device_free);
  else if (e->action == LS_ACTION_SNAPSHOT)
    write_int (w, "addr", 0);
  else
    write_address (w, "addr", p->address);
  write_int (w, "size", p->requested);
  write_int (w, "stream", e->stream);
  write_int (w, "time_us", (uint64_t) (w->device->history->is_timed ? e->at / LS_US : e->at));
  write_text (w, "category", category_of (e));
  write_frames (w, e->use, p->part);
  ls_pickle_out_end (&w->out);
}

static void
write_event (Writer *w, const LsMemoryEvent *e)
{
  Piece whole = { e->address, e->size, e->size, NO_PART };
  bool is_block = e->action <= LS_ACTION_FREE_COMPLETED;
  if (!is_block) {
    write_entry (w, e, &whole);
    return;
  }
  g_autoptr (GArray) pieces = pieces_of (w, e->use, whole);
  for (guint i = 0; i < pieces->len; i++)
    write_entry (w, e, &g_array_index (pieces, Piece, i));
}

static void
select_device (Writer *w, guint i)
{
  w->number = i;
  w->device = &w->s->devices[i];
}

static void
write_traces (Writer *w)
{
  ls_pickle_out_text (&w->out, "device_traces");
  ls_pickle_out_begin_list (&w->out);
  for (guint d = 0; d < w->s->n_devices; d++) {
    select_device (w, d);
    const GArray *events = w->device->history->events;
    ls_pickle_out_begin_list (&w->out);
    for (guint i = 0; i < events->len; i++)
      write_event (w, &g_array_index (events, LsMemoryEvent, i));
    ls_pickle_out_end (&w->out);
  }
  ls_pickle_out_end (&w->out);
}

/* --- segments ---------------------------------------------------------------------------------- */

static void
write_block (Writer *w, const LsHistoryBlock *b)
{
  static const char *const states[] = { [LS_BLOCK_FREE] = "inactive",
                                        [LS_BLOCK_IN_USE] = "active_allocated",
                                        [LS_BLOCK_PENDING] = "active_pending_free" };
  LsBlockUse use = b->state == LS_BLOCK_FREE ? nobody : b->use;
  Piece whole = { b->address, b->size, b->requested, NO_PART };
  g_autoptr (GArray) pieces = pieces_of (w, use, whole);
  for (guint i = 0; i < pieces->len; i++) {
    const Piece *p = &g_array_index (pieces, Piece, i);
    ls_pickle_out_begin_dict (&w->out);
    write_address (w, "address", p->address);
    write_int (w, "size", p->size);
    write_int (w, "requested_size", p->requested);
    write_text (w, "state", states[b->state]);
    write_frames (w, use, p->part);
    ls_pickle_out_end (&w->out);
  }
}

/* allocated: in use; active: these, and those that are pending. */
static void
write_sums (Writer *w, const LsHistoryBlock *blocks, guint n)
{
  uint64_t total = 0, allocated = 0, active = 0, requested = 0;
  for (guint i = 0; i < n; i++) {
    total += blocks[i].size;
    allocated += blocks[i].state == LS_BLOCK_IN_USE ? blocks[i].size : 0;
    active += blocks[i].state != LS_BLOCK_FREE ? blocks[i].size : 0;
    requested += blocks[i].state != LS_BLOCK_FREE ? blocks[i].requested : 0;
  }
  write_int (w, "total_size", total);
  write_int (w, "allocated_size", allocated);
  write_int (w, "active_size", active);
  write_int (w, "requested_size", requested);
}

static void
write_segment (Writer *w, const LsHistoryBlock *blocks, guint n)
{
  ls_pickle_out_begin_dict (&w->out);
  write_int (w, "device", w->number);
  write_address (w, "address", blocks->address);
  write_sums (w, blocks, n);
  write_int (w, "stream", blocks->stream);
  write_text (w, "segment_type", blocks->is_small ? "small" : "large");
  ls_pickle_out_text (&w->out, "segment_pool_id");
  ls_pickle_out_pair (&w->out, 0, 0);
  write_bool (w, "is_expandable", false);
  write_frames (w, nobody, NO_PART);
  ls_pickle_out_text (&w->out, "blocks");
  ls_pickle_out_begin_list (&w->out);
  for (guint i = 0; i < n; i++)
    write_block (w, &blocks[i]);
  ls_pickle_out_end (&w->out);
  ls_pickle_out_end (&w->out);
}

static void
write_segments (Writer *w)
{
  ls_pickle_out_text (&w->out, "segments");
  ls_pickle_out_begin_list (&w->out);
  for (guint d = 0; d < w->s->n_devices; d++) {
    select_device (w, d);
    const GArray *blocks = w->device->history->blocks;
    for (guint from = 0, to = 1; from < blocks->len; from = to++) {
      while (to < blocks->len && !g_array_index (blocks, LsHistoryBlock, to).begins_segment)
        to++;
      write_segment (w, &g_array_index (blocks, LsHistoryBlock, from), to - from);
    }
  }
  ls_pickle_out_end (&w->out);
}

/* --- the whole ----------------------------------------------------------------------------------- */

/* PyTorch's defaults, which are those of exec/memory/allocator.h. */
static void
write_settings (Writer *w)
{
  ls_pickle_out_text (&w->out, "allocator_settings");
  ls_pickle_out_begin_dict (&w->out);
  write_text (w, "PYTORCH_CUDA_ALLOC_CONF", "");
  write_int (w, "max_split_size", UINT64_MAX);
  ls_pickle_out_text (&w->out, "garbage_collection_threshold");
  ls_pickle_out_double (&w->out, 0);
  write_bool (w, "expandable_segments", false);
  write_int (w, "pinned_num_register_threads", 1);
  write_bool (w, "release_lock_on_cudamalloc", false);
  write_bool (w, "pinned_use_cuda_host_register", false);
  ls_pickle_out_text (&w->out, "roundup_power2_divisions");
  ls_pickle_out_begin_dict (&w->out);
  ls_pickle_out_end (&w->out);
  ls_pickle_out_end (&w->out);
}

/* What is shown of it by nobody but us. */
static void
write_job (Writer *w)
{
  ls_pickle_out_text (&w->out, "lockstep");
  ls_pickle_out_begin_dict (&w->out);
  write_text (w, "job", w->s->title);
  ls_pickle_out_text (&w->out, "ranks");
  ls_pickle_out_begin_list (&w->out);
  for (guint d = 0; d < w->s->n_devices; d++)
    ls_pickle_out_int (&w->out, w->s->devices[d].rank);
  ls_pickle_out_end (&w->out);
  ls_pickle_out_end (&w->out);
}

static gboolean
write_all (FILE *file, void *data, GError **error)
{
  Writer *w = data;
  ls_pickle_out_begin (&w->out, file);
  ls_pickle_out_begin_dict (&w->out);
  write_segments (w);
  write_traces (w);
  write_settings (w);
  ls_pickle_out_text (&w->out, "external_annotations");
  ls_pickle_out_begin_list (&w->out);
  ls_pickle_out_end (&w->out);
  write_job (w);
  ls_pickle_out_end (&w->out);
  ls_pickle_out_finish (&w->out);
  return TRUE;
}

gboolean
ls_snapshot_write (const LsSnapshot *s, const char *path, GError **error)
{
  Writer w = { .s = s };
  w.frames = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  gboolean ok = ls_write_file (path, write_all, &w, error);
  g_hash_table_unref (w.frames);
  return ok;
}
