/* data/text/lookalike.h — what files of other programs look like, by marks in their texts. */
#ifndef LS_DATA_TEXT_LOOKALIKE_H
#define LS_DATA_TEXT_LOOKALIKE_H

#include <stddef.h>

/* Files that describe a node or a fabric of a cluster. */
typedef enum {
  LS_MACHINE_NCCL,
  LS_MACHINE_LSTOPO,
  LS_MACHINE_ROCM,
  LS_MACHINE_MATRIX,
  LS_MACHINE_GPU_LIST,
  LS_MACHINE_IBNETDISCOVER,
  LS_MACHINE_IB_PORTS,
  LS_MACHINE_SLURM_TREE,
  LS_MACHINE_SLURM_BLOCKS,
  LS_MACHINE_IBSIM,
  LS_MACHINE_INFRAGRAPH, /* in JSON too; from here on */
  LS_MACHINE_INFRAGRAPH_OLD,
  LS_N_MACHINE_FILES
} LsMachineFile;

/* Which of these the beginning of a text of n bytes shows; LS_N_MACHINE_FILES: none. */
LsMachineFile ls_machine_file_of (const char *text, size_t n);

/* "the output of nvidia-smi topo -m"; static. */
const char *ls_machine_file_name (LsMachineFile kind);

/* Of a text that is not what is read: what it looks like, of the files of other programs that people try, and
 * what reads it, or what is read in its place; a sentence, static; NULL: like nothing that is known. */
const char *ls_lookalike_hint (const char *text);

#endif
