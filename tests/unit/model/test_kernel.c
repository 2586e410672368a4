/* Pins the FLOP and byte counts of a GEMM and the names of kernel kinds. */
#include "ls_test.h"

#include "model/kernel.h"

static void
gemm_counts_two_flops_per_multiply_add (void)
{
  LsKernel k = ls_kernel_gemm ("x", LS_DTYPE_BF16, 10, 20, 30, 1, 2, false);
  LS_CHECK_INT (k.kind, ==, LS_KERNEL_GEMM);
  LS_CHECK_DOUBLE (k.flops, ==, 2.0 * 10 * 20 * 30);
  LS_CHECK_DOUBLE (k.bytes, ==, 2.0 * (10 * 30 + 30 * 20 + 10 * 20));
}

static void
accumulating_gemm_reads_c_too (void)
{
  LsKernel once = ls_kernel_gemm ("x", LS_DTYPE_FP8, 10, 20, 30, 1, 4, false);
  LsKernel added = ls_kernel_gemm ("x", LS_DTYPE_FP8, 10, 20, 30, 1, 4, true);
  LS_CHECK_DOUBLE (once.bytes, ==, 10 * 30 + 30 * 20 + 4 * 10 * 20);
  LS_CHECK_DOUBLE (added.bytes - once.bytes, ==, 4 * 10 * 20);
}

static void
batch_multiplies_both (void)
{
  LsKernel one = ls_kernel_gemm ("x", LS_DTYPE_FP16, 64, 64, 32, 1, 2, false);
  LsKernel many = ls_kernel_gemm ("x", LS_DTYPE_FP16, 64, 64, 32, 12, 2, false);
  LS_CHECK_INT (many.kind, ==, LS_KERNEL_BATCHED_GEMM);
  LS_CHECK_DOUBLE (many.flops, ==, 12 * one.flops);
  LS_CHECK_DOUBLE (many.bytes, ==, 12 * one.bytes);
}

/* B is read by each part, all else once. */
static void
parts_of_a_gemm_add_up (void)
{
  LsKernel whole = ls_kernel_gemm ("x", LS_DTYPE_BF16, 64, 20, 30, 1, 4, true),
           part = ls_kernel_gemm_part (&whole, 4);
  LS_CHECK_INT (part.m, ==, 16);
  LS_CHECK_DOUBLE (4 * part.flops, ==, whole.flops);
  LS_CHECK_DOUBLE (4 * part.bytes, ==, whole.bytes + 3 * 2 * 20 * 30);
  LS_CHECK_DOUBLE (part.bytes, ==, ls_kernel_gemm ("x", LS_DTYPE_BF16, 16, 20, 30, 1, 4, true).bytes);
}

static void
dimensions_beyond_32_bits_do_not_wrap (void)
{
  LsKernel k = ls_kernel_gemm ("x", LS_DTYPE_BF16, 1u << 31, 1u << 31, 1u << 20, 1, 2, false);
  LS_CHECK_DOUBLE (k.flops, ==, 0x1p83);
}

static void
stream_keeps_shape_and_bytes (void)
{
  LsKernel k = ls_kernel_stream ("gelu", LS_KERNEL_ELEMENTWISE, LS_DTYPE_BF16, 8, 9, 288, 1);
  LS_CHECK_STR (k.name, "gelu");
  LS_CHECK_INT (k.m, ==, 8);
  LS_CHECK_INT (k.n, ==, 9);
  LS_CHECK_INT (k.k, ==, 0);
  LS_CHECK_DOUBLE (k.bytes, ==, 288);
  LS_CHECK_DOUBLE (k.flops, ==, 1);
}

static void
kinds_have_distinct_names (void)
{
  for (int i = 0; i < LS_N_KERNEL_KINDS; i++)
    for (int j = 0; j < i; j++)
      LS_CHECK (g_strcmp0 (ls_kernel_kind_name (i), ls_kernel_kind_name (j)) != 0);
  LS_CHECK_STR (ls_kernel_kind_name (LS_KERNEL_GEMM), "gemm");
}

LS_TEST_SUITE (LS_TEST (gemm_counts_two_flops_per_multiply_add), LS_TEST (accumulating_gemm_reads_c_too),
               LS_TEST (batch_multiplies_both), LS_TEST (parts_of_a_gemm_add_up),
               LS_TEST (dimensions_beyond_32_bits_do_not_wrap), LS_TEST (stream_keeps_shape_and_bytes),
               LS_TEST (kinds_have_distinct_names))
