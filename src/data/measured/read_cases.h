/* data/measured/read_cases.h — measured training runs, one a row, as `lockstep validate`
 * reads them.
 *
 * Columns, found by name in the header row, in any order; others are ignored:
 *   id  gpus
 *   cluster  a name of topologies/. It may be empty or absent: what it then is, job/job_cases.h tells by
 *   hardware  optional: the accelerator in words, "H200-SXM-141GB", and by
 *   gpus_per_node  optional
 *   model  optional: a name of models/ or a file. A path, as of a cluster or a software, is from the folder
 *     of the table, if the file is there. A cell of a dimension is then empty, or the same; but seq
 *     is the job's
 *   layers hidden heads kv_heads ffn vocab seq   mlp (gelu, relu2, swiglu): of rows that name no model
 *   attention (flash, unfused)   dtype, grad_dtype (fp16, bf16, fp8, nvfp4, fp32)
 *   global_batch micro_batch (sequences)   tp pp vpp dp cp ep
 *   zero (0 to 3; N@G inside groups of G)   sp, dp_overlap, tp_overlap (0, 1)
 *   recompute (none, selective, full)   schedule (none with pp 1)
 *   dp_kind (none, ps, ddp, megatron, fsdp1, fsdp2, deepspeed, xla-fsdp)
 *   p2p (none, batched, scatter-gather, overlapped)
 *   software  optional: a name of strategies/software, which has the defaults of the row's knobs
 *   iteration_s  measured, in seconds
 *   allocated_gib  optional, also in a row: what PyTorch had allocated at most on the fullest rank, measured
 *     (torch.cuda.max_memory_allocated: without NCCL, the CUDA context and fragmentation)
 *   first_s, first_commit  optional: what this program predicted before its source was read, and by which
 *     version; never changed after
 *   split, source, caveat  optional
 *   family  optional: rows that are scored together; else the name of its table, where the software knows
 *     it, or of the software
 *   any other key of a strategy or a model, optional (moe_ffn: expert_ffn); with experts ffn may be empty
 * The limits of a cell are those of the same key in a model or strategy file. A knob whose column is
 * optional, and those of recompute, schedule, dp_kind, dp_overlap, tp_overlap, p2p, attention, grad_dtype,
 * zero may be empty: as the software has it.
 *
 * A table of dimensions does not tell an architecture: whether there are biases, tied embeddings. Where no
 * column says it, it follows from the kind of MLP:
 *
 *   gelu    LayerNorm, learned positions, biases, tied embeddings (GPT-2 and -3)
 *   swiglu  RMSNorm, rotary positions, no biases, untied (Llama)
 *   relu2   LayerNorm, rotary positions, no biases, untied (Nemotron)
 *
 * What a published table does not say of its runs, the file of their software does (LsTableFacts). Ids are
 * names, and tell nothing. */
#ifndef LS_DATA_MEASURED_READ_CASES_H
#define LS_DATA_MEASURED_READ_CASES_H

#include <glib.h>

#include "base/diag.h"
#include "data/jobs/imported.h"
#include "model/model.h"
#include "strategy/strategy.h"

/* Step times that make sense, seconds: what a picosecond clock resolves, and 30 years. */
#define LS_MEASURED_MIN_S 1e-9
#define LS_MEASURED_MAX_S 1e9
/* And memory of an accelerator, above 0. */
#define LS_MEASURED_MAX_GIB 1e6

typedef struct {
  char *id, *split, *cluster, *source, *caveat; /* "" where the column is absent */
  char *hardware;                               /* likewise: the accelerator in words                     */
  uint32_t gpus_per_node;                       /* 0: not said                                            */
  bool by_hardware;                             /* `cluster` follows from both of these                   */
  char *software;                               /* "": not said                                           */
  char *family;          /* of its column, else of its table, its software, or "other" */
  bool has_facts;        /* which its table does not say                           */
  const char *runs_like; /* of its software, interned; NULL: not said            */
  LsModel model;
  LsStrategy strategy; /* its `gpus` is the column's                             */
  GHashTable *said;    /* keys of the strategy that it or facts say (char *, static)     */
  char **ignored;      /* of the first row of a table: its columns that nothing reads; else NULL   */
  LsImported *from;    /* what a log says, counted; NULL: it is of a table                        */
  GPtrArray *notes;    /* char *: of a log that ran, as a run of it says them; else NULL          */
  /* LsAssumption (job/assumptions.h) of one that ran, of what it does not say; NULL: none */
  GArray *assumptions, *knobs;
  double measured_s;
  double allocated_gib; /* 0: not measured */
  double first_s;       /* what was predicted before its source had taught anything; 0: not known */
  char *first_commit;   /* by which version; NULL: not said */
  double interval_low, interval_high; /* of one that ran, over its step; 0: none */
  /* what cannot be read of the row, "dtype: expected ...", which then says nothing but its id; NULL: it is
   * whole */
  char *wrong;
} LsCase;

/* One that says nothing yet, and an array that frees such. */
LsCase *ls_case_new (void);
GPtrArray *ls_cases_new (void);

/* Reads all rows of the file, or of its text if that is not NULL; NULL, with located diagnostics, if any
 * cell is wrong or there is no row. A GPtrArray of LsCase that frees them. by_row: rows with wrong cells
 * stay, and say what is wrong, as long as there is one without. */
GPtrArray *ls_read_cases (const char *path, const char *text, bool by_row, LsDiagList *diags);

/* A table to fill in: what each column means as comments, a header, and a row as an example; our readers read
 * it as it is. "runs" (this one), "nccl" (data/measured/read_nccl_tests.h), "kernels"
 * (data/measured/read_kernels.h). Newly allocated; NULL: there is none of that name. */
char *ls_template_text (const char *name);

#endif
