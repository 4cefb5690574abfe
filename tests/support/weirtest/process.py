# SPDX-License-Identifier: Apache-2.0
"""What a process costs, as the kernel has it: CPU time of its threads, memory now and at its peak."""
import glob


def cpu_ms(pid):
    """CPU time of all threads, in milliseconds; to the nanosecond, unlike /proc/PID/stat."""
    total = 0
    for path in glob.glob("/proc/%d/task/*/schedstat" % pid):
        with open(path) as f:
            total += int(f.read().split()[0])
    return total / 1e6


def _status_bytes(pid, name):
    with open("/proc/%d/status" % pid) as f:
        for line in f:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(name)


def rss_bytes(pid):
    return _status_bytes(pid, "VmRSS")


def peak_bytes(pid):
    return _status_bytes(pid, "VmHWM")


def reset_peak(pid):
    """From now on the peak is that of what follows."""
    with open("/proc/%d/clear_refs" % pid, "w") as f:
        f.write("5")


def is_sanitized(pid):
    """Under a sanitizer neither time nor memory says anything of the program."""
    with open("/proc/%d/maps" % pid) as f:
        text = f.read()
    return any(name in text for name in ("libasan", "libtsan", "libubsan", "libmsan", "libclang_rt"))
