/* A library with a soname of CUDA's: all that it has is in liblockstep-capture.so. */
