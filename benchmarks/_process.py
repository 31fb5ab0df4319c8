"""Runs a command, and prints what it took as JSON: for `run_process`.

On Linux a process begins with the peak memory of the one that starts it. So this one is small.
"""

import json
import os
import subprocess
import sys
import time

begin = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)  # includes what it waited for
process.returncode = os.waitstatus_to_exitcode(status)
seconds = time.perf_counter() - begin
processor_seconds = usage.ru_utime + usage.ru_stime
print(json.dumps({"seconds": seconds, "processor_seconds": processor_seconds, "mib": usage.ru_maxrss / 1024}))
sys.exit(process.returncode)
