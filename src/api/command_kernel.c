/* `lockstep kernel`: kernels timed alone, or those of a job listed. */
#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "ask/kernel_times.h"
#include "show/fits/write_fits.h"

static const LsOption own[] = {
  { "gpu", .argument = "NAME|FILE", .meaning = "On which GPU: a name (lockstep list gpus) or a file" },
  { "gpu-calibration", .argument = "NAME|FILE",
    .meaning = "What its kernels take (lockstep calibrate writes such a file); default: as the GPU names" },
  { "gemm", .argument = "M,N,K", .meaning = "A matrix product, M x K times K x N" },
  { "batch", .argument = "N", .meaning = "So many of them in one kernel; default 1" },
  { "layout", .argument = "LAYOUT",
    .meaning
    = "Which operands are transposed, as BLAS says it: tn, nn, nt, tt; default tn, the only one that "
      "was measured: the time is the same, but counts as extrapolated" },
  { "attention", .argument = "B,S,H,KV,D",
    .meaning = "Flash attention: sequences, tokens, heads, key/value heads, width of a head" },
  { "causal", .argument = "0|1", .meaning = "Whether tokens see only those before them; default 1" },
  { "backward", .meaning = "The gradient of attention; default: the forward" },
  { "op", .argument = "KIND",
    .meaning = "A kernel that streams: softmax, norm, elementwise, reduction, embedding, cross-entropy, "
               "optimizer, memset" },
  { "shape", .argument = "ROWS,COLUMNS",
    .meaning = "Its elements, read and written once: two tensors in and one out for elementwise, one and one "
               "for softmax, norm and embedding, 30 bytes an element for optimizer, one tensor for others" },
  { "bytes", .argument = "SIZE", .meaning = "Its traffic instead; with --access besides" },
  { "access", .argument = "KIND",
    .meaning = "How it touches memory, as kernels of PyTorch do that are not fused: vec, castup, bcast16, "
               "strided16, cat, ... (manual: formats/access.md)" },
  { "dtype", .argument = "DTYPE",
    .meaning = "fp32, tf32, fp16, bf16, fp8 or nvfp4; default bf16; of --from only such rows" },
  { "sustained", .meaning = "As inside a training step, on a hot chip, instead of in a loop of its own" },
  { "from", .argument = "FILE",
    .meaning = "The kernels of a table: GEMM (m, n, k), attention, streaming or vidur's mlp.csv" },
  { "measured", .argument = "FILE",
    .meaning = "Takes times from such a table where it has the kernel, or a GEMM between two values of m" },
  { "holdout", .meaning = "Of --from only families that are held out of the fits" },
  { "min-m", .argument = "N", .meaning = "Of --from only GEMMs with at least so many rows" },
  { "min-seq", .argument = "N", .meaning = "Only attention over at least so many tokens" },
  { "min-flops", .argument = "N", .meaning = "Only kernels of at least so many FLOPs, such as 1e9" },
  { "min-bytes", .argument = "SIZE", .meaning = "Only kernels of at least so much traffic, such as 8MB" },
  { "list-shapes", .meaning = "The kernels of a job, for kernelbench --shapes" },
  { "json", .meaning = "Print JSON" },
  { NULL },
};

/* Of its own, those that a kernel has. */
static const char *const keys[]
    = { "gpu",     "gpu-calibration", "gemm",    "batch",     "layout",    "attention", "causal", "backward",
        "op",      "shape",           "bytes",   "access",    "dtype",     "sustained", "from",   "measured",
        "holdout", "min-m",           "min-seq", "min-flops", "min-bytes", NULL };
static const char *const job_too[] = { "attention", "dtype", "gpu-calibration", "measured", NULL };

LS_ANSWER_FORM (to_text, ls_kernel_rows_to_text (data))
LS_ANSWER_FORM (to_json, ls_kernel_rows_to_json (data))
LS_ANSWER_FREE (rows_free, ls_kernel_rows_free)

static const LsAnswerForms forms = { .text = to_text, .json = to_json, .free = rows_free };

static gboolean
list_shapes (const LsRequest *r, LsAnswer *a, GError **error)
{
  for (guint i = 0; keys[i]; i++)
    if (ls_request_text (r, keys[i]) && !g_strv_contains (job_too, keys[i])) {
      g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--%s does not go with --list-shapes, which is of a job",
                   keys[i]);
      return FALSE;
    }
  LsJobSpec spec;
  char *text = ls_request_job (r, &spec, error) ? ls_job_spec_shapes (&spec, error) : NULL;
  ls_job_spec_clear (&spec);
  if (text)
    ls_answer_take_text (a, text);
  return text != NULL;
}

LS_REQUEST_SET (set_knob, ls_kernel_spec_set)

static gboolean
run (const LsRequest *r, LsAnswer *a, GError **error)
{
  if (ls_request_is_on (r, "list-shapes"))
    return list_shapes (r, a, error);
  if (ls_request_has_knobs (r))
    return ls_request_refuse ("the flags of a job go with --list-shapes", error);
  LsKernelSpec spec;
  ls_kernel_spec_init (&spec);
  LsKernelRows *rows
      = ls_request_set_all (r, keys, set_knob, &spec, error) ? ls_kernel_rows_new (&spec, error) : NULL;
  ls_kernel_spec_clear (&spec);
  if (rows) {
    ls_answer_note_all (a, rows->notes);
    ls_answer_take (a, rows, &forms);
  }
  return rows != NULL;
}

const Command command_kernel = {
  .shown = {
    .name = "kernel",
    .line = "time of a kernel alone, or errors over a table of them",
    .usage = "kernel --gpu NAME|FILE --gemm M,N,K | --attention B,S,H,KV,D | --op KIND | --from FILE.csv\n"
             "  lockstep kernel --list-shapes --model NAME|FILE --cluster NAME|FILE [JOB...]",
    .summary = "Time of a kernel alone on a GPU, where the figure comes from and what limits it; or of\n"
               "a table of kernels, and the errors where they were measured. Or the kernels of a job, as\n"
               "a list that tools/kernelbench times.",
    .examples
    = "With --list-shapes, the options that say which job are those of lockstep run; --attention,\n"
      "--dtype and --gpu-calibration are then the job's.\n\n"
      "Examples:\n"
      "  lockstep kernel --gpu h100 --gemm 4096,12288,4096\n"
      "  lockstep kernel --gpu b200 --attention 1,8192,32,8,128 --backward\n"
      "  lockstep kernel --gpu a100-80g --op norm --shape 8192,12288 --json\n"
      "  lockstep kernel --gpu h100 --op elementwise --shape 8192,4096 --bytes 134MB --access strided16\n"
      "  lockstep kernel --gpu h200 --from gemm.csv --dtype bf16 --min-flops 1e9 --holdout\n"
      "  lockstep kernel --list-shapes --model llama3.1-8b --cluster dgx-h100 --gpus 8 --tp 2",
    .job = LS_JOB_TAKEN,
  },
  .own = own,
  .job_too = job_too,
  .run = run,
};
