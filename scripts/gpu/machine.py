"""What is known of the machine without Ringlet's help."""

import glob
import os
import platform
import subprocess


def first_line(command):
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return out.splitlines()[0].strip() if out else ""


def gpu_query(fields):
    line = first_line(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"])
    values = [field.strip() for field in line.split(",")]
    return values if line and len(values) == len(fields.split(",")) else []


def has_gpu():
    return bool(gpu_query("name") or glob.glob("/dev/nvidia[0-9]*"))


def describe():
    return {
        "gpu": dict(zip(("name", "driver", "memory_mib", "capability"),
                        gpu_query("name,driver_version,memory.total,compute_cap"))),
        "system": platform.platform(),
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
