/* tests/fake_cuda.h — the clock of the made-up GPU of fake_cuda.cpp (fake_clock.cpp). */
#ifndef LS_KERNELBENCH_TESTS_FAKE_CUDA_H
#define LS_KERNELBENCH_TESTS_FAKE_CUDA_H

static constexpr double fake_launch_us = 10; /* of a kernel, whatever it is */

double fake_now_us ();
void fake_pass (double us); /* so much of the device's time */

#endif
