"""What scripts/machines --delay puts between a machine and the network: the kernel's netem, where there is none.

    delay_relay.py TIME COUNT    TIME as tc has it: 5ms, 200us, 1s

Makes COUNT pairs of TAP devices in this network namespace, nearN and farN, and carries frames between the two: from
nearN, which is to become a machine's eth0, TIME later, the other way at once. Runs until it is killed.

Frames come with the kernel's header for offloads (IFF_VNET_HDR), so a segment of 64 KiB passes as one.
"""

import collections
import fcntl
import os
import re
import select
import struct
import sys
import time

TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0  # linux/if_tun.h
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
CHECKSUMS_AND_SEGMENTS = 0x1 | 0x2 | 0x4
LONGEST_FRAME = 1 << 17
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


def seconds_of(text):
    parts = re.fullmatch(r"([0-9.]+)(s|ms|us)", text)
    if parts is None:
        sys.exit(f"delay_relay: '{text}' is no time such as 5ms")
    return float(parts[1]) * UNITS[parts[2]]


def make_device(name):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
    fcntl.ioctl(device, TUNSETOFFLOAD, CHECKSUMS_AND_SEGMENTS)
    return device


def frames_of(device):
    try:
        while True:
            yield os.read(device, LONGEST_FRAME)
    except (BlockingIOError, OSError):  # nothing more, or the device is down
        return


def send(device, frame):
    try:
        os.write(device, frame)
    except OSError:  # the device is down: the frame is lost, as on a cable that is pulled
        pass


def main():
    delay = seconds_of(sys.argv[1])
    nears, fars = {}, {}
    for number in range(int(sys.argv[2])):
        near, far = make_device(f"near{number}"), make_device(f"far{number}")
        nears[near], fars[far] = far, near
    waiting = collections.deque()  # (when, device, frame): all wait equally long, so it is in order
    while True:
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready, _, _ = select.select([*nears, *fars], [], [], pause)
        for device in ready:
            for frame in frames_of(device):
                if device in nears:
                    waiting.append((time.monotonic() + delay, nears[device], frame))
                else:
                    send(fars[device], frame)
        while waiting and waiting[0][0] <= time.monotonic():
            _, device, frame = waiting.popleft()
            send(device, frame)


main()
