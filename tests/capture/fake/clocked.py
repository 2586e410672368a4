"""Three products a step, four in the fourth, which it times by the process's clock and by events; with "sleep" the
fifth step sleeps, with "fail" the fourth one fails; with "busy" two threads hold Python's lock much of the time."""
import sys
import threading
import time

import torch


def spin():
    while True:
        sum(range(1000))


for _ in range(2 if "busy" in sys.argv else 0):
    threading.Thread(target=spin, daemon=True).start()
parameters = [torch.nn.Parameter(1 << 20)]
optimizer = torch.optim.Adam(parameters)
begin, end = torch.cuda.Event(), torch.cuda.Event()
for step in range(1, 7):
    at = time.perf_counter()
    if step == 4 and "fail" in sys.argv:
        raise ValueError("no fourth step")
    begin.record()
    for _ in range(4 if step == 4 else 3):
        torch.cuda.product()
    end.record()
    optimizer.step()
    torch.cuda.synchronize()
    if step == 5 and "sleep" in sys.argv:
        time.sleep(0.05)
    print(f"step {step}: {1e6 * (time.perf_counter() - at):.1f} us, of these on the GPU {1e3 * begin.elapsed_time(end):.1f}")
