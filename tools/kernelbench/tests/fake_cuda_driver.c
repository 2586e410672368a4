/* A libcuda.so.1 for tests, of which cuDNN loads the kernels that it compiled: takes any, and remembers the name of the last one. It
 * launches nothing, and says that there is no device (cuInit). The functions are those that cuDNN 9 looks up in the driver. */
#include <stdio.h>

static int an_object;
static char last_kernel[512];

const char *
fake_last_kernel (void)
{
  return last_kernel;
}

int
cuInit (unsigned flags)
{
  (void) flags;
  return 100; /* CUDA_ERROR_NO_DEVICE */
}

int
cuLibraryLoadData (void **library, const void *code, ...)
{
  *library = &an_object;
  return code ? 0 : 1;
}

int
cuLibraryGetKernel (void **kernel, void *library, const char *name)
{
  snprintf (last_kernel, sizeof last_kernel, "%s", name);
  *kernel = &an_object;
  return library == &an_object ? 0 : 1;
}

int
cuGetErrorString (int status, const char **text)
{
  (void) status;
  *text = "an error";
  return 0;
}

int
cuGetErrorName (int status, const char **text)
{
  return cuGetErrorString (status, text);
}

int
cuDriverGetVersion (int *version)
{
  *version = 13010;
  return 0;
}

#define HAS(function)                 \
  int function (void) { return 0; }
#define HAS_NOT(function)             \
  int function (void) { return 801; } /* CUDA_ERROR_NOT_SUPPORTED */

HAS (cuLibraryUnload)
HAS (cuModuleUnload)
HAS (cuKernelSetAttribute)
HAS (cuFuncSetAttribute)
HAS_NOT (cuCtxGetCurrent)
HAS_NOT (cuCtxGetLimit)
HAS_NOT (cuCtxPopCurrent)
HAS_NOT (cuCtxPushCurrent)
HAS_NOT (cuDeviceGet)
HAS_NOT (cuDeviceGetCount)
HAS_NOT (cuKernelGetAttribute)
HAS_NOT (cuKernelGetFunction)
HAS_NOT (cuLaunchCooperativeKernel)
HAS_NOT (cuLaunchKernel)
HAS_NOT (cuLaunchKernelEx)
HAS_NOT (cuLibraryGetModule)
HAS_NOT (cuLibraryLoadFromFile)
HAS_NOT (cuLinkAddData)
HAS_NOT (cuLinkComplete)
HAS_NOT (cuLinkCreate)
HAS_NOT (cuLinkDestroy)
HAS_NOT (cuModuleGetFunction)
HAS_NOT (cuModuleLoadData)
HAS_NOT (cuOccupancyMaxPotentialClusterSize)
HAS_NOT (cuStreamGetCtx)
