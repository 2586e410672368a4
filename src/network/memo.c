#include "network/memo.h"

LsCollMemo *
ls_coll_memo_new (void)
{
  LsCollMemo *memo = g_new0 (LsCollMemo, 1);
  memo->arena = ls_arena_new ();
  memo->known = g_ptr_array_new ();
  return memo;
}

void
ls_coll_memo_free (LsCollMemo *memo)
{
  if (!memo)
    return;
  g_ptr_array_unref (memo->known);
  ls_arena_free (memo->arena);
  g_free (memo);
}
