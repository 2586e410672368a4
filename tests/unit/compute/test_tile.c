/* Tiles and waves: worked examples tile-* and wave-* (tests/README.md). */
#include "ls_test.h"

#include "compute/tile.h"

static void
blocks_are_rounded_up_in_both_directions (void)
{
  LS_CHECK_DOUBLE (ls_tile_blocks (8192, 14336, 128, 256), ==, 3584); /* tile-1 */
  LS_CHECK_DOUBLE (ls_tile_blocks (1792, 1792, 256, 128), ==, 98);    /* tile-3 */
  LS_CHECK_DOUBLE (ls_tile_blocks (2304, 1536, 256, 128), ==, 108);   /* tile-4 */
  LS_CHECK_DOUBLE (ls_tile_blocks (2304, 1537, 256, 128), ==, 117);
}

static void
one_block_too_many_starts_a_wave (void)
{
  LS_CHECK_DOUBLE (ls_tile_waves (108, 108), ==, 1);
  LS_CHECK_DOUBLE (ls_tile_waves (109, 108), ==, 2); /* tile-2 */
  LS_CHECK_DOUBLE (ls_tile_waves (117, 108), ==, 2);
}

/* wave-148 ... wave-50000: what 152 SMs save over 148. */
static void
four_more_sms_help_by_the_wave (void)
{
  static const struct {
    double blocks, waves_148, waves_152, speedup;
  } rows[] = { { 148, 1, 1, 1 },   { 152, 2, 1, 2 },         { 296, 2, 2, 1 },
               { 304, 3, 2, 1.5 }, { 3584, 25, 24, 1.0417 }, { 50000, 338, 329, 1.0274 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    LS_CHECK_DOUBLE (ls_tile_waves (rows[i].blocks, 148), ==, rows[i].waves_148);
    LS_CHECK_DOUBLE (ls_tile_waves (rows[i].blocks, 152), ==, rows[i].waves_152);
    LS_CHECK_NEAR (ls_tile_waves_paid (rows[i].blocks, 148, 1) / ls_tile_waves_paid (rows[i].blocks, 152, 1),
                   rows[i].speedup, 1e-3);
  }
}

static void
rounding_pays_its_share_of_a_wave (void)
{
  LS_CHECK_DOUBLE (ls_tile_waves_paid (150, 100, 1), ==, 2);
  LS_CHECK_DOUBLE (ls_tile_waves_paid (150, 100, 0), ==, 1.5);
  LS_CHECK_DOUBLE (ls_tile_waves_paid (150, 100, 0.5), ==, 1.75);
  LS_CHECK_DOUBLE (ls_tile_waves_paid (30, 100, 0), ==, 1); /* never less than one */
}

LS_TEST_MAIN ("tile", LS_TEST (blocks_are_rounded_up_in_both_directions),
              LS_TEST (one_block_too_many_starts_a_wave), LS_TEST (four_more_sms_help_by_the_wave),
              LS_TEST (rounding_pays_its_share_of_a_wave))
