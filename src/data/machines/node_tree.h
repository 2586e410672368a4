/* data/machines/node_tree.h — a node as files of other programs show it, on its way to a cluster (private to
 * data/machines): the tree of CPUs, PCI devices, GPUs and network ports, and the NVLinks between GPUs.
 *
 * A reader appends parts, parents before children, and hands the tree to ls_tree_make(). What a file does not
 * say is taken from the cluster that the accelerator's file names, and listed. */
#ifndef LS_DATA_MACHINES_NODE_TREE_H
#define LS_DATA_MACHINES_NODE_TREE_H

#include "data/machines/machines.h"

#define LS_TREE_GB   1e9
#define LS_TREE_NONE UINT32_MAX

typedef enum { LS_TREE_CPU, LS_TREE_PCI, LS_TREE_GPU, LS_TREE_NET } LsTreeKind;

/* In the order of the file, so that a parent comes before its children. */
typedef struct {
  LsTreeKind kind;
  uint32_t parent; /* part; LS_TREE_NONE of a CPU                         */
  int line;
  double rate;          /* bytes/s to the parent, of PCI and GPU; 0: as in `like` */
  uint64_t busid;       /* of PCI and GPU                                         */
  uint32_t dev, sm;     /* of GPU and NET; of GPU                                 */
  const char *gcn;      /* of a GPU of AMD's, "942", interned; NULL: sm says what it is */
  double c2c;           /* bytes/s to the CPU; 0: none                            */
  double net;           /* bytes/s of the port; 0: not of the network that computes */
  double interconnect;  /* bytes/s from a CPU to another; 0: as in `like`         */
  uint32_t unread;      /* as an element says it, of GPU and NET                 */
  char class_of[5];     /* "0x03" of PCI                                         */
  const char *cpu_name; /* static, for people                                   */
} LsTreePart;

/* NVLinks of a GPU as its side tells them. */
typedef struct {
  uint32_t gpu; /* part */
  uint32_t count;
  bool to_switch;
  uint64_t busid; /* of the other GPU */
} LsTreeNvlink;

/* ls_cluster_load(), which reads files through these readers. */
typedef bool (*LsTreeLoad) (const char *name, LsClusterSpec *ret_spec, LsDiagList *diags);

typedef struct {
  const char *path, *what; /* of the file; "a topology file of NCCL" */
  LsDiagList *diags;
  LsTreeLoad load; /* of the cluster that an accelerator's file names */
  char *gpu;       /* that the file names, owned; NULL: none */
  GArray *parts;   /* LsTreePart */
  GArray *nvlinks; /* LsTreeNvlink */
  int line;        /* of the end of what has been read */
  LsClusterSpec *spec;
  LsClusterSpec *like; /* whose links stand for those without a rate; NULL: all have one */
  double fastest;      /* bytes/s of the ports that are kept */
  const char *rates;   /* where those to parents are from, static; NULL: as NCCL reckons */
  double nvlink;       /* bytes/s of each, of another cluster or the file; 0: as NCCL reckons, or in `like` */
  bool *is_used;       /* by part: becomes a vertex */
  char **names;        /* by part: of its vertex, borrowed from the spec */
  const char *(*unread_text) (uint32_t bits); /* of the parts' `unread`, interned; NULL: they have none */
  LsNcclTables tables;                        /* of the generation of its GPUs */
} LsNodeTree;

LsTreePart *ls_tree_at (const LsNodeTree *m, uint32_t i);
/* Returns its number. */
uint32_t ls_tree_add (LsNodeTree *m, LsTreePart part);
bool ls_tree_has (const LsNodeTree *m, LsTreeKind kind);

/* line 0: of the file as a whole. Returns false. */
bool ls_tree_wrong (const LsNodeTree *m, int line, const char *hint, const char *format, ...)
    G_GNUC_PRINTF (4, 5);

/* What the spec was guessed by, for who reads its answers. */
void ls_tree_guess (LsNodeTree *m, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* Sets `like`: the cluster that the accelerator's file names, with links of its own. */
bool ls_tree_take_like (LsNodeTree *m, const char *gpu);
void ls_tree_free_like (LsClusterSpec *like);

/* The accelerator of ours that "NVIDIA A100-SXM4-80GB" is, by its words; NULL: none, or several. Newly
 * allocated. */
char *ls_tree_gpu_of_product (const char *product);

/* XML line by line, by that parser, whose handlers get `data` and set m->line's place in diagnostics. */
bool ls_tree_parse_xml (LsNodeTree *m, const GMarkupParser *parser, gpointer data, const char *text, gsize n);

/* The words of a line of n bytes, without escape sequences and what people set around them; free with
 * g_strfreev(). */
GStrv ls_tree_words (const char *line, gsize n);

/* "0000:1b:00.0" or "00000000:1B:00.0". */
bool ls_tree_busid (const char *text, uint64_t *ret);

/* A reader: fills the tree from n bytes, and says how it makes accelerators of what it found; gpu: name of
 * the accelerator, or NULL: as the file says, else by what is in it; of NCCL's by its attribute x-gpu of
 * <system>, else by compute capability (70 v100, 80 a100-80g, 90 h100, 100 b200), which knows no memory. */
typedef bool (*LsTreeReader) (LsNodeTree *m, const char *text, gsize n, const char *gpu);

/* Of n bytes. On success the caller clears *ret_spec; on failure it is untouched and diags says why
 * (LS_ERROR_INPUT). */
bool ls_tree_read (LsTreeReader read, LsTreeLoad load, const char *what, const char *text, gsize n,
                   const char *path, const char *gpu, LsClusterSpec *ret_spec, LsDiagList *diags);

bool ls_tree_read_nccl (LsNodeTree *m, const char *text, gsize n, const char *gpu);   /* read_nccl_topo.c   */
bool ls_tree_read_lstopo (LsNodeTree *m, const char *text, gsize n, const char *gpu); /* read_lstopo.c      */
bool ls_tree_read_matrix (LsNodeTree *m, const char *text, gsize n, const char *gpu); /* read_topo_matrix.c */
bool ls_tree_read_rocm (LsNodeTree *m, const char *text, gsize n, const char *gpu);   /* read_rocm_topo.c   */
bool ls_tree_read_infragraph (LsNodeTree *m, const char *text, gsize n,
                              const char *gpu); /* read_infragraph.c */

#endif
