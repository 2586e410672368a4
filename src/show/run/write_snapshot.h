/* show/run/write_snapshot.h — what PyTorch's allocator does on ranks of a job, as a memory snapshot: the
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
#ifndef LS_SHOW_RUN_WRITE_SNAPSHOT_H
#define LS_SHOW_RUN_WRITE_SNAPSHOT_H

#include "ask/memory_view.h"
#include "exec/memory/history.h"

typedef struct {
  uint32_t rank; /* as it was asked for */
  const LsMemoryHistory *history;
  const GArray *parts; /* LsRankPart */
} LsSnapshotDevice;

typedef struct {
  const char *title;
  const LsPlan *plan;
  const uint32_t *first_layers; /* of each global stage; NULL: not known */
  const LsSnapshotDevice *devices;
  guint n_devices;
} LsSnapshot;

/* LS_ERROR_IO, LS_ERROR_USAGE: it cannot be written. */
gboolean ls_snapshot_write (const LsSnapshot *s, const char *path, GError **error);

#endif
