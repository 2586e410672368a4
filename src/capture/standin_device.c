/* capture/standin_device.c — what is asked of the GPU itself: attributes and properties of the one that is
 * named. Numbers of attributes are those of CUdevice_attribute; places are those of struct cudaDeviceProp in
 * CUDA 12 (12.0 to 12.9) and 13, by their public headers. What is not of the GPU's own files is of its
 * capability, or the same on all (CUDA C++ programming guide, technical specifications per compute
 * capability). */
#include "capture/standin.h"

#include <stdio.h>
#include <string.h>

/* 12, 13: where struct cudaDeviceProp has it; 0: nowhere. */
static const struct {
  int attribute, value, at12, at13;
} fixed[] = {
  { 1, 1024, 320, 320 },
  { 2, 1024, 324, 324 },
  { 3, 1024, 328, 328 },
  { 4, 64, 332, 332 },
  { 5, 2147483647, 336, 336 },
  { 6, 65535, 340, 340 },
  { 7, 65535, 344, 344 },
  { 10, 32, 308, 308 },
  { 12, 65536, 304, 304 },
  { 14, 512, 0, 0 },
  { 15, 1, 384, 0 },
  { 17, 0, 0, 0 },
  { 18, 0, 0, 0 },
  { 19, 1, 400, 392 },
  { 20, 0, 404, 0 },
  { 31, 1, 576, 560 },
  { 32, 1, 580, 564 },
  { 33, 27, 584, 568 },
  { 34, 0, 588, 572 },
  { 35, 0, 0, 0 },
  { 40, 3, 600, 584 },
  { 41, 1, 604, 588 },
  { 50, 0, 592, 576 },
  { 78, 1, 628, 608 },
  { 79, 1, 632, 612 },
  { 80, 1, 636, 616 },
  { 82, 65536, 648, 632 },
  { 83, 1, 652, 636 },
  { 84, 0, 0, 0 },
  { 85, 0, 0, 0 },
  { 86, 0, 0, 0 },
  { 88, 0, 0, 0 },
  { 89, 1, 676, 656 },
  { 90, 1, 680, 660 },
  { 91, 1, 684, 664 },
  { 92, 1, 0, 0 },
  { 93, 1, 0, 0 },
  { 94, 1, 0, 0 },
  { 95, 1, 688, 668 },
  { 96, 1, 0, 0 },
  { 99, 1, 728, 704 },
  { 100, 0, 0, 0 },
  { 101, 0, 0, 0 },
  { 102, 1, 0, 0 },
  { 103, 1, 0, 0 },
  { 107, 0, 0, 0 },
  { 110, 1, 0, 0 },
  { 115, 1, 744, 720 },
  { 116, 1, 748, 724 },
  { 117, 1, 0, 0 },
  { 118, 100, 0, 0 },
  { 119, 1, 0, 0 },
  { 128, 0, 0, 0 },
  { 132, 0, 0, 0 },
};

/* Of an SM: 64 lanes of fp32 in 7.x and 8.0, else 128. */
static int
clock_khz (void)
{
  int lanes
      = ls_device.capability < 75 || ls_device.capability == 80 || ls_device.capability == 75 ? 64 : 128;
  return (int) (ls_device.flops[3] / (2.0 * lanes * ls_device.n_sm) / 1e3);
}

/* HBM is 1,024 bits a stack, five of which are in use on most. */
static int
bus_width (void)
{
  return ls_device.hbm > 1.2e12 ? 5120 : 384;
}

static int
value_of (int attribute, bool *ret_is_known)
{
  *ret_is_known = true;
  switch (attribute) {
  case 8:
    return 49152;
  case 9:
    return 65536;
  case 11:
    return 2147483647;
  case 13:
    return clock_khz ();
  case 16:
    return ls_device.n_sm;
  case 36:
    return (int) (ls_device.hbm * 8 / (2.0 * bus_width ()) / 1e3);
  case 37:
    return bus_width ();
  case 38:
    return ls_device.l2;
  case 39:
    return ls_device.warps_per_sm * 32;
  case 75:
    return ls_device.capability / 10;
  case 76:
    return ls_device.capability % 10;
  case 81:
    return ls_device.shared_per_sm;
  case 87:
    return ls_device.capability % 10 == 0 ? 2 : 64;
  case 97:
    return ls_device.shared_per_block;
  case 106:
    return ls_device.blocks_per_sm;
  case 108:
    return ls_device.capability >= 80 ? ls_device.l2 / 4 * 3 : 0;
  case 109:
    return ls_device.capability >= 80 ? 134213632 : 0;
  case 111:
    return ls_device.capability >= 80 ? 1024 : 0;
  case 120:
    return ls_device.capability >= 90;
  default:
    break;
  }
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
    if (fixed[i].attribute == attribute)
      return fixed[i].value;
  *ret_is_known = false;
  return 0;
}

int
ls_device_attribute (int attribute)
{
  bool is_known;
  int value = value_of (attribute, &is_known);
  char name[64];
  snprintf (name, sizeof name, "attribute %d of a device", attribute);
  if (!is_known)
    ls_refuse (name, "it is not known of the GPU that is named");
  return value;
}

/* Of 4 bytes, but for those that are size_t. */
static const struct {
  int attribute, at12, at13;
  bool is_long;
} derived[] = {
  { 8, 296, 296, true },   { 9, 352, 352, true },    { 11, 312, 312, true },   { 13, 348, 0, false },
  { 16, 388, 384, false }, { 36, 608, 0, false },    { 37, 612, 592, false },  { 38, 616, 596, false },
  { 39, 624, 604, false }, { 75, 360, 360, false },  { 76, 364, 364, false },  { 81, 640, 624, true },
  { 97, 696, 672, true },  { 106, 712, 688, false }, { 108, 620, 600, false }, { 109, 716, 692, false },
  { 111, 720, 696, true }, { 120, 772, 748, false }, { 14, 368, 368, true },
};

static void
put (char *properties, int at, int attribute, bool is_long)
{
  int value = ls_device_attribute (attribute);
  size_t wide = (size_t) value;
  if (at > 0)
    memcpy (properties + at, is_long ? (const void *) &wide : (const void *) &value,
            is_long ? sizeof wide : sizeof value);
}

void
ls_device_properties (void *ret)
{
  bool is_12 = ls_device.cuda / 1000 == 12;
  char *properties = ret;
  memset (properties, 0, is_12 ? 1032 : 1008);
  strncpy (properties, ls_device.name, 255);
  memcpy (properties + 256, "lockstep capture", 16); /* its UUID */
  memcpy (properties + 288, &ls_device.memory, sizeof ls_device.memory);
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
    put (properties, is_12 ? fixed[i].at12 : fixed[i].at13, fixed[i].attribute, false);
  for (size_t i = 0; i < sizeof derived / sizeof *derived; i++)
    put (properties, is_12 ? derived[i].at12 : derived[i].at13, derived[i].attribute, derived[i].is_long);
}
