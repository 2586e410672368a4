/* tests/support/kineto_writer.h — a timeline as torch.profiler would have written it.
 *
 * The form is that of pytorch/kineto, libkineto/src/output_json.cpp: top keys, order of keys,
 * microseconds with three decimals, "ac2g" arrows, metadata events, NCCL's arguments on the
 * kernel. Names of kernels are those of cuBLAS, flash-attention, PyTorch and NCCL. The reported step of
 * a rank is written `n_steps` times, as long apart as the step takes. */
#ifndef LS_TESTS_KINETO_WRITER_H
#define LS_TESTS_KINETO_WRITER_H

#include "analysis/reconcile.h"

#define KINETO_BASE_US 88511388202 /* since the program was loaded */

typedef struct {
  guint n_steps;
  bool no_annotations; /* no ProfilerStep#N                     */
  bool no_args;        /* NCCL says nothing, as before 2.3      */
  double stretch;      /* of GEMMs; 0: none                     */
  guint drop;          /* leaves out every so many-th elementwise kernel; 0: none */
  int64_t rank, world_size;
} KinetoForm;

/* By its class; a list's copies ("v copy") are the kernel that PyTorch copies slices by. */
static const char *
kineto_name (const LsStepOp *op)
{
  static const char *const names[] = {
    [LS_CLASS_GEMM] = "nvjet_hsh_256x128_64x4_2x1_v_bz_coopB_TNT",
    [LS_CLASS_ATTENTION_FWD]
    = "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t>, "
      "false, true, false, false, true, true, false, false>(flash::Flash_fwd_params)",
    [LS_CLASS_ATTENTION_BWD]
    = "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128, 64, 128, 8, 2, 4, 2>>"
      "(flash::Flash_bwd_params)",
    [LS_CLASS_SOFTMAX]
    = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>(float*, float const*, int)",
    [LS_CLASS_NORM]
    = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float)",
    [LS_CLASS_ELEMENTWISE]
    = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, at::detail::Array<char*, 3>>(int)",
    [LS_CLASS_REDUCTION]
    = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::NormOp<float, float>, unsigned int>>()",
    [LS_CLASS_EMBEDDING]
    = "void at::native::(anonymous namespace)::compute_grad_weight_embedding<c10::BFloat16, float>(long*)",
    [LS_CLASS_CROSS_ENTROPY]
    = "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*)",
    [LS_CLASS_OPTIMIZER]
    = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::TensorListMetadata<4>, "
      "FusedAdamMathFunctor<float, 4>>()",
    [LS_CLASS_MEMSET] = "Memset (Device)",
    [LS_CLASS_OTHER] = "my_own_kernel",
    [LS_CLASS_COPY] = "Memcpy DtoH (Device -> Pinned)",
    [LS_CLASS_ALL_REDUCE] = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    [LS_CLASS_ALL_GATHER] = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    [LS_CLASS_REDUCE_SCATTER]
    = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    [LS_CLASS_BROADCAST] = "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    [LS_CLASS_REDUCE] = "ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    [LS_CLASS_ALL_TO_ALL] = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    [LS_CLASS_GATHER] = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    [LS_CLASS_SCATTER] = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    [LS_CLASS_SEND_RECV] = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
  };
  bool is_copy = op->class == LS_CLASS_ELEMENTWISE && op->name && g_str_has_suffix (op->name, " copy");
  return is_copy ? "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<"
                   "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}>>(int)"
                 : names[op->class];
}

static const char *
kineto_collective (uint8_t class)
{
  static const char *const names[] = {
    [LS_CLASS_ALL_REDUCE] = "allreduce",
    [LS_CLASS_ALL_GATHER] = "_allgather_base",
    [LS_CLASS_REDUCE_SCATTER] = "_reduce_scatter_base",
    [LS_CLASS_BROADCAST] = "broadcast",
    [LS_CLASS_REDUCE] = "reduce",
    [LS_CLASS_ALL_TO_ALL] = "all_to_all",
    [LS_CLASS_GATHER] = "gather",
    [LS_CLASS_SCATTER] = "scatter",
    [LS_CLASS_SEND_RECV] = "send",
  };
  return names[class];
}

/* Picoseconds as Kineto prints nanoseconds. */
static void
kineto_us (GString *out, const char *key, LsTime ps, int64_t base_us)
{
  int64_t ns = (ps + 500) / 1000 + 1000 * base_us;
  g_string_append_printf (out, "\"%s\": %" G_GINT64_FORMAT ".%03d", key, ns / 1000, (int) (ns % 1000));
}

static void
kineto_head (GString *out, const KinetoForm *form)
{
  g_string_append (
      out,
      "\n  {\n    \"schemaVersion\": 1,\n    \"deviceProperties\": [\n    {\n"
      "      \"id\": 0, \"name\": \"NVIDIA flat 80GB HBM3\", \"totalGlobalMem\": 84942979072,\n"
      "      \"computeMajor\": 9, \"computeMinor\": 0,\n      \"maxThreadsPerBlock\": 1024, \"maxThreadsPerMultiprocessor\": 2048,\n"
      "      \"regsPerBlock\": 65536, \"warpSize\": 32,\n      \"sharedMemPerBlock\": 49152, \"numSms\": 132\n    }\n    ],\n");
  g_string_append_printf (out,
                          "      \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %" G_GINT64_FORMAT
                          ", \"world_size\": %" G_GINT64_FORMAT
                          ", \"pg_count\": 1, \"pg_config\": [{\"pg_name\": \"0\", \"ranks\": []}]},\n",
                          form->rank, form->world_size);
  g_string_append (
      out,
      "      \"cuda_runtime_version\": 12040,\n  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": 1726040082000000000,\n"
      "  \"traceEvents\": [\n"
      "  {\n    \"name\": \"process_name\", \"ph\": \"M\", \"ts\": 88511388202.755, \"pid\": 0, \"tid\": 0,\n"
      "    \"args\": {\n      \"name\": \"python\"\n    }\n  },\n");
}

static void
kineto_launch (GString *out, LsTime at, guint correlation, bool is_kernel)
{
  g_string_append_printf (
      out,
      "  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"%s\", \"pid\": 4711, \"tid\": 4711,\n    ",
      is_kernel ? "cudaLaunchKernel" : "cudaMemcpyAsync");
  kineto_us (out, "ts", at, KINETO_BASE_US);
  g_string_append_printf (
      out,
      ", \"dur\": 4.250,\n    \"args\": {\n      \"External id\": %u,\"cbid\": 211, \"correlation\": %u\n    }\n  },\n",
      correlation, correlation);
}

static void
kineto_op (GString *out, const LsStepOp *op, LsTime at, guint correlation, const KinetoForm *form)
{
  bool is_comm = ls_op_class_is_communication ((LsOpClass) op->class);
  const char *category = op->class == LS_CLASS_COPY ? "gpu_memcpy"
      : op->class == LS_CLASS_MEMSET                ? "gpu_memset"
                                                    : "kernel";
  double stretch = op->class == LS_CLASS_GEMM && form->stretch > 0 ? form->stretch : 1;
  int stream = is_comm ? 20 + op->class : op->class == LS_CLASS_COPY ? 13 : 7;
  LsTime end = at + (LsTime) ((double) (op->end - op->start) * stretch);
  int64_t dur_ns = (end + 500) / 1000 - (at + 500) / 1000; /* both ends are rounded, as clocks are */
  g_string_append_printf (
      out, "  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 0, \"tid\": %d,\n    ",
      category, kineto_name (op), stream);
  kineto_us (out, "ts", at, KINETO_BASE_US);
  g_string_append_printf (
      out,
      ", \"dur\": %" G_GINT64_FORMAT
      ".%03d,\n    \"args\": {\n      \"External id\": %u,\"queued\": 0, \"device\": 0, "
      "\"context\": 1,      \"stream\": %d, \"correlation\": %u,      \"registers per thread\": 168,      \"grid\": [132, 1, 1]",
      dur_ns / 1000, (int) (dur_ns % 1000), correlation, stream, correlation);
  if (is_comm && !form->no_args)
    g_string_append_printf (out,
                            ", \"Collective name\": \"%s\", \"In msg nelems\": %" G_GUINT64_FORMAT
                            ", \"Out msg nelems\": %" G_GUINT64_FORMAT
                            ", \"Group size\": 2, \"dtype\": \"Byte\"",
                            kineto_collective (op->class), op->bytes, op->bytes);
  g_string_append (out, "\n    }\n  },\n");
  g_string_append_printf (out, "  {\n    \"ph\": \"f\", \"id\": %u, \"pid\": 0, \"tid\": %d, ", correlation,
                          stream);
  kineto_us (out, "ts", at, KINETO_BASE_US);
  g_string_append (out, ",\n    \"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  },\n");
}

/* Newly allocated. */
static char *
kineto_of_side (const LsStepSide *side, const KinetoForm *form)
{
  GString *out = g_string_new (NULL);
  LsTime first = 0;
  guint correlation = 0, n_elementwise = 0;
  for (guint i = 0; i < side->ops->len; i++)
    first = MIN (first, g_array_index (side->ops, LsStepOp, i).launch);
  kineto_head (out, form);
  for (guint step = 0; step < form->n_steps; step++) {
    LsTime shift = (LsTime) step * side->length;
    if (!form->no_annotations) {
      g_string_append_printf (
          out,
          "  {\n    \"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#%u\", \"pid\": 4711, \"tid\": 4711,\n    ",
          10 + step);
      kineto_us (out, "ts", first + shift - 1000, KINETO_BASE_US);
      g_string_append_c (out, ',');
      kineto_us (out, "dur", side->length, 0);
      g_string_append_printf (
          out,
          ",\n    \"args\": {\n      \"External id\": %u,\"Record function id\": 0, \"Ev Idx\": %u\n    }\n  },\n",
          900000 + step, step);
    }
    for (guint i = 0; i < side->ops->len; i++) {
      const LsStepOp *op = &g_array_index (side->ops, LsStepOp, i);
      if (op->class == LS_CLASS_ELEMENTWISE && form->drop > 0 && n_elementwise++ % form->drop == 0)
        continue;
      kineto_launch (out, op->launch + shift, ++correlation, op->class != LS_CLASS_COPY);
      kineto_op (out, op, op->start + shift, correlation, form);
    }
    n_elementwise = 0;
  }
  g_string_append (
      out,
      "  {\n    \"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\",\n    \"pid\": \"\", \"tid\": \"\", \"ts\": 88511399202.055\n  }\n"
      "  ],\n  \"traceName\": \"rank0.pt.trace.json\"\n}");
  return g_string_free (out, FALSE);
}

#endif
