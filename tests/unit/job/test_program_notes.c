/* Pins the notes on a program that a job names and that cannot run it. */
#include "run_options.h"

#include <string.h>

/* What the writer of its jobs refuses is told where a program is named: the job is simulated all the same. Not
 * where it is assumed to run one, nor of a program without a writer. */
static void
what_a_program_cannot_is_told (void)
{
#define CANNOT " cannot express this job, which is simulated as if it could (--for "
  static const struct {
    const char *options, *note;
  } rows[] = {
    { MACHINE ("dgx-h100") "software=megatron " SIZE, NULL },
    { MACHINE ("dgx-h100") "software=megatron " SIZE "dp-kind=deepspeed zero=3",
      "software megatron: Megatron-LM" CANNOT
      "megatron refuses it): --dp-kind deepspeed: Megatron-LM has megatron and fsdp2" },
    { MACHINE ("dgx-h100") "software=torchtitan " SIZE "dp-kind=megatron",
      "software torchtitan: torchtitan" CANNOT
      "torchtitan refuses it): --dp-kind megatron: torchtitan has fsdp2, and ddp where there is no other "
      "parallelism" },
    { MACHINE ("dgx-h100") SIZE "dp-kind=ddp", NULL },
    { MACHINE ("dgx-h100") "software=llm.c-2024 " SIZE "pp=2", NULL }, /* below */
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsJobResult) r = run (rows[i].options);
    const char *found = NULL;
    for (guint k = 0; r && k < r->notes->len; k++)
      if (strstr (r->notes->pdata[k], " as if it could"))
        found = r->notes->pdata[k];
    LS_CHECK (r != NULL);
    LS_CHECK_STR (found, rows[i].note);
  }
}

/* Of programs without a writer of jobs, by what their files say; not of what they have, nor where all of it is
 * off. */
static void
what_a_program_lacks_is_told (void)
{
#define LACKS " of that release has no "
#define AS    "; this job is simulated as if it had"
  static const struct {
    const char *options, *note;
  } rows[] = {
    { MACHINE ("dgx-h100") "software=llm.c-2024 " SIZE "zero=1", NULL },
    { MACHINE ("dgx-h100") "software=llm.c-2024 " SIZE "cp=2 pp=2",
      "software llm.c-2024: llm.c" LACKS "pp, cp" AS },
    { MACHINE ("dgx-h100") "software=llm.c-2024 " SIZE "dtype=fp8",
      "software llm.c-2024: llm.c" LACKS "fp8" AS },
    { MACHINE ("dgx-h100") "software=megatron-lm-2021-04 " SIZE "tp=2", NULL },
    { MACHINE ("dgx-h100") "software=megatron-lm-2021-04 " SIZE "tp=2 sp=1",
      "software megatron-lm-2021-04: Megatron-LM" LACKS "sp" AS },
    { MACHINE ("dgx-h100") "software=litgpt-2026-compile " SIZE
                           "cp=2", /* as the release that it is based on */
      "software litgpt-2026-compile: LitGPT" LACKS "cp" AS },
    { "model=mixtral-8x7b:layers=2 cluster=dgx-h100 software=lingua-2025 " SIZE "ep=2",
      "software lingua-2025: lingua" LACKS "ep" AS },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsJobResult) r = run (rows[i].options);
    const char *found = NULL;
    for (guint k = 0; LS_CHECK (r) && k < r->notes->len; k++)
      if (strstr (r->notes->pdata[k], LACKS))
        found = r->notes->pdata[k];
    LS_CHECK_STR (found, rows[i].note);
  }
}

/* In jobs of which a file says that something is not simulated: a warning that names it, and, where such steps
 * were measured, an interval that reaches as far. */
static void
what_is_not_simulated_is_warned_of (void)
{
#define MOE   "model=mixtral-8x7b:layers=2 cluster=dgx-h100 "
#define NOT   " is not simulated as it is: "
#define EAGER "the path of its all-to-all dispatcher in eager mode"
#define FP32  "its training in fp32 where there is "
  static const struct {
    const char *options, *program, *part;
  } rows[] = {
    { MOE "software=megatron ep=8 " SIZE, "warning: Megatron-LM" NOT, EAGER },
    { MOE "software=megatron-bridge-26.04 ep=8 " SIZE, "warning: Megatron-Bridge" NOT, EAGER },
    { MOE "software=megatron ep=8 dispatcher=deepep " SIZE, NULL, NULL },
    { MOE "software=megatron ep=8 cuda-graphs=layer " SIZE, NULL, NULL },
    { MOE "software=megatron " SIZE, NULL, NULL },
    { MACHINE ("dgx-h100") "software=megatron " SIZE, NULL, NULL },
    { MOE "software=torchtitan " SIZE, "warning: torchtitan" NOT, "what experts hold in a layer" },
    { MOE "software=torchtitan ep=8 " SIZE, NULL, NULL },
    { MACHINE ("dgx-h100") "software=torchtitan dp-kind=none pp=2 gpus=2 global-batch=8",
      "warning: torchtitan" NOT, FP32 "pipeline" },
    { MACHINE ("dgx-h100") "software=torchtitan dp-kind=none tp=2 sp=1 gpus=2 global-batch=8",
      "warning: torchtitan" NOT, FP32 "tensor" },
    { MACHINE ("dgx-h100") "software=torchtitan dp-kind=none pp=2 gpus=2 global-batch=8 dtype=fp32", NULL,
      NULL },
    { MACHINE ("dgx-h100") "software=torchtitan tp=2 " SIZE, NULL, NULL },
    { MACHINE ("dgx-h100") "software=deepspeed " SIZE "zero=2 offload=optimizer", "warning: DeepSpeed" NOT,
      "gradients and buckets" },
    { MACHINE ("dgx-h100") "software=deepspeed " SIZE "zero=2", NULL, NULL },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsJobResult) r = run (rows[i].options);
    const char *found = NULL;
    for (guint k = 0; LS_CHECK (r) && k < r->notes->len; k++)
      if (strstr (r->notes->pdata[k], NOT))
        found = r->notes->pdata[k];
    bool is_right = rows[i].part
        ? found && g_str_has_prefix (found, rows[i].program) && strstr (found, rows[i].part)
        : !found;
    ls_check_impl (is_right, __FILE__, __LINE__, "%s: %s", rows[i].options, found ? found : "no warning");
  }
}

LS_TEST_SUITE (LS_TEST (what_a_program_cannot_is_told), LS_TEST (what_a_program_lacks_is_told),
               LS_TEST (what_is_not_simulated_is_warned_of))
