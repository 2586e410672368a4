"""Seconds for 100 runs of a job of 8 GPUs from Python, with one figure read of each result."""

import time

import lockstep

N = 100
JOB = {"model": "llama3.1-8b", "cluster": "dgx-h100", "gpus": 8, "tp": 2, "pp": 2}

lockstep.run(**JOB)  # loads the library
begin = time.process_time()
for _ in range(N):
    lockstep.run(**JOB).step_time_s
print(f"python,{N},s,{time.process_time() - begin:.4g},")
